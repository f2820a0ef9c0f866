"""Fixtures of the tests of the RBMs."""

import pytest
from rbm_estimators import MODELS, digits, toy_data
from rbm_kept_inputs import assert_kept
from sklearn.base import clone

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm import states as products
from skbayesnn.rbm import threads
from skbayesnn.rbm.kernels import units as kernels
from skbayesnn.rbm.likelihood import annealing


@pytest.fixture(autouse=True)
def inputs_stay():
    """What a test has given a kernel to read, the kernel has not changed."""
    yield
    assert_kept()


@pytest.fixture
def eager(monkeypatch):
    """Threads for the smallest products, too."""
    monkeypatch.setattr(threads, "_MIN_WORK", 1)
    monkeypatch.setattr(products, "SMALL", 0)


@pytest.fixture
def places(monkeypatch):
    """(seed, step, row) of each draw of a row of units, in order."""
    seen = []
    for name, position in [
        ("sample_units", 2),
        ("mean_and_sample_units", 2),
        ("anneal_hidden", 4),
        ("anneal_visible", 4),
        ("fractional_hidden", 4),
    ]:
        kernel = getattr(kernels, name)

        def record(*arguments, kernel=kernel, position=position):
            seed, step, first_row = arguments[position : position + 3]
            for row in range(first_row, first_row + len(arguments[0])):
                seen.append((int(seed), int(step), row))
            return kernel(*arguments)

        monkeypatch.setattr(kernels, name, record)
    # one call of a kernel for all draws: by the kernels one by one it is the same
    monkeypatch.setattr(annealing, "_is_small", lambda path, v: False)
    return seen


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return clone(MODELS[request.param]).fit(toy_data())


@pytest.fixture(scope="module")
def of_digits():
    return ContrastiveDivergenceRBM(8, max_iter=20, batch_size=20, random_state=0).fit(
        digits()
    )
