"""Warnings of this package, each of a class of its own."""

__all__ = ["DivergenceWarning"]


class DivergenceWarning(RuntimeWarning):
    """Warn that a simulation left the plausible range, and is NaN from there on.

    See Also
    --------
    SparseBayesNARXRegressor.predict : It says what the plausible range is.
    """
