import pytest
from display_models import Y, fit, tracked
from rbm_estimators import digits, growing, small

from skbayesnn import ContrastiveDivergenceRBM


@pytest.fixture(autouse=True)
def close_figures():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def single():
    """One output, one hidden layer."""
    return fit((4,), Y[:, 0])


@pytest.fixture(scope="session")
def double():
    """Two outputs, two hidden layers."""
    return fit((4, 3), Y)


@pytest.fixture(scope="session")
def grown():
    """An RBM of six units, whose history has likelihoods."""
    return tracked(growing(6).fit(digits()))


@pytest.fixture(scope="session")
def trained():
    """An RBM of a given size, whose history has likelihoods."""
    return tracked(small(ContrastiveDivergenceRBM).fit(digits()))
