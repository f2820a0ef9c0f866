"""What differs between the supported releases of scikit-learn."""

from importlib.util import find_spec

import pytest

from skbayesnn import (
    ContrastiveDivergenceRBM,
    DynamicSystemRegressor,
    FrankWolfeRBM,
    SparseBayesNARXRegressorCV,
)


@pytest.mark.skipif(
    find_spec("sklearn.callback") is not None, reason="scikit-learn has callbacks"
)
@pytest.mark.parametrize(
    "cls",
    [
        ContrastiveDivergenceRBM,
        FrankWolfeRBM,
        SparseBayesNARXRegressorCV,
        DynamicSystemRegressor,
    ],
)
def test_without_callbacks_an_estimator_says_what_they_need(cls):
    assert not hasattr(cls(), "set_callbacks")
    with pytest.raises(AttributeError, match="callbacks need scikit-learn 1.9"):
        cls().set_callbacks(None)
