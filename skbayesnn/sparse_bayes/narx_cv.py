"""A lagged model that chooses its lags and the strength of its prior by itself."""

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from .._callbacks import Callbacks
from .._docstrings import shared_parameters
from .._fitting import restore_on_failure
from .._saved_state import public
from .._sklearn import CallbackSupportMixin, fit_context, on_one_blas_thread
from .attributes import fitted_attributes, lag_relevance, set_attributes
from .dynamic_predictor import DynamicPredictorMixin
from .exports import ExportMixin
from .forecasting import ForecastMixin
from .learning.dead_times import dead_times
from .learning.integration import may_integrate
from .learning.lag_choice import longest_between_gaps
from .parameters import (
    SEARCH_CONSTRAINTS,
    SHARED_BY_FITS,
    check_grid,
    check_hidden_layer_sizes,
)
from .records.layout import check_horizons
from .regressor_texts import TEXTS
from .search.cut_record import CutRecord, check_windows
from .search.results import search_attributes
from .search.samples import NETWORK_ROWS, without_outliers
from .search.search_space import (
    LAGS,
    OUTPUTS,
    STRENGTHS,
    Limits,
    SearchSpace,
    longest_dead_time,
    make_grid,
)
from .search.searched_ensemble import search_members
from .search.stretches import (
    cut_measured,
    least_stretches,
    numbered,
    rows_for,
)
from .search.tasks import Settings
from .training_record import (
    check_training_record,
    input_names,
    no_sample_weight,
)

# Short sessions are cut into stretches that allow this lag, if they can.
MEANT_LAG = 10
# Stretches in which a system that may integrate has not forgotten its outputs.
SLOW_STRETCHES = 2.0


