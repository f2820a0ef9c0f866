"""The model of a dynamic system that chooses its kind by itself."""

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from .._callbacks import Callbacks
from .._docstrings import shared_parameters
from .._fitting import restore_on_failure
from .._saved_state import public
from .._sklearn import CallbackSupportMixin, fit_context, on_one_blas_thread
from .attributes import (
    copy_input_attributes,
    fitted_attributes,
    lag_relevance,
    set_attributes,
)
from .dynamic_predictor import DynamicPredictorMixin
from .exports import ExportMixin
from .forecasting import ForecastMixin
from .learning.linear_order import least_states
from .narx_cv import SparseBayesNARXRegressorCV
from .parameters import (
    DYNAMIC_CONSTRAINTS,
    check_grid,
    check_hidden_layer_sizes,
    check_kinds,
)
from .prediction.hidden_states import rows_that_tell
from .regressor_texts import TEXTS
from .search.cut_record import check_windows, has_windows
from .search.results import COLUMNS, search_attributes
from .search.samples import without_outliers
from .search.scored_rows import rows_for_all
from .search.search_space import (
    ACTIVATIONS,
    FEW_CYCLES,
    STATES,
    STATES_UNITS,
    Grid,
    make_grid,
)
from .search.searched_ensemble import search_members
from .search.states_round import MAX_STATES
from .state_space_network import SparseBayesStateSpaceRegressor
from .training_record import check_training_record, no_sample_weight

# Units of the networks that "auto" stands for.
UNITS_OF_LAGS = (5,)
# Of "auto", the longest lag of networks and the largest number of states that are
# nearly always tried.
LONGEST_LAG = 20
MOST_STATES = 6
# Starts of every fit of hidden states, scored or not: half of them are linear models,
# the others random.
STATES_STARTS = 4
# Columns of ``cv_results_``.
COLUMNS_OF_KINDS = (*COLUMNS, "n_states", "n_units", "activation", "max_cycles")
# Parameters that the search for lags has as well.
OF_LAGS = (
    *("lags", "reg_lambdas", "cv", "n_estimators", "noise", "focus", "output"),
    *("n_jobs", "random_state", "max_cycles"),
)


