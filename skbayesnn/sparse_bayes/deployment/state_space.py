"""A fitted dynamic model as x(t+1) = f(x(t), u(t)), y(t) = g(x(t), u(t))."""

from collections.abc import Mapping
from numbers import Integral

import numpy as np

from ..._frames import check_names, check_row_names
from ..._optional import import_extra
from ..._time_axis import without_time
from ..._validation import check_count
from ..prediction.state_streaming import StateEstimate
from ..prediction.streaming import EnsembleState
from . import operating_points as points
from . import responses
from .linearization import linearize
from .operating_points import OperatingPoint


class StateSpaceModel:
    r"""A fitted dynamic model as a nonlinear state space in discrete time.

    :meth:`SparseBayesNARXRegressor.to_state_space` makes one:

    .. math:: x_{t+1} = f(x_t, u_t), \quad y_t = g(x_t, u_t).

    The state holds the past values that the networks still read: for each input, then
    for each output, its last values, the newest first. That of a network with hidden
    states holds those that are left of them. Each network of an ensemble runs on past
    outputs, or hidden states, of its own; y is their weighted median, as in
    ``predict``. All values are in the user's units, which hidden states do not have; y
    is a vector, also of a single output.

    Parameters
    ----------
    equations : Equations
        Of the fitted networks.
    sampling_time : float or None, default=None
        Time between two rows.
    named : tuple of bool of length 2, default=(False, False)
        Whether inputs, and outputs, had names in fit, with which those of frames are
        compared.

    Attributes
    ----------
    n_states : int
        Length of the state.
    n_inputs : int
        Number of inputs.
    n_outputs : int
        Number of outputs.
    input_names : list of str
        Names of the inputs.
    output_names : list of str
        Names of the outputs.
    state_names : list of str
        Such as "u(t-1)", "y(t-1)"; in an ensemble "y[0](t-1)" of the first network.
        Hidden ones are "state0", "state1", ..., in an ensemble "state0[0]".
    is_integrating : bool
        Whether the model was fitted with ``output="difference"``.

    See Also
    --------
    SparseBayesNARXRegressor.stream : Predicts row by row, in compiled code.

    Notes
    -----
    ``predict`` and ``stream`` give NaN from where a run diverges on. f and g do not:
    they are smooth for what optimises through them (with an activation that is, and but
    for the median of an ensemble, whose derivatives are those of the network that it
    takes).

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(random_state=0).fit(u, y)
    >>> tanks = model.to_state_space(sampling_time=4.0)
    >>> x = tanks.initial_state(u[:50], y[:50])
    >>> x, level = tanks.step(x, u[50])
    >>> point = tanks.find_operating_point(u=3.0)
    >>> bool(np.allclose(tanks.f(point.x, point.u), point.x))
    True
    """

    def __init__(self, equations, sampling_time=None, *, named=(False, False)):
        self._equations = equations
        self.sampling_time = sampling_time
        self.n_states, self.n_inputs = equations.n_states, equations.n_inputs
        self.n_outputs = equations.n_outputs
        self.state_names = equations.state_names
        self.input_names = equations.input_names
        self.output_names = equations.output_names
        self.is_integrating = equations.is_integrating
        self._names_of_inputs = self.input_names if named[0] else None
        self._names_of_outputs = self.output_names if named[1] else None

    def __repr__(self):
        return (
            f"{type(self).__name__}(n_states={self.n_states}, "
            f"input_names={self.input_names}, output_names={self.output_names}, "
            f"sampling_time={self.sampling_time})"
        )

    # -- the equations ---------------------------------------------------------------

    def step(self, x, u=None):
        """Compute the next state and the outputs.

        Parameters
        ----------
        x : array-like of shape (n_states,)
            The state, real or complex.
        u : float or array-like of shape (n_inputs,), default=None
            Inputs of the row; None for a model without inputs.

        Returns
        -------
        x_next : ndarray of shape (n_states,)
            The state of the next row, f(x, u).
        y : ndarray of shape (n_outputs,)
            The outputs of the row, g(x, u).
        """
        return self._equations.step(*self._checked(x, u))

    def f(self, x, u=None):
        """Compute the next state.

        Parameters
        ----------
        x : array-like of shape (n_states,)
            The state.
        u : float or array-like of shape (n_inputs,), default=None
            Inputs of the row.

        Returns
        -------
        x_next : ndarray of shape (n_states,)
            The state of the next row.
        """
        return self.step(x, u)[0]

    def g(self, x, u=None):
        """Compute the outputs.

        Parameters
        ----------
        x : array-like of shape (n_states,)
            The state.
        u : float or array-like of shape (n_inputs,), default=None
            Inputs of the row.

        Returns
        -------
        y : ndarray of shape (n_outputs,)
            The outputs of the row.
        """
        return self.step(x, u)[1]

    def jacobians(self, x, u=None):
        """Compute the exact derivatives of f and g.

        Parameters
        ----------
        x : array-like of shape (n_states,)
            The state.
        u : float or array-like of shape (n_inputs,), default=None
            Inputs of the row.

        Returns
        -------
        A : ndarray of shape (n_states, n_states)
            Derivatives of f by x.
        B : ndarray of shape (n_states, n_inputs)
            Derivatives of f by u.
        C : ndarray of shape (n_outputs, n_states)
            Derivatives of g by x.
        D : ndarray of shape (n_outputs, n_inputs)
            Derivatives of g by u.
        """
        return self._equations.jacobians(*self._checked(x, u))

    def initial_state(self, X_init=None, y_init=None, *, state=None):
        """Make the state behind measured rows.

        Parameters
        ----------
        X_init : array-like of shape (n_init, n_inputs), default=None
            Inputs of the rows before the first step, at least as many as the longest
            lag; any number for hidden states, which a filter estimates.
        y_init : array-like of shape (n_init,) or (n_init, n_outputs), default=None
            Measured outputs of these rows. Without them, inputs and outputs are taken
            to have been at their training means.
        state : SimulationState, StateEstimate or EnsembleState, default=None
            Where a free run of the same model stopped, instead of rows.

        Returns
        -------
        x : ndarray of shape (n_states,)
            The state of the next row.

        Raises
        ------
        ValueError
            If the rows are too few, or hold missing values, and for names other than in
            ``fit``, or in another order.
        """
        if state is not None:
            return self._behind_stopped(state)
        if X_init is None and y_init is None:
            return self._equations.mean_state()
        if y_init is None or (X_init is None and self.n_inputs):
            raise ValueError("Pass both X_init and y_init, or none of them.")
        X_init, y_init = without_time(X_init, "X_init"), without_time(y_init, "y_init")
        check_names(X_init, self._names_of_inputs, "X_init", "X")
        check_names(y_init, self._names_of_outputs, "y_init", "y")
        Y = np.asarray(y_init, dtype=np.float64)
        Y = Y.reshape(len(Y), -1)
        U = np.empty((len(Y), 0)) if X_init is None else np.asarray(X_init, np.float64)
        U = U.reshape(len(U), -1)
        if U.shape != (len(Y), self.n_inputs) or Y.shape[1] != self.n_outputs:
            raise ValueError(
                f"X_init and y_init must hold {self.n_inputs} inputs and "
                f"{self.n_outputs} outputs of the same rows; got shapes {U.shape} and "
                f"{Y.shape}."
            )
        n_rows = self._equations.n_rows_read
        if len(Y) < n_rows:
            raise ValueError(
                f"X_init and y_init must have at least {n_rows} rows, as many as the "
                f"longest lag has; got {len(Y)}."
            )
        x = self._equations.state_behind(U, Y)
        if not np.isfinite(x).all():
            raise ValueError(
                "X_init and y_init must hold no missing values in their last "
                f"{max(n_rows, 1)} rows."
            )
        return x

    def _behind_stopped(self, state):
        """The state where a free run of the model stopped."""
        parts = state.parts if isinstance(state, EnsembleState) else (state,)
        outputs, beliefs, inputs = [], [], parts[0].inputs[:0]
        for part in parts:
            if isinstance(part, StateEstimate):
                beliefs += list(part.means)
                outputs += [np.empty((0, self.n_outputs))] * len(part.means)
            else:
                beliefs += [None] * len(part.outputs)
                outputs += list(part.outputs)
                inputs = max(inputs, part.inputs, key=len)
        return self._equations.stopped_state(inputs, outputs, beliefs)

    def simulate(self, X, x=None, *, return_state=False):
        """Run freely through rows of inputs.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            Inputs of the rows. A column "time" is no input.
        x : array-like of shape (n_states,), default=None
            State of the first row; that of the training means by default.
        return_state : bool, default=False
            Return the state behind the last row as well.

        Returns
        -------
        y : ndarray of shape (n_rows, n_outputs)
            The outputs.
        x_next : ndarray of shape (n_states,)
            Only if ``return_state=True``.

        Raises
        ------
        ValueError
            For another number of inputs than in ``fit``, other names or another order.
        """
        X = without_time(X, "X")
        check_names(X, self._names_of_inputs, "X", "X")
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_inputs:
            raise ValueError(
                f"X must have shape (n_rows, {self.n_inputs}); got shape {X.shape}."
            )
        x = self.initial_state() if x is None else x
        out = np.empty((len(X), self.n_outputs))
        for t, u in enumerate(X):
            x, out[t] = self.step(x, u)
        return (out, x) if return_state else out

    # -- at rest, and away from it ---------------------------------------------------

    def find_operating_point(self, u=None, y=None):
        """Find inputs and outputs at which the model rests.

        Of several points, a stable one within the range of the training record is
        preferred. Where Newton's method finds none at given inputs, a free run with
        them is given 2000 rows to settle. The median of an ensemble may jump where its
        networks have several points of rest; an output that it skips has none.

        Parameters
        ----------
        u : float, array-like of shape (n_inputs,) or dict, default=None
            Inputs, NaN where they are to be found. By default all are if ``y`` is
            given or the model is integrating, and none is otherwise: the training
            means. A dict, as ``{"feed": 2.0}``, has some of them by their names, and
            the default for the others.
        y : float, array-like of shape (n_outputs,) or dict, default=None
            Outputs, NaN where they are to be found, as by default. An integrating model
            rests at any level; by default at the training means. Or some by name.

        Returns
        -------
        point : OperatingPoint
            The state x, and u and y there, with f(x, u) = x.

        Raises
        ------
        ValueError
            If not as many inputs are free as outputs are given, if none was found, and
            for an ensemble of integrating models, which rest at different inputs.

        Warns
        -----
        ExtrapolationWarning
            If an input is outside the range of the training record, or between two
            levels that it alone has, by more than a tenth of the range.
        """
        equations = self._equations
        if self.is_integrating and len(equations.steps) > 1:
            raise ValueError(
                "Integrating networks of an ensemble rest at different inputs: ask "
                "those of estimators_ one by one."
            )
        u_mean, y_mean = equations.means
        all_free = y is not None or self.is_integrating
        u = self._inputs(u, np.full(self.n_inputs, np.nan) if all_free else u_mean)
        free = np.full(self.n_outputs, np.nan)
        y = self._outputs(y, y_mean if self.is_integrating else free)
        U, Y = points.find(equations, u, y, equations.guesses())
        points.warn_outside(equations, U)
        x = equations.constant_state(U, Y)
        return OperatingPoint(x, U, equations.combined(Y)[equations.n_hidden :])

    def linearize(self, point=None, *, x=None, u=None):
        """Linearise the model, with standard errors by the posterior of the weights.

        Parameters
        ----------
        point : OperatingPoint, default=None
            From :meth:`find_operating_point`; by default that of the training means.
        x : array-like of shape (n_states,), default=None
            Any other state, instead of ``point``.
        u : float or array-like of shape (n_inputs,), default=None
            The inputs that belong to ``x``.

        Returns
        -------
        linear : LinearizedModel
            A, B, C and D with standard errors, poles, and the bridge to python-control.
        """
        if x is not None:
            x, u = self._checked(x, u)
            point = OperatingPoint(x, u, self.g(x, u))
        elif point is None:
            point = self.find_operating_point()
        return linearize(self._equations, point, self.sampling_time)

    def step_response(self, n_steps=100, *, u=None, y=None, amplitude=1.0, input=0):
        """Compute how the outputs move after a step of an input.

        The nonlinear model moves, so the response depends on the amplitude and on the
        point from which it starts.

        Parameters
        ----------
        n_steps : int, default=100
            Rows to compute; in the first of them, the input has already moved.
        u : float, array-like of shape (n_inputs,) or dict, default=None
            Inputs at rest before the step; the training means by default, for an
            integrating model those of its operating point. A dict has some of them by
            their names, with the training means of the others.
        y : float, array-like of shape (n_outputs,) or dict, default=None
            Level of an integrating model; the training means by default. Others rest
            where ``u`` has them.
        amplitude : float, default=1.0
            Height of the step, in units of the input.
        input : int or str, default=0
            Which input moves, its number or its name.

        Returns
        -------
        response : Response
            Time, deviations from the outputs without the step, and their standard
            deviations.
        """
        return self._response(n_steps, u, y, amplitude, input, slice(None))

    def impulse_response(self, n_steps=100, *, u=None, y=None, amplitude=1.0, input=0):
        """Compute how the outputs move after an input was moved for a single row.

        Parameters
        ----------
        n_steps : int, default=100
            Rows to compute; in the first of them the input is moved.
        u : float, array-like of shape (n_inputs,) or dict, default=None
            Inputs at rest, as in :meth:`step_response`.
        y : float, array-like of shape (n_outputs,) or dict, default=None
            Level of an integrating model.
        amplitude : float, default=1.0
            Height of the impulse, in units of the input.
        input : int or str, default=0
            Which input moves, its number or its name.

        Returns
        -------
        response : Response
            As of :meth:`step_response`.
        """
        return self._response(n_steps, u, y, amplitude, input, slice(1))

    def static_gain(self, values, *, u=None, input=0):
        """Compute the outputs at rest over the values of an input.

        Parameters
        ----------
        values : array-like of shape (n_values,)
            Values of the input, best in order: each search starts at the outputs of
            the value before.
        u : float, array-like of shape (n_inputs,) or dict, default=None
            The other inputs, in a dict by their names; the training means by default.
        input : int or str, default=0
            Which input varies, its number or its name.

        Returns
        -------
        gain : StaticGain
            Inputs, outputs, their standard deviations, and the slope of the curve.

        Raises
        ------
        ValueError
            If the model is integrating, or has no point of rest for a value, and for
            values of several inputs.
        """
        if self.is_integrating:
            raise ValueError("An integrating model has no static gain.")
        u = self._inputs(u, self._equations.means[0]).copy()
        values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if values.ndim > 1:
            raise ValueError(
                "values must be those of one input, of shape (n_values,); got shape "
                f"{values.shape}. Choose the input by input=, and set the others by "
                "u=."
            )
        k = self._input_number(input)
        return responses.static_gain(self._equations, u, values, k)

    def to_control(self):
        """Convert to a nonlinear system of python-control.

        Returns
        -------
        system : control.NonlinearIOSystem
            In discrete time, with the names of states, inputs and outputs.

        Raises
        ------
        ImportError
            Without python-control: ``pip install control``.
        """
        control = import_extra("control", "to_control")
        dt = True if self.sampling_time is None else self.sampling_time
        return control.nlsys(
            lambda t, x, u, params: self.f(x, u),
            lambda t, x, u, params: self.g(x, u),
            states=self.state_names,
            inputs=self.input_names,
            outputs=self.output_names,
            dt=dt,
        )

    def _checked(self, x, u):
        check_row_names(u, self._names_of_inputs, "u", "X")
        u = np.zeros(0) if u is None else u
        x = _as_vector(x, self.n_states, "x", "states")
        return x, _as_vector(u, self.n_inputs, "u", "inputs")

    def _inputs(self, u, default):
        """``u`` as a vector; ``default`` for what is not given."""
        return _vector_of(u, default, self.input_names, "u", "inputs")

    def _outputs(self, y, default):
        """``y`` as a vector; ``default`` for what is not given."""
        return _vector_of(y, default, self.output_names, "y", "outputs")

    def _input_number(self, input):
        if isinstance(input, str) and input in self.input_names:
            return self.input_names.index(input)
        if isinstance(input, Integral) and 0 <= input < self.n_inputs:
            return int(input)
        raise ValueError(
            f"input must be a number below {self.n_inputs} or one of "
            f"{self.input_names}; got {input!r}."
        )

    def _response(self, n_steps, u, y, amplitude, input, rows):
        check_count(n_steps, "n_steps", 1)
        k = self._input_number(input)
        if u is None and self.is_integrating:
            u = self.find_operating_point(y=y).u
        u_mean, y_mean = self._equations.means
        u, y = self._inputs(u, u_mean), self._outputs(y, y_mean)
        change = np.zeros((n_steps, self.n_inputs))
        change[rows, k] = _check_amplitude(amplitude, self.input_names[k])
        forecast = responses.respond(self._equations, u, y, change)
        time = np.arange(n_steps) * (self.sampling_time or 1)
        return responses.Response(time, forecast.mean, forecast.std)