@public
@shared_parameters(TEXTS)
class SparseBayesNARXRegressorCV(
    CallbackSupportMixin,
    ExportMixin,
    ForecastMixin,
    DynamicPredictorMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    r"""Nonlinear ARX model with built-in choice of lags, prior strength and kind.

    All is chosen by one criterion, the error that matters: the record is cut into
    stretches, the outputs of one stretch are left out of a fit, and the free run that
    passes through it is scored there (one-step errors for ``focus="prediction"``).
    Linear ARX models come first, then networks that were fitted to free runs and to
    one-step errors, with several lags and strengths of the prior, on a few stretches;
    the best of them are tried on more. A fit that errs more than 1.5 times the best one
    of its candidate on what it has seen ended in a poor optimum, and is begun anew,
    once. Those close to the best form an ensemble of fits to the whole record: their
    error is at most 1.2 times as large, or at most 1.4 times if that is within a
    standard error over the stretches. If no network is better than the best linear ARX
    model, that is the result.

    Parameters
    ----------
    lags : "auto" or array-like of int, default="auto"
        Candidates: the longest lag of inputs and outputs. "auto" is 5, 10 and 20 for
        networks, and 1 to 30 for linear models; longer ones follow where the longest
        is the best, and those with which a linear model misses a part of the memory are
        left to linear models. Lags of which the stretches do not hold two windows are
        left out. Where inputs act only after more than five rows, and linear models
        confirm it, all lags of an input begin behind its dead time.
    reg_lambdas : "auto" or array-like of float, default="auto"
        Candidates for ``reg_lambda`` of networks. "auto" is 6 and 20, and weaker or
        stronger ones, from 0.2 to 200, where one of these is the best.
    cv : int, default=8
        Stretches with equally many measured rows into which every session is cut. At
        most five of them are held out, in turn: fits to nearly the whole record tell
        more than more stretches do. Of several sessions those with the same number are
        held out together. Sessions that are too short for so many stretches and the
        longest of ``lags`` (10 for "auto") are cut into fewer, or left out whole.
    n_estimators : "auto" or int, default="auto"
        Networks in the ensemble. "auto" is 12, or more, up to 24, as long as the
        scatter of networks on rows that they did not see would add more than a
        twentieth to the mean squared error of the ensemble. It is 6 where the scatter
        of as few adds no more than a hundredth. A candidate with two or more is fitted
        from one start more, and starts that ended in a clearly worse optimum are left
        out; of three or more, the three best stay. A linear model stands alone.
    include_current_input : "auto" or bool, default="auto"
        Whether u(t) is a regressor of y(t). "auto" leaves it out where that improves
        the best linear ARX model by more than 2 %. Choose False for a record from a
        closed loop: there u(t) may be a consequence of y(t), which makes held-out
        errors small and simulations useless. Without inputs, it makes no difference.
    output : {"auto", "level", "difference"}, default="auto"
        What a model predicts: y(t), or y(t) - y(t-1), which is summed up, for systems
        that integrate. "auto" searches for models of both where a linear model forgets
        the outputs in two stretches or more, and one of differences errs at most three
        times as much as one of levels. The errors of all candidates then include how
        far their fits drift apart on the inputs in another order. Of networks, those of
        differences are chosen unless they err more than 1.4 times as much. See
        :class:`SparseBayesNARXRegressor`.
    {{noise}}
    {{outliers}}
    focus : {"simulation", "prediction"}, default="simulation"
        Error by which models are compared, and to which networks are fitted: of a free
        run or of one step ahead. See :class:`SparseBayesNARXRegressor`.
    hidden_layer_sizes : int or array-like of int, default=(5,)
        Units in each hidden layer before pruning. ``()`` is a linear ARX model.
    {{n_jobs}}
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights.

    Other Parameters
    ----------------
    n_restarts : int, default=1
        Starts of every fit, of which the one with the most evidence is kept.
    {{horizon_schedule}}
    {{initial_conditions}}
    {{skip_connection}}
    {{activation}}
    {{lagged_groups}}
    {{kappa_variance}}
    {{kappa_weight}}
    max_cycles : int, default=200
        Largest number of cycles of a fit. Fits that are only scored end after 15 in
        their last stage.
    checkpoint : str, path-like or None, default=None
        File to which ``fit`` writes every fit that is done, at most once per second. If
        the search was killed, calling the same ``fit`` again goes on from there, with
        the same result, bit for bit; if it had finished, it returns after a moment. A
        file of another fit (other parameters, data or version of this package) is
        refused. If ``random_state`` is not an integer, the seed in the file is used.
        ``max_time`` counts from the beginning of each call, and may be another one: a
        search that was short of time goes on.
    max_time : float or None, default=None
        Seconds after which no further fit begins; the ensemble is then formed of the
        best that was found so far. Three fifths of it are for the search. A fit that
        has begun is finished, and at least two are made. What is found in a limited
        time depends on the machine and on ``n_jobs``.
    verbose : bool or int, default=False
        Print one line for the linear models and one per fit of a network, with the time
        that is left for the round of the search, and what was chosen.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        One row per reference ("mean", "last value") and per candidate, those that were
        kept first: ``model`` ("linear" or "network"), ``fitted_to`` ("prediction" or
        "simulation", the errors that the fit squares), ``lag``, ``reg_lambda`` (0 is a
        linear ARX model by least squares), ``include_current_input``, ``output``
        ("level" or "difference") and ``dead_time`` (rows, the longest of the inputs;
        the members' ``input_lags_`` have all); ``split0_test_error`` and so on, one
        for each of the ``cv`` stretches, or fewer where these are fewer: root mean
        squared errors in standard deviations of the outputs, of several their geometric
        mean, at most 3, NaN for stretches on which the candidate was not tried;
        ``mean_test_error``, their geometric mean, and ``n_folds``, the number of them;
        ``drift``, how far its fits drift apart on the inputs in another order, in the
        same unit, NaN where it was not measured; ``kept``, which are in the ensemble.
    summary_ : str
        One line: what was chosen, and its error beside those of the references.
    estimators_ : list of SparseBayesNARXRegressor
        The ensemble; first the networks of the candidate with the least error.
    estimator_weights_ : ndarray of shape (n_members,)
        Their weights, which sum to one.
    lag_relevance_ : dict of str to float
        For each regressor of any member, the weighted root mean square of its
        relevances in the members; 0 where a member lacks it.
    {{band_factor}}
    reg_lambda_ : float
        Strength of the prior of the first network, 0 for a linear ARX model.
    max_lag_ : int
        Longest lag of any member: rows needed before the first prediction.
    outliers_ : ndarray of bool, in the shape of y
        Outputs that are held to be wrong. Only for ``outliers="replace"``; see the
        notes.
    {{inputs}}
    {{signals}}
    n_outputs_ : int
        Number of outputs.
    n_iter_ : int
        Number of solver iterations of the first network.

    See Also
    --------
    SparseBayesNARXRegressor : One model with given settings; the attributes that
        describe a single network are found in ``estimators_[0]``.

    Notes
    -----
    scikit-learn's ``GridSearchCV`` with
    :func:`skbayesnn.metrics.simulation_scorer` searches over any parameter. For a
    free run it is the weaker choice: a fold that is cut out of a record leaves a gap
    in which the state of the system is lost, and every held-out stretch starts from
    its own measured rows. Here the run passes through the stretch.

    Candidates are compared by the geometric mean of their errors, because the errors of
    stretches differ by factors. For records of more than 2,000 rows, networks are
    compared by fits to the first rows of every stretch, 2,000 in all; the free runs
    that score them pass through the whole record. The ensemble is fitted to the whole
    record up to 20,000 rows, and to so many of a longer one.

    For ``outliers="replace"``, wrong outputs are found before the search: gross errors,
    codes of missing values, and sensors that stick or read far off. Codes lie beyond
    all other values by more than these range, in single rows or short runs, and no
    unusual input explains them. A linear ARX model with heavy-tailed errors tells other
    wrong outputs from disturbances by the trace that they leave in the residuals of the
    next rows. They are replaced by the values that fit best between their neighbours;
    in longer stretches, where these are uncertain, nothing is fitted or scored. Where
    more than a quarter of the rows seem to be wrong, the linear model is not able to
    tell, and none is held to be.

    With scikit-learn 1.9 or later, ``set_callbacks(ProgressBar())`` shows how far each
    round of the search is, and the time that it still takes (it needs rich). A callback
    that asks to stop ends the search as ``max_time`` does.

    References
    ----------
    .. [1] H. Zhou, C. Ibrahim, W. Pan, "A Sparse Bayesian Deep Learning Approach for
       Identification of Cascaded Tanks Benchmark", 2019.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressorCV
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> tanks = make_cascaded_tanks(300, random_state=0)
    >>> model = SparseBayesNARXRegressorCV(
    ...     (2, 5),
    ...     (3.0, 30.0),
    ...     cv=2,
    ...     n_estimators=1,
    ...     hidden_layer_sizes=2,
    ...     max_cycles=5,
    ...     random_state=0,
    ... )
    >>> model = model.fit(tanks.data, tanks.target)
    >>> model.reg_lambda_ in (0.0, 3.0, 30.0)
    True
    """

    _parameter_constraints: dict = SEARCH_CONSTRAINTS

    def __init__(
        self,
        lags="auto",
        reg_lambdas="auto",
        *,
        cv=8,
        n_estimators="auto",
        include_current_input="auto",
        output="auto",
        noise="gaussian",
        outliers="replace",
        focus="simulation",
        hidden_layer_sizes=(5,),
        n_jobs=None,
        random_state=None,
        n_restarts=1,
        horizon_schedule="auto",
        initial_conditions="measured",
        skip_connection=True,
        activation="tanh",
        groups="auto",
        kappa_variance=1e-6,
        kappa_weight=1e-3,
        max_cycles=200,
        checkpoint=None,
        max_time=None,
        verbose=False,
    ):
        self.lags = lags
        self.reg_lambdas = reg_lambdas
        self.cv = cv
        self.n_estimators = n_estimators
        self.include_current_input = include_current_input
        self.output = output
        self.noise = noise
        self.outliers = outliers
        self.focus = focus
        self.hidden_layer_sizes = hidden_layer_sizes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.n_restarts = n_restarts
        self.horizon_schedule = horizon_schedule
        self.initial_conditions = initial_conditions
        self.skip_connection = skip_connection
        self.activation = activation
        self.groups = groups
        self.kappa_variance = kappa_variance
        self.kappa_weight = kappa_weight
        self.max_cycles = max_cycles
        self.checkpoint = checkpoint
        self.max_time = max_time
        self.verbose = verbose

    @no_sample_weight
    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    @on_one_blas_thread
    def fit(self, X, y, *, sessions=None):
        """Choose lags and prior strength, and learn the ensemble.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs) or None
            Inputs, in the order of time. None for an autoregression. NaN marks a
            missing value.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Measured outputs, NaN where missing.
        sessions : array-like of shape (n_samples,) or "infer", default=None
            The record each row belongs to, as :meth:`SparseBayesNARXRegressor.fit`
            takes it.

        Returns
        -------
        self : SparseBayesNARXRegressorCV
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            As :meth:`SparseBayesNARXRegressor.fit`, for candidates outside their
            range, for a record too short for the shortest lag, and for a checkpoint
            that is damaged or belongs to another fit.
        OSError
            For a checkpoint that cannot be written, or that another fit uses.
        """
        given = check_training_record(self, X, y, sessions)
        check_horizons(self.horizon_schedule)
        data, lags, longest = self._cut(given)
        strengths = check_grid(self.reg_lambdas, "reg_lambdas")
        check_windows(data, lags)
        data, outliers = without_outliers(data, self.outliers, self.noise)
        space = self._search_space(data, lags, strengths, longest)
        callbacks = Callbacks(self, X, y)
        task = callbacks.begin_fit(None)
        options = self._settings_of_fits(data), space, callbacks, task
        found = search_members(self, data, *options)
        self._store(found, outliers)
        callbacks.end(task, lambda: fitted_attributes(self))
        if self.verbose:
            print(self.summary_)
        return self

    def _settings_of_fits(self, data):
        """`Settings` of networks of lags."""
        lags = {name: getattr(self, name) for name in SHARED_BY_FITS}
        longest = longest_between_gaps(data.without_doubtful(data.Y), data.starts)
        return Settings(self.focus, lags, {}, tuple(input_names(self)), longest)

    def _cut(self, given):
        """The record in stretches, and the lags that these allow.

        Returns
        -------
        data : CutRecord
        lags : sorted list, or "auto"
        longest : int
            Lag of which the stretches hold two windows.
        """
        candidates = check_grid(self.lags, "lags")
        if candidates == "auto":
            candidates = list(range(1, MEANT_LAG + 1))
        measured = np.isfinite(given.Y).any(axis=1) & np.isfinite(given.U).all(axis=1)
        folds, longest = cut_measured(given.starts, measured, self.cv, candidates)
        shortest = candidates[0]
        if longest < shortest:
            raise ValueError(
                f"The record is too short for a search with cv={self.cv}: a lag of "
                f"{shortest} needs {least_stretches(self.cv)} stretches of "
                f"{rows_for(shortest)} measured rows, each within a session; "
                f"n_samples={len(given.Y)} found, {measured.sum()} of them measured. "
                "Take shorter lags or a smaller cv, or give one model settings of your "
                "own."
            )
        lags = [lag for lag in candidates if lag <= longest]
        lags = self.lags if isinstance(self.lags, str) else lags
        return CutRecord(given, folds), lags, longest

    def _search_space(self, data, lags, strengths, longest):
        """The `SearchSpace` of models of lags."""
        n_outputs = data.Y.shape[1]
        limits = Limits(
            longest=longest,
            rows=min(len(data.Y), NETWORK_ROWS),
            n_signals=data.U.shape[1] + n_outputs,
            n_outputs=n_outputs,
            n_hidden=sum(check_hidden_layer_sizes(self.hidden_layer_sizes)),
        )
        times = ()
        if isinstance(lags, str):
            Y = data.without_doubtful(data.Y)
            times = dead_times(data.U, Y, data.starts, longest_dead_time(longest))
        in_free_run = self.focus == "simulation"
        return SearchSpace(
            limits,
            make_grid(lags, LAGS),
            make_grid(strengths, STRENGTHS),
            fitted_to=("simulation", "prediction") if in_free_run else (self.focus,),
            current_input=self.include_current_input if data.U.shape[1] else False,
            dead_times=times,
            outputs=self._outputs(data),
        )

    def _outputs(self, data):
        """What models may say; one step ahead nothing drifts, and levels will do."""
        if self.output != "auto":
            return (self.output,)
        a_stretch = len(data.Y) / (1 + numbered(data.starts, data.folds)[-1])
        long = SLOW_STRETCHES * a_stretch
        drifts = self.focus == "simulation" and may_integrate(*data.given[:3], long)
        return OUTPUTS if drifts else OUTPUTS[:1]

    def _store(self, found, outliers):
        """Keep the ensemble, and set all public attributes."""
        self._model = found.model._replace(focus=self.focus)
        members = found.members.models
        of_lags = {
            "lag_relevance_": lag_relevance(self, found.model.ensemble, members),
            "reg_lambda_": members[0].reg_lambda,
        }
        set_attributes(self, search_attributes(found, of_lags | outliers))
