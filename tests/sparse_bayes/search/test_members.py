"""The candidates that stay in an ensemble, by tables of errors."""

import numpy as np
import pytest
from search_cases import arx, network, table_of

from skbayesnn.sparse_bayes.search.members import close_to_best

SCATTER = np.array([0.5, 2.0, 1.0, 2.0, 0.5])


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        # within a fifth; farther, but not for sure; for sure; too far
        ({network(5): [1.0] * 5, network(9): [1.19] * 5}, [5, 9]),
        ({network(5): [1.0] * 5, network(9): 1.3 * SCATTER}, [5, 9]),
        ({network(5): [1.0] * 5, network(9): [1.3] * 5}, [5]),
        ({network(5): [1.0] * 5, network(9): 1.5 * SCATTER}, [5]),
        # linear models never stand beside a network, nor networks beside them
        ({network(5): [1.0] * 5, arx(2): [1.01] * 5}, [5]),
        ({network(5): [1.01] * 5, arx(2): [1.0] * 5}, [2]),
        # of equal linear models the simplest
        ({arx(4): [1.0] * 5, arx(2): [1.01] * 5, arx(1): [1.1] * 5}, [2]),
        ({arx(2): [1.0] * 5, arx(2, False): [1.01] * 5}, [2]),
    ],
    ids=range(8),
)
def test_close_to_best(errors, expected):
    assert [c.lag for c in close_to_best(table_of(errors))] == expected
