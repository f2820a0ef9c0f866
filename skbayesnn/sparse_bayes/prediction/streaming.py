"""Free runs that resume from a saved state: whole records, or row by row."""

from typing import NamedTuple

import numpy as np

from ... import _validation as checks
from ..._frames import check_names, check_row_names
from ..._time_axis import without_time
from ..kernels import packed as stream
from ..records.layout import Record
from .ensemble import combine
from .forecast import Forecast, of_network
from .state_streaming import (
    StateEstimate,
    StateSteps,
    estimate_after,
    estimate_shapes,
    run_by_steps,
)


class SimulationState(NamedTuple):
    """All that a simulation needs to resume: the rows that its lags still reach.

    All values are in the user's units, the latest row last.

    Parameters
    ----------
    inputs : ndarray of shape (max_lag, n_inputs)
        Inputs of the last rows.
    outputs : ndarray of shape (n_members, max_lag, n_outputs)
        Outputs of each network of the model in these rows: measured, or its own.
    diverged : ndarray of bool of shape (n_members,)
        Networks that have left the plausible range, and predict no more.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(2, 2, random_state=0).fit(u, y)
    >>> first, state = model.predict(u[:100], y_init=y[:50], return_state=True)
    >>> state.inputs.shape, state.outputs.shape
    ((2, 1), (1, 2, 1))
    >>> rest = model.predict(u[100:], state=state)  # continues there
    """

    inputs: np.ndarray
    outputs: np.ndarray
    diverged: np.ndarray


class EnsembleState(NamedTuple):
    """Where an ensemble of networks on lags and with hidden states has stopped.

    Parameters
    ----------
    parts : tuple of SimulationState or StateEstimate
        One for each network.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EnsembleState, SimulationState
    >>> inputs, outputs = np.zeros((2, 1)), np.zeros((1, 2, 1))
    >>> lags = SimulationState(inputs, outputs, np.zeros(1, dtype=bool))
    >>> EnsembleState((lags,)).inputs.shape
    (2, 1)
    """

    parts: tuple

    @property
    def inputs(self):
        """Inputs of the last rows, as many as the longest memory has."""
        return max((part.inputs for part in self.parts), key=len)


def state_after(ensemble, U, Y):
    """The state after rows whose outputs are the same for all members."""
    if ensemble.is_mixed:
        return EnsembleState(
            tuple(state_after(one, U, Y) for one in ensemble.singles())
        )
    if ensemble.has_states:
        return estimate_after(ensemble, U, Y)
    n_members, first = len(ensemble.members), len(Y) - ensemble.max_lag
    outputs = np.tile(Y[first:], (n_members, 1, 1))
    return SimulationState(U[first:].copy(), outputs, np.zeros(n_members, dtype=bool))


def state_shapes(ensemble):
    """Shapes of the fields of the state of an ensemble."""
    if ensemble.has_states:
        return estimate_shapes(ensemble)
    n_members, max_lag = len(ensemble.members), ensemble.max_lag
    return (
        (max_lag, ensemble.n_inputs),
        (n_members, max_lag, ensemble.n_outputs),
        (n_members,),
    )


def check_state(ensemble, state):
    """The state as arrays of its own; refused if it belongs to another model."""
    if ensemble.is_mixed:
        singles = ensemble.singles()
        parts = _check_kind(EnsembleState, state).parts
        if len(parts) != len(singles):
            raise ValueError(
                f"state is of another model: parts must hold {len(singles)} states, "
                f"one per network; got {len(parts)}."
            )
        return EnsembleState(tuple(map(check_state, singles, parts)))
    kind = StateEstimate if ensemble.has_states else SimulationState
    return _checked(kind, state_shapes(ensemble), state)


def _check_kind(kind, state):
    if not isinstance(state, kind):
        raise TypeError(
            f"state must be of type {kind.__name__}, as predict(..., "
            "return_state=True) and StreamingPredictor.state give it; got "
            f"{type(state).__name__}."
        )
    return state


