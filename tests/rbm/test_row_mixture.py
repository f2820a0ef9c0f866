"""The hidden states of rows against enumeration."""

import naive
import numpy as np
from rbm_models import check_distribution, random_model

from skbayesnn.rbm.row_mixture import RowMixture


def test_it_is_the_mean_over_rows():
    """Its probabilities sum to 1, and its draws have them."""
    rbm, _ = random_model(3, 4, 1, 1.5)
    x = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)
    mixture = RowMixture(rbm, x)
    H = naive.all_states(3)
    p = np.exp(H @ rbm.hidden - mixture.log_excess(H))
    np.testing.assert_allclose(p.sum(), 1.0, rtol=1e-6)
    rows = np.random.default_rng(2).integers(6, size=20000)
    draws = mixture.draw(rows, (np.uint64(2), 0))
    check_distribution(draws.astype(float), p)
