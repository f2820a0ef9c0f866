"""Warnings of this package, which can be filtered by their category."""

__all__ = [
    "DivergenceWarning",
    "ExtrapolationWarning",
    "InconsistentVersionWarning",
    "MissingInputWarning",
    "MixingWarning",
    "OutlierWarning",
    "SamplingWarning",
    "ScoringWarning",
]


class DivergenceWarning(RuntimeWarning):
    """Warn that a simulation left the plausible range and is NaN from that row on.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Defines the plausible range.

    Examples
    --------
    An error instead of a warning, so that no diverged simulation goes unnoticed:

    >>> import warnings
    >>> from skbayesnn.exceptions import DivergenceWarning
    >>> warnings.simplefilter("error", DivergenceWarning)
    """


class ExtrapolationWarning(UserWarning):
    """Warn that inputs, or runs of a model, leave the range of the training record.

    Or that inputs lie between two levels, far apart, that the record alone has.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Defines when, and what follows for its bands.

    Examples
    --------
    >>> import warnings
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(random_state=0).fit(u, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     level = model.predict(2.0 * u, y_init=y[:5])
    >>> caught[0].category.__name__
    'ExtrapolationWarning'
    """


class InconsistentVersionWarning(UserWarning):
    """Warn that a saved estimator was written by another version of this package.

    As scikit-learn's warning of the same name does for its estimators.

    Examples
    --------
    Refuse such a file:

    >>> import warnings
    >>> from skbayesnn.exceptions import InconsistentVersionWarning
    >>> warnings.simplefilter("error", InconsistentVersionWarning)
    """


class MissingInputWarning(UserWarning):
    """Warn that a free run ends, because an input that it needs is missing.

    Or that an input is missing so near to the start of a run that few rows behind it
    tell the hidden states. Or, in the ``fit`` of an automatic search, that missing
    inputs cut the free runs by which it compares models into short ones, whose errors
    are too small.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Its ``fill_inputs`` holds or interpolates.

    Examples
    --------
    An error instead of a warning:

    >>> import warnings
    >>> from skbayesnn.exceptions import MissingInputWarning
    >>> warnings.simplefilter("error", MissingInputWarning)
    """


class MixingWarning(UserWarning):
    """Warn that Markov chains of an RBM do not move between the modes of the model.

    What is estimated from them is then uncertain: gradients during ``fit``, and the
    partition function. ``fit`` of a given number of units or epochs also raises it if
    the training rows, 50 or more, are less likely than by independent features.

    See Also
    --------
    ContrastiveDivergenceRBM.score : Compares the estimates of both directions.

    Examples
    --------
    An error instead of a warning, in a search that must not rank uncertain likelihoods:

    >>> import warnings
    >>> from skbayesnn.exceptions import MixingWarning
    >>> warnings.simplefilter("error", MixingWarning)
    """


class OutlierWarning(UserWarning):
    """Warn that some outputs are held to be wrong, and replaced before a search.

    Or that an input has values far beyond all others, without an effect on the outputs:
    probably a code of missing values, such as -999. These are not replaced.

    See Also
    --------
    DynamicSystemRegressor : ``outliers`` says what is done with them.

    Examples
    --------
    >>> import warnings
    >>> from skbayesnn import DynamicSystemRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> y[100] += 5.0
    >>> model = DynamicSystemRegressor("linear", lags=[2], random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = model.fit(u, y)
    >>> [warning.category.__name__ for warning in caught]
    ['OutlierWarning']
    >>> model.outliers_.nonzero()[0].tolist()
    [100]
    """


class SamplingWarning(UserWarning):
    """Warn that the rows of a record are not in order, or not equally spaced in time.

    Lags count rows: across a hole, or between rows that were shuffled, they reach to
    another time than they do elsewhere. In a session that is not longer than the
    longest lag, they reach from no row. An index of texts that look like times says
    nothing of this: they are not read.

    See Also
    --------
    SparseBayesNARXRegressor.fit : Says what is done with times.

    Examples
    --------
    Refuse such a record:

    >>> import warnings
    >>> from skbayesnn.exceptions import SamplingWarning
    >>> warnings.simplefilter("error", SamplingWarning)
    """


class ScoringWarning(UserWarning):
    """Warn that a scorer judges another prediction than ``score`` does.

    See Also
    --------
    SparseBayesNARXRegressor.score : Says what it measures, and what others do.

    Examples
    --------
    An error instead of a warning:

    >>> import warnings
    >>> from skbayesnn.exceptions import ScoringWarning
    >>> warnings.simplefilter("error", ScoringWarning)
    """
