"""A model linearised at a point, as matrices with standard errors."""

import numpy as np

from ..._optional import import_extra
from ..prediction.posterior import apply_covariance


class LinearizedModel:
    r"""A state space that is linear around a point.

    :meth:`StateSpaceModel.linearize` makes one. With deviations from the point,

    .. math:: x_{t+1} = A x_t + B u_t, \quad y_t = C x_t + D u_t.

    Parameters
    ----------
    A : ndarray of shape (n_states, n_states)
        Derivatives of the next state by the state.
    B : ndarray of shape (n_states, n_inputs)
        Derivatives of the next state by the inputs.
    C : ndarray of shape (n_outputs, n_states)
        Derivatives of the outputs by the state.
    D : ndarray of shape (n_outputs, n_inputs)
        Derivatives of the outputs by the inputs.
    std : tuple of ndarray
        Standard errors of the entries of A, B, C and D, by the posterior of the
        weights, at this very point; 0 where an entry only shifts a delay line.
    point : OperatingPoint
        Where the model was linearised.
    sampling_time : float or None
        Time between two rows.
    names : tuple of list of str
        Names of the states, inputs and outputs.
    is_integrating : bool, default=False
        Whether the model was fitted with ``output="difference"``.

    Attributes
    ----------
    A_std, B_std, C_std, D_std : ndarray
        The entries of ``std``.

    See Also
    --------
    StateSpaceModel : The model that is not linear.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import SparseBayesNARXRegressor
    >>> from skbayesnn.datasets import make_cascaded_tanks
    >>> u, y = make_cascaded_tanks(300, return_X_y=True, random_state=0)
    >>> model = SparseBayesNARXRegressor(random_state=0).fit(u, y)
    >>> tanks = model.to_state_space(sampling_time=4.0)
    >>> linear = tanks.linearize(tanks.find_operating_point(y=5.0))
    >>> bool(np.all(np.abs(linear.poles) < 1.0))
    True
    """

    def __init__(
        self, A, B, C, D, std, point, sampling_time, names, is_integrating=False
    ):
        self.A, self.B, self.C, self.D = A, B, C, D
        self.std = std
        self.A_std, self.B_std, self.C_std, self.D_std = std
        self.point = point
        self.sampling_time = sampling_time
        self.state_names, self.input_names, self.output_names = names
        self.is_integrating = is_integrating

    def __repr__(self):
        return (
            f"{type(self).__name__}(n_states={len(self.A)}, "
            f"input_names={self.input_names}, output_names={self.output_names}, "
            f"sampling_time={self.sampling_time})"
        )

    @property
    def poles(self):
        """Poles in the plane of z, the largest magnitude first.

        Returns
        -------
        poles : ndarray of shape (n_states,), complex128
            Eigenvalues of A; those of delay lines are 0.
        """
        poles = np.linalg.eigvals(self.A).astype(np.complex128)
        return poles[np.argsort(-np.abs(poles), kind="stable")]

    @property
    def static_gain(self):
        """Derivatives of the outputs at rest by the inputs.

        Returns
        -------
        gain : ndarray of shape (n_outputs, n_inputs)
            C (I - A)^-1 B + D.

        Raises
        ------
        ValueError
            For an integrating model, which rests at every output.
        """
        if self.is_integrating:
            raise ValueError("An integrating model has no static gain.")
        return self.C @ np.linalg.solve(np.eye(len(self.A)) - self.A, self.B) + self.D

    def to_control(self):
        """Convert to a state space of python-control.

        Returns
        -------
        system : control.StateSpace
            With the names of states, inputs and outputs; its ``dt`` is the sampling
            time, or True (discrete, of unknown time).

        Raises
        ------
        ImportError
            Without python-control: ``pip install control``.
        """
        control = import_extra("control", "to_control")
        dt = True if self.sampling_time is None else self.sampling_time
        return control.ss(
            self.A,
            self.B,
            self.C,
            self.D,
            dt,
            states=self.state_names,
            inputs=self.input_names,
            outputs=self.output_names,
        )


def linearize(equations, point, sampling_time):
    """`LinearizedModel` of the `Equations` at an `OperatingPoint`."""
    names = equations.state_names, equations.input_names, equations.output_names
    matrices = equations.jacobians(point.x, point.u)
    std = _standard_errors(equations, point)
    settings = sampling_time, names, equations.is_integrating
    return LinearizedModel(*matrices, std, point, *settings)


def _standard_errors(equations, point):
    """Of A, B, C and D; the weights of different networks are independent."""
    v, n_states = np.concatenate([point.x, point.u]), len(point.x)
    variances = np.array([_derivative_variance(step, v) for step in equations.steps])
    picks = equations.picks(equations.member_outputs(v))
    of_outputs = np.einsum("mo,mov->ov", picks**2, variances)[equations.n_hidden :]
    every = np.concatenate([np.zeros((len(v), len(v))), *variances])
    of_state = every[equations.source]
    return tuple(
        np.sqrt(part)
        for variance in (of_state, of_outputs)
        for part in np.split(variance, [n_states], axis=1)
    )


def _derivative_variance(step, v):
    """Variances (n_outputs, len(v)) of the derivatives of a network's step."""
    by_weights = step.derivative_by_weights(v)
    flat = by_weights.reshape(-1, by_weights.shape[2])
    spread = apply_covariance(step.fitted.covariance, flat.T)
    variance = np.einsum("ij,ji->i", flat, spread)
    return np.maximum(variance, 0.0).reshape(by_weights.shape[:2])
