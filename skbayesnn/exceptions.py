"""Warnings of this package, which can be filtered by their category."""

__all__ = ["DivergenceWarning"]


class DivergenceWarning(RuntimeWarning):
    """Warn that a simulation left the plausible range and is NaN from that row on.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Defines the plausible range.
    """
