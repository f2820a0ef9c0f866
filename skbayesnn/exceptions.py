"""Warnings of this package, which can be filtered by their category."""

__all__ = ["DivergenceWarning", "MixingWarning"]


class DivergenceWarning(RuntimeWarning):
    """Warn that a simulation left the plausible range and is NaN from that row on.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Defines the plausible range.
    """


class MixingWarning(UserWarning):
    """Warn that Markov chains of an RBM do not move between the modes of the model.

    What is estimated from them is then uncertain: gradients during ``fit``, and the
    partition function.

    See Also
    --------
    ContrastiveDivergenceRBM.score : Compares the estimates of both directions.
    """
