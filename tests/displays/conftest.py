import pytest
from display_models import Y, fit


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