def _checked(kind, shapes, state):
    _check_kind(kind, state)
    *numbers, diverged = state
    checked = kind(
        *(np.array(values, dtype=np.float64) for values in numbers),
        np.array(diverged, dtype=bool),
    )
    for name, array, shape in zip(state._fields, checked, shapes, strict=True):
        if array.shape != shape:
            raise ValueError(
                f"state is of another model: {name} must have shape {shape}; got "
                f"{array.shape}."
            )
    return checked


def resume(ensemble, state, U):
    """Forecast of the rows ``U`` that follow a state, and the state after them."""
    if ensemble.is_mixed:
        given = zip(ensemble.singles(), state.parts, strict=True)
        forecasts, parts = zip(*(resume(*one, U) for one in given), strict=True)
        return combine(forecasts, ensemble.weights), EnsembleState(parts)
    if ensemble.has_states:
        return _resume_states(ensemble, state, U)
    before = len(state.inputs)
    U = np.concatenate([state.inputs, U])
    starts = np.array([0, len(U)])
    forecasts, outputs = [], []
    for member, known, gone in zip(
        ensemble.members, state.outputs, state.diverged, strict=True
    ):
        Y = np.full((len(U), known.shape[1]), np.nan)
        Y[:before] = known
        whole = Forecast(Y, None, len(U) - before)
        if not gone:
            record = Record(U, Y, member.lags, starts)
            whole = of_network(member, record, before, np.inf, False)
        forecasts.append(whole._replace(mean=whole.mean[before:]))
        outputs.append(whole.mean[len(U) - before :])
    diverged = np.array([one.n_diverged > 0 for one in forecasts])
    return combine(forecasts, ensemble.weights), SimulationState(
        U[len(U) - before :].copy(), np.array(outputs), diverged
    )


def _resume_states(ensemble, state, U):
    steps = StateSteps(ensemble)
    steps.estimate = state
    mean = np.empty((len(U), ensemble.n_outputs))
    steps.run(U, mean)
    state = steps.estimate
    n_diverged = int(np.isnan(mean).any(axis=1).sum()) if state.diverged.any() else 0
    return Forecast(mean, None, n_diverged), state


def _member(fitted, lags):
    """What a stream needs of a fitted network."""
    used, scaling = fitted.network.units[0], fitted.scaling
    return stream.Member(
        fitted.network.layers,
        lags.signal[used],
        lags.lag[used],
        scaling.x_offset[used],
        scaling.x_scale[used],
        scaling.y_offset,
        scaling.y_scale,
        lags.difference,
    )


class _LaggedSteps:
    """Steps of an ensemble of networks on lags, packed for `kernels.packed`."""

    def __init__(self, ensemble):
        self._n_inputs = ensemble.n_inputs
        self._shapes = state_shapes(ensemble)
        self.memory, self._layout = stream.pack(
            [_member(*member) for member in ensemble.members],
            ensemble.weights,
            ensemble.n_inputs,
            ensemble.n_outputs,
            ensemble.max_lag + 1,
            max(fitted.scaling.limit for fitted, _ in ensemble.members),
        )
        self._compile()

    def _compile(self):
        """Compile, or load from the cache, now rather than in the control loop."""
        self.step()
        self.update()
        self.run(np.empty((0, self._n_inputs)), np.empty((0, 1)))

    def step(self):
        return stream.step(self.memory, self._layout)

    def update(self):
        stream.update(self.memory, self._layout)

    def run(self, X, out):
        stream.run(self.memory, self._layout, X, out)

    @property
    def state(self):
        histories = np.array(stream.histories(self.memory, self._layout))
        newest = self._layout[stream.NOW] // histories.shape[2]
        # oldest first; no lag of the next row reaches that one
        rows = np.roll(histories, -1 - newest, axis=1)[:, 1:]
        return SimulationState(
            rows[0, :, : self._n_inputs].copy(),
            rows[:, :, self._n_inputs :].copy(),
            stream.diverged(self._layout).astype(bool),
        )

    @state.setter
    def state(self, state):
        state = _checked(SimulationState, self._shapes, state)
        histories = stream.histories(self.memory, self._layout)
        for history, outputs in zip(histories, state.outputs, strict=True):
            history[0] = np.nan
            history[1:, : self._n_inputs] = state.inputs
            history[1:, self._n_inputs :] = outputs
        stream.diverged(self._layout)[:] = state.diverged
        n_rows = len(histories[0])
        self._layout[stream.NOW] = (n_rows - 1) * histories[0].shape[1]


