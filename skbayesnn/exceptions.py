"""Warnings of this package, which can be filtered by their category."""

__all__ = [
    "DivergenceWarning",
    "ExtrapolationWarning",
    "InconsistentVersionWarning",
    "MissingInputWarning",
    "MixingWarning",
    "SamplingWarning",
    "ScoringWarning",
]


class DivergenceWarning(RuntimeWarning):
    """Warn that a simulation left the plausible range and is NaN from that row on.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Defines the plausible range.
    """


class ExtrapolationWarning(UserWarning):
    """Warn that inputs leave the range of the training record.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Defines when, and what follows for its bands.
    """


class InconsistentVersionWarning(UserWarning):
    """Warn that a saved estimator was written by another version of this package.

    As scikit-learn's warning of the same name does for its estimators.
    """


class MissingInputWarning(UserWarning):
    """Warn that a free run ends, because an input that it needs is missing.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Its ``fill_inputs`` holds or interpolates.
    """


class MixingWarning(UserWarning):
    """Warn that Markov chains of an RBM do not move between the modes of the model.

    What is estimated from them is then uncertain: gradients during ``fit``, and the
    partition function.

    See Also
    --------
    ContrastiveDivergenceRBM.score : Compares the estimates of both directions.
    """


class SamplingWarning(UserWarning):
    """Warn that the rows of a record are not in order, or not equally spaced in time.

    Lags count rows: across a hole, or between rows that were shuffled, they reach to
    another time than they do elsewhere.

    See Also
    --------
    SparseBayesNARXRegressor.fit : Says what is done with times.
    """


class ScoringWarning(UserWarning):
    """Warn that a scorer judges another prediction than ``score`` does.

    See Also
    --------
    SparseBayesNARXRegressor.score : Says what it measures, and what others do.
    """