@public
@shared_parameters(TEXTS)
class DynamicSystemRegressor(
    CallbackSupportMixin,
    ExportMixin,
    ForecastMixin,
    DynamicPredictorMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    r"""Learn a simulator of a dynamic system, and choose its kind and its settings.

    The kind of model, its lags or number of hidden states, and ``reg_lambda`` are
    chosen by the error of free runs (simulations) through parts of the record that were
    left out of the fit: the record is cut into stretches, the outputs of one stretch
    are left out, and the free run that passes through it is scored there. The kinds are

    - linear ARX models,
    - networks of lagged inputs and outputs (NARX), see
      :class:`SparseBayesNARXRegressorCV`, which are best where the outputs show the
      state of the system,
    - networks of hidden states, see :class:`SparseBayesStateSpaceRegressor`, which are
      best where the outputs hide a part of it.

    All of them are scored on the same rows of the same stretches. Those close to the
    best are fitted to the whole record, and their predictions are mixed, across kinds
    as well. If no network is better than the best linear model, that is the result.

    Parameters
    ----------
    kinds : "auto", {"linear", "network", "states"} or array-like of these, \
            default="auto"
        What is tried: linear ARX models, networks of lags, networks of hidden states.
        "auto" is all of them. Where no measured row follows another one, only hidden
        states can be tried, if they are among these.
    max_time : float or None, default=None
        Seconds after which no further fit begins; the models are then the best that
        were found so far. Three fifths of it are for the search, the rest for the fits
        of its best models to the whole record. Those of linear models take no time:
        ``fit`` then ends before. What is found in a limited time depends on the machine
        and on ``n_jobs``; without a limit, the same ``random_state`` gives the same
        result.
    focus : {"simulation", "prediction"}, default="simulation"
        Error by which models are compared: of a free run, or of one step ahead.
        Networks of lags are also fitted to it, those of hidden states to free runs in
        any case; a Kalman filter then predicts one step ahead.
    n_estimators : "auto" or int, default="auto"
        Networks of all models together. "auto" aims at 6 to 24, by how far single
        networks scatter, as in :class:`SparseBayesNARXRegressorCV`; starts that end in
        a clearly worse optimum are left out. A linear model is alone.
    {{noise}}
    {{outliers}}
    {{n_jobs}}
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights.
    verbose : bool or int, default=False
        Print one line for the linear models and one per fit of a network, with the time
        that is left for the round of the search, and what was chosen.

    Other Parameters
    ----------------
    lags : "auto" or array-like of int, default="auto"
        Candidates for the longest lag, as in :class:`SparseBayesNARXRegressorCV`.
    n_states : "auto" or array-like of int, default="auto"
        Candidates for the number of hidden states before pruning. "auto" is 4, or 6 to
        10 if a linear model with fewer misses a part of what the system does, as of
        structures with several modes; for differences also one more than there are
        outputs; and more as long as the largest number is the best.
    reg_lambdas : "auto" or array-like of float, default="auto"
        Candidates for ``reg_lambda`` of networks of both kinds. "auto" begins with 6
        and 20 for lags, with 5 for hidden states.
    hidden_layer_sizes : "auto", int or array-like of int, default="auto"
        Units in each hidden layer before pruning. "auto" is one layer, of 5 units for
        lags, of 8 for hidden states, and of 4, 2 and 1 as long as half as many are as
        good.
    cv : int, default=8
        Stretches with equally many measured rows into which every session is cut, or
        fewer where it is short, as in :class:`SparseBayesNARXRegressorCV`. At most five
        of them are left out, in turn.
    output : {"auto", "level", "difference"}, default="auto"
        What models predict: the outputs, or what is added to them from row to row, for
        systems that integrate; see :class:`SparseBayesNARXRegressorCV`.
    max_cycles : int, default=200
        Largest number of cycles of a fit. Fits of lags that are only scored end after
        15 in their last stage. Hidden states are tried with 15 and with this number
        behind the 15 after which starts are selected.
    checkpoint : str, path-like or None, default=None
        File to which ``fit`` writes every fit that is done, as
        :class:`SparseBayesNARXRegressorCV` does: if it was killed, the same call goes
        on from there.

    Attributes
    ----------
    kinds_ : list of {"linear", "network", "states"}
        What was chosen: the kinds in the ensemble, in the order of the alphabet.
    estimators_ : list of estimator
        The ensemble, the networks of the candidate with the least error first: of
        :class:`SparseBayesNARXRegressor` or :class:`SparseBayesStateSpaceRegressor`.
    estimator_weights_ : ndarray of shape (n_members,)
        Their weights, which sum to one.
    lag_relevance_ : dict of str to float
        Only if no member has hidden states: as in :class:`SparseBayesNARXRegressorCV`.
    cv_results_ : dict of ndarray
        One row per reference ("mean", "last value") and per candidate, those that were
        kept first, as in :class:`SparseBayesNARXRegressorCV`. ``model`` is the kind;
        ``n_states`` is 0 for lags, ``lag`` is 0 for hidden states; ``n_units`` is the
        number of their hidden units, and 0 for lags and where layers were given;
        ``activation`` is that of their units, and empty for lags; ``max_cycles`` is the
        largest number of cycles of their last stage, and 0 for lags.
    summary_ : str
        One line: what was chosen, and its error beside those of the references.
    {{band_factor}}
    max_lag_ : int
        Rows needed before the first prediction with ``y``: the longest lag, or four for
        each hidden state.
    outliers_ : ndarray of bool, in the shape of y
        Outputs that are held to be wrong, as in :class:`SparseBayesNARXRegressorCV`.
        Only for ``outliers="replace"``.
    {{inputs}}
    {{signals}}
    n_outputs_ : int
        Number of outputs.
    n_iter_ : int
        Number of solver iterations of the first network.

    See Also
    --------
    SparseBayesNARXRegressorCV : The choice among models of lags alone.
    SparseBayesNARXRegressor : One network of lags with given settings.
    SparseBayesStateSpaceRegressor : One network of hidden states with given settings.

    Notes
    -----
    A state-space network of four states and eight units is tried first, on three
    stretches, with tanh units, and with rectified linear ones where its error is at
    most three times that of the best linear model or network of lags. Others follow
    where it is at most 1.75 times as large: first the better one of these with half of
    the units, as long as that is as good, then the best one of these, fitted until
    convergence, with the search for the number of states of
    :class:`SparseBayesStateSpaceRegressor`. Such fits go on to the whole record, if
    they have seen all of its rows but those of a stretch, as in records of up to 2,000
    rows or of dense ones. As in :class:`SparseBayesNARXRegressorCV`, fits that ended in
    a poor optimum are begun anew.

    With scikit-learn 1.9 or later, ``set_callbacks(ProgressBar())`` shows how far each
    round of the search is, and the time that it still takes (it needs rich). A callback
    that asks to stop ends the search as ``max_time`` does.

    Examples
    --------
    >>> from skbayesnn import DynamicSystemRegressor
    >>> from skbayesnn.datasets import make_coupled_drives
    >>> drives = make_coupled_drives(200, random_state=0)
    >>> model = DynamicSystemRegressor(
    ...     lags=(2,),
    ...     n_states=(2,),
    ...     reg_lambdas=(3.0,),
    ...     hidden_layer_sizes=2,
    ...     n_estimators=1,
    ...     cv=3,
    ...     max_cycles=5,
    ...     random_state=0,
    ... )
    >>> model = model.fit(drives.data, drives.target)
    >>> test = drives.tests.test
    >>> simulated, std = model.predict(
    ...     test.data, y_init=test.target[:10], return_std=True
    ... )
    """

    _parameter_constraints: dict = DYNAMIC_CONSTRAINTS

    def __init__(
        self,
        kinds="auto",
        *,
        max_time=None,
        focus="simulation",
        n_estimators="auto",
        noise="gaussian",
        outliers="replace",
        n_jobs=None,
        random_state=None,
        verbose=False,
        lags="auto",
        n_states="auto",
        reg_lambdas="auto",
        hidden_layer_sizes="auto",
        cv=8,
        output="auto",
        max_cycles=200,
        checkpoint=None,
    ):
        self.kinds = kinds
        self.max_time = max_time
        self.focus = focus
        self.n_estimators = n_estimators
        self.noise = noise
        self.outliers = outliers
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.lags = lags
        self.n_states = n_states
        self.reg_lambdas = reg_lambdas
        self.hidden_layer_sizes = hidden_layer_sizes
        self.cv = cv
        self.output = output
        self.max_cycles = max_cycles
        self.checkpoint = checkpoint

    @no_sample_weight
    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=True)
    @on_one_blas_thread
    def fit(self, X, y, *, sessions=None):
        """Choose the kind of model and its settings, and learn it.

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
        self : DynamicSystemRegressor
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            As :meth:`SparseBayesNARXRegressorCV.fit`, and for kinds and numbers of
            states that are not offered.
        OSError
            For a checkpoint that cannot be written, or that another fit uses.
        """
        given = check_training_record(self, X, y, sessions)
        kinds = check_kinds(self.kinds)
        of_lags = self._estimator_of_lags()
        data, lags, longest = of_lags._cut(given)
        strengths = check_grid(self.reg_lambdas, "reg_lambdas")
        states = check_grid(self.n_states, "n_states")
        data, outliers = without_outliers(data, self.outliers, self.noise)
        data, offered = self._as_rows_allow(data, kinds, lags, states)
        settings = self._settings_of_fits(of_lags, data)
        space = of_lags._search_space(data, lags, strengths, longest)
        grids = self._grids_of_states(data.given, states, settings)
        space = space._replace(**grids, **offered)
        callbacks = Callbacks(self, X, y)
        task = callbacks.begin_fit(None)
        options = settings, space, callbacks, task, COLUMNS_OF_KINDS
        found = search_members(self, data, *options)
        self._model = found.model._replace(focus=self.focus)
        kinds = {kind_of(model) for model in found.members.models}
        others = {"kinds_": sorted(kinds), **outliers}
        if "states" not in kinds:
            ensemble, members = found.model.ensemble, found.members.models
            others["lag_relevance_"] = lag_relevance(self, ensemble, members)
        set_attributes(self, search_attributes(found, others))
        callbacks.end(task, lambda: fitted_attributes(self))
        if self.verbose:
            print(self.summary_)
        return self

    def _as_rows_allow(self, data, kinds, lags, states):
        """What can be tried, where missing values leave few complete windows.

        Returns
        -------
        data : CutRecord
            With the rows that are scored.
        offered : dict
            Fields of the `SearchSpace`: the kinds, and the outputs if these are not
            those of models of lags.
        """
        if "states" not in kinds:
            check_windows(data, lags)
            return data, {"kinds": kinds}
        if has_windows(data, lags):
            n_before = _run_in(lags, states)
            return rows_for_all(data, n_before, self.focus), {"kinds": kinds}
        # without linear models, nothing tells whether differences are needed
        output = "level" if self.output == "auto" else self.output
        return data, {"kinds": ("states",), "outputs": (output,)}

    def _estimator_of_lags(self):
        """The estimator that searches for models of lags."""
        parameters = {name: getattr(self, name) for name in OF_LAGS}
        units = self.hidden_layer_sizes
        if isinstance(units, str):
            units = UNITS_OF_LAGS
        search = SparseBayesNARXRegressorCV(hidden_layer_sizes=units, **parameters)
        copy_input_attributes(self, search)
        return search

    def _grids_of_states(self, given, states, settings):
        """Fields of the `SearchSpace`: what is tried of networks of hidden states."""
        first = STATES
        if isinstance(states, str) and "states" in check_kinds(self.kinds):
            numbers = range(STATES[0], MAX_STATES + 1, 2)
            first = (least_states(given.U, given.Y, given.starts, numbers),)
        given = settings.states.get("hidden_layer_sizes")
        has_units = given is None or len(check_hidden_layer_sizes(given)) > 0
        cycles = {min(self.max_cycles, FEW_CYCLES), self.max_cycles}
        return {
            "states": make_grid(states, first),
            "units": Grid(STATES_UNITS, True) if given is None else Grid((0,)),
            "activations": ACTIVATIONS if has_units else ACTIVATIONS[:1],
            "states_cycles": tuple(sorted(cycles)),
        }

    def _settings_of_fits(self, of_lags, data):
        """`Settings` of networks of lags and of hidden states."""
        states = {"noise": self.noise, "n_restarts": STATES_STARTS}
        if not isinstance(self.hidden_layer_sizes, str):
            states["hidden_layer_sizes"] = self.hidden_layer_sizes
        return of_lags._settings_of_fits(data)._replace(states=states)


def _run_in(lags, states):
    """Rows after which a prediction can begin, of the candidates with the most."""
    longest = LONGEST_LAG if isinstance(lags, str) else max(lags)
    most_states = MOST_STATES if isinstance(states, str) else max(states)
    return max(longest, rows_that_tell(most_states))


def kind_of(model):
    """The kind of a member, one of `parameters.KINDS`."""
    if isinstance(model, SparseBayesStateSpaceRegressor):
        return "states"
    has_units = len(check_hidden_layer_sizes(model.hidden_layer_sizes)) > 0
    return "network" if has_units else "linear"