class _StateSteps(StateSteps):
    """Steps of an ensemble of networks with hidden states."""

    def __init__(self, ensemble):
        super().__init__(ensemble)
        self._shapes = state_shapes(ensemble)

    @property
    def state(self):
        return self.estimate

    @state.setter
    def state(self, state):
        self.estimate = _checked(StateEstimate, self._shapes, state)


class _MixedSteps:
    """Steps of an ensemble of both kinds, each network by itself."""

    def __init__(self, ensemble):
        self._n_inputs = ensemble.n_inputs
        self._weights = ensemble.weights
        self._members = [_steps_of(one) for one in ensemble.singles()]
        self.memory = np.full(ensemble.n_inputs + ensemble.n_outputs, np.nan)

    def step(self):
        rows = []
        for member in self._members:
            member.memory[: self._n_inputs] = self.memory[: self._n_inputs]
            member.step()
            row = member.memory[self._n_inputs : len(self.memory)]
            rows.append(Forecast(row[None].copy(), None, 0))
        outputs = combine(rows, self._weights).mean[0]
        self.memory[self._n_inputs :] = outputs
        return float(outputs[0])

    def update(self):
        for member in self._members:
            outputs = self.memory[self._n_inputs :]
            member.memory[self._n_inputs : len(self.memory)] = outputs
            member.update()

    def run(self, X, out):
        run_by_steps(self, X, out)

    @property
    def state(self):
        return EnsembleState(tuple(member.state for member in self._members))

    @state.setter
    def state(self, state):
        parts = _check_kind(EnsembleState, state).parts
        for member, part in zip(self._members, parts, strict=True):
            member.state = part


def _steps_of(ensemble):
    """What takes the steps of an ensemble."""
    if ensemble.is_mixed:
        return _MixedSteps(ensemble)
    return _StateSteps(ensemble) if ensemble.has_states else _LaggedSteps(ensemble)


