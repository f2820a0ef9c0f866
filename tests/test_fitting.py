"""A fit that fails or is interrupted leaves the estimator as it was."""

import pytest

from skbayesnn._fitting import FitInterrupted, restore_on_failure


class Fitted:
    def __init__(self):
        self.coef_ = "before"

    @restore_on_failure
    def fit(self, error=None):
        """Fit, or fail."""
        self.coef_ = "after"
        self.n_iter_ = 1
        if error is not None:
            raise error
        return self


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_failure_restores_every_attribute(error):
    model = Fitted()
    with pytest.raises(error):
        model.fit(error)
    assert vars(model) == {"coef_": "before"}


def test_a_fit_that_stored_a_usable_model_keeps_it():
    model = Fitted()
    with pytest.raises(KeyboardInterrupt):
        model.fit(FitInterrupted())
    assert vars(model) == {"coef_": "after", "n_iter_": 1}


def test_success_changes_nothing():
    model = Fitted()
    assert model.fit() is model
    assert model.coef_ == "after"
    assert Fitted.fit.__doc__ == "Fit, or fail."