def _check_amplitude(amplitude, name):
    """The change of one input, a finite number."""
    value = np.asarray(amplitude)
    if (
        value.size != 1
        or value.dtype.kind not in "fiub"
        or not np.isfinite(value).all()
    ):
        found = f"{value.size} values" if value.size != 1 else repr(amplitude)
        raise ValueError(
            f"amplitude must be one number, the change of the input {name}; got "
            f"{found}. Choose the input by input=..., and respond to one at a time."
        )
    return float(value.item())


def _vector_of(value, default, names, name, what):
    """A vector of numbers, of which a dict gives some, and None gives none."""
    if not isinstance(value, Mapping):
        value = default if value is None else value
        return _as_vector(value, len(names), name, what)
    unknown = [key for key in value if key not in names]
    if unknown:
        raise ValueError(
            f"{name} must name {what} of the model, which are {list(names)}; got "
            f"{unknown[0]!r}."
        )
    given = _as_vector(list(value.values()), len(value), name, what)
    vector = np.array(default, dtype=np.float64)
    vector[[names.index(key) for key in value]] = given
    return vector


def _as_vector(value, length, name, what):
    """A vector of numbers, real or complex."""
    array = np.asarray(value)
    if array.dtype.kind in "OUSV":
        raise ValueError(
            f"{name} must hold {length} {what} as numbers, in the order of the record; "
            f"got {value!r}."
        )
    if array.dtype.kind not in "fc":
        array = array.astype(np.float64)
    if array.size != length or array.ndim > 1:
        raise ValueError(f"{name} must hold {length} {what}; got shape {array.shape}.")
    return array.reshape(length)