class StreamingPredictor:
    """A model that predicts row by row, for use inside a controller.

    :meth:`SparseBayesNARXRegressor.stream` makes one. All memory is allocated then; a
    step allocates nothing, and takes less than 2 microseconds for a pruned network.
    With hidden states (:meth:`SparseBayesStateSpaceRegressor.stream`) it is an extended
    Kalman filter, which takes about 15 microseconds a step and as much for an update.
    The object holds a copy of what it needs of the model, which may be refitted in the
    meantime. One object is one simulation, which two threads must not step at the same
    time. ``copy.deepcopy`` and ``pickle`` give another that resumes from the same rows.

    Parameters
    ----------
    ensemble : Ensemble
        The fitted networks of a model.
    state : SimulationState, StateEstimate or EnsembleState
        The rows from which to resume, or what is known of the hidden states.
    single_output : bool, default=False
        Whether predictions are floats; for models of one output.
    input_names, output_names : sequence of str, default=None
        With which those of a frame, or of a row of one, are compared.

    See Also
    --------
    SparseBayesNARXRegressor.predict : Predictions of whole records, with standard
        deviations.

    Notes
    -----
    Where ``predict`` warns of a divergence, a stream is silent: its predictions are NaN
    from there on, until it is given measured outputs or another state.

    Examples
    --------
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(2, 2, random_state=0).fit(u, y)
    >>> stream = model.stream(u[:50], y[:50])
    >>> level = stream.step(3.5)  # free run: from the model's own outputs
    >>> stream.update(level + 0.1)  # what was measured then
    >>> level = stream.step(3.5)  # one step ahead of the measured output
    >>> saved = stream.state
    >>> plan = stream.run([[3.0], [2.5], [2.0]])  # what would happen
    >>> stream.state = saved
    """

    def __init__(
        self,
        ensemble,
        state,
        *,
        single_output=False,
        input_names=None,
        output_names=None,
    ):
        self._input_names, self._output_names = input_names, output_names
        n_inputs, n_outputs = ensemble.n_inputs, ensemble.n_outputs
        self._n_inputs, self._n_outputs = n_inputs, n_outputs
        self._flat = single_output
        self._one_input = n_inputs == 1
        self._output = slice(n_inputs, n_inputs + n_outputs)
        self._steps = _steps_of(ensemble)
        self._memory = self._steps.memory
        self.state = state

    def step(self, u=None):
        """Predict the next row from its inputs.

        Parameters
        ----------
        u : float or array-like of shape (n_inputs,), default=None
            Inputs of the row to predict; a float, the fastest, for a single input;
            None for a model without inputs. NaN where missing.

        Returns
        -------
        y_pred : float or ndarray of shape (n_outputs,)
            Its predicted output, a float if the model was fitted to a ``y`` of one
            dimension. NaN if a value in its window is missing, and from where the run
            diverges on.
        """
        if self._one_input and isinstance(u, float):
            self._memory[0] = u
        else:
            self._load_inputs(u)
        first = self._steps.step()
        self._has_stepped = True
        return first if self._flat else self._memory[self._output].copy()

    def update(self, y):
        """Replace the output predicted last by the measured one.

        The next step is then one step ahead of a measured output. A network that
        diverged resumes once its whole window is measured; one with hidden states at
        the next measured row, as if nothing had been known before.

        Parameters
        ----------
        y : float or array-like of shape (n_outputs,)
            Measured outputs of the row predicted last. Where it is NaN, the prediction
            stays. A second call for the same row corrects the first: it replaces what
            that one has told, but where it is NaN.

        Raises
        ------
        ValueError
            If no row was predicted since the stream was made, or since its state was
            set.
        """
        if not self._has_stepped:
            raise ValueError(
                "update takes the outputs of the row predicted last, and none was "
                "predicted yet: call step first."
            )
        if self._flat and isinstance(y, float):
            self._memory[self._n_inputs] = y
        else:
            check_row_names(y, self._output_names, "y", "y")
            row = checks.check_row(y, self._n_outputs, "y", "outputs")
            self._memory[self._output] = row
        self._steps.update()

    def run(self, X):
        """Predict many rows, each from the outputs predicted before.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            Inputs of the rows to predict, NaN where missing. A column "time" is no
            input.

        Returns
        -------
        y_pred : ndarray of shape (n_rows,) or (n_rows, n_outputs)
            As ``n_rows`` calls of ``step`` give it.
        """
        X = without_time(X, "X")
        check_names(X, self._input_names, "X", "X")
        # a copy: for an array that is read-only the kernel would be compiled anew
        X = np.array(X, dtype=np.float64, order="C")
        if X.ndim != 2 or X.shape[1] != self._n_inputs:
            raise ValueError(
                f"X must have shape (n_rows, {self._n_inputs}); got shape {X.shape}."
            )
        out = np.empty((len(X), self._n_outputs))
        self._steps.run(X, out)
        self._has_stepped |= len(X) > 0
        return out[:, 0] if self._flat else out

    @property
    def state(self):
        """What the next step needs of the past, as a copy; set it to resume elsewhere.

        Returns
        -------
        state : SimulationState, StateEstimate or EnsembleState
            The rows that lags reach, what is known of hidden states, or, for an
            ensemble of both kinds, one of these for each network. It can be given to
            ``predict`` and ``stream`` of the same model as well.
        """
        return self._steps.state

    @state.setter
    def state(self, state):
        self._steps.state = state
        self._has_stepped = False

    def _load_inputs(self, u):
        if u is None and not self._n_inputs:
            return
        check_row_names(u, self._input_names, "u", "X")
        # not None, which would become a NaN
        row = checks.check_row(() if u is None else u, self._n_inputs, "u", "inputs")
        self._memory[: self._n_inputs] = row
