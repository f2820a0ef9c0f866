"""What growth reaches on the images that RBMs are compared on."""

import numpy as np
import pytest

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.datasets import fetch_caltech101_silhouettes, fetch_mnist

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mnist(data_home):
    data = fetch_mnist(data_home=data_home, download_if_missing=False)
    rows = np.random.default_rng(0).permutation(len(data.data))[:20000]
    return data.data[rows] > 127, data.test.data > 127


@pytest.fixture(scope="module")
def caltech(data_home):
    data = fetch_caltech101_silhouettes(data_home=data_home, download_if_missing=False)
    return data.data > 0, data.test.data > 0


def likelihoods(model, X):
    """Mean log-likelihoods by annealing to the model, and back from it."""
    mean = -model.free_energy(X).mean()
    return [
        mean - model.log_partition(method, betas=4000, n_jobs=2).log_partition
        for method in ("ais", "reverse_ais")
    ]


@pytest.mark.parametrize(
    "name, limit, spread", [("mnist", -131.0, 5.0), ("caltech", -190.0, 12.0)]
)
def test_growth(name, limit, spread, request):
    """The limits are of annealing to the model, which errs upwards.

    On Caltech-101 the weights of 4000 temperatures spread so widely that the reverse
    run is some nats below: where both agree, they can be believed.
    """
    train, test = request.getfixturevalue(name)
    model = FrankWolfeRBM(100, random_state=0).fit(train)
    assert model.n_components_ == 100
    forward, backward = likelihoods(model, test)
    assert forward > limit
    assert backward > limit - spread
    assert abs(forward - backward) < spread


def test_persistent_contrastive_divergence(mnist):
    """A guard well below the -98 that 20 epochs reach."""
    train, test = mnist
    model = ContrastiveDivergenceRBM(100, max_iter=20, random_state=0).fit(train)
    assert min(likelihoods(model, test)) > -101.0
