"""The equations x(t+1) = f(x(t), u(t)), y(t) = g(x(t), u(t)) of a dynamic model.

With what operating points, responses and exports need of it, as plain arrays; the
public face is `state_space.StateSpaceModel`.
"""

import numpy as np

from ..prediction.ensemble import ROUNDING, Ensemble
from .network_step import make_step
from .state import make_layout


class Equations:
    """The equations of the networks of an `Ensemble`.

    ensemble : Ensemble
    means : (n_inputs,) and (n_outputs,) means of the training record
    bands : Bands, with the ranges of the training record
    input_names, output_names, state_names : list of str
    layout : StateLayout
    steps : list of NetworkStep, one for each network
    source : see `StateLayout.source`
    is_integrating : whether the networks predict differences
    filters : tuple of StateSpaceNetwork from which the ensemble was made, or ()
    hidden : (n_members, n_hidden) means of the outputs that are hidden, the first ones
        of each network; see `hidden_outputs`. Those that f and g speak of are the rest.
    """

    def __init__(self, ensemble, means, bands, input_names, output_names, filters=()):
        self.ensemble, self.filters = ensemble, filters
        self.hidden = np.zeros((len(ensemble.members), 0))
        if filters:
            self.hidden = np.array([one.mean for one in filters])
        self.n_hidden = self.hidden.shape[1]
        self.means, self.bands = means, bands
        self.input_names, self.output_names = list(input_names), list(output_names)
        self.layout = make_layout(ensemble.members)
        self.steps = [
            make_step(member, k, self.layout)
            for k, member in enumerate(ensemble.members)
        ]
        self.source = self.layout.source()
        self.n_states = self.layout.n_states
        self.n_inputs = ensemble.n_inputs
        self.n_outputs = ensemble.n_outputs - self.n_hidden
        self.state_names = self._names_of_states()
        self.is_integrating = ensemble.members[0].lags.difference

    @property
    def members(self):
        """The equations of each network alone."""
        rest = self.means, self.bands, self.input_names, self.output_names
        return [
            Equations(Ensemble.single(*member), *rest, self.filters[k : k + 1])
            for k, member in enumerate(self.ensemble.members)
        ]

    def _names_of_states(self):
        """Past values by their signal and lag; hidden states by their numbers."""
        hidden = [f"state{k}" for k in range(self.n_hidden)]
        names = self.layout.names(self.input_names, hidden + self.output_names)
        if not hidden:
            return names
        # the next state is an output, which is the present one a row later
        return [name.removesuffix("(t-1)") for name in names]

    @property
    def weights(self):
        """(n_members,), they sum to one."""
        return self.ensemble.weights

    @property
    def y_scales(self):
        """Scales (n_outputs,) of the outputs of each network."""
        return [step.fitted.scaling.y_scale for step in self.steps]

    def step(self, x, u):
        """f and g."""
        v = np.concatenate([x, u])
        Y = self.member_outputs(v)
        x_next = np.concatenate([v, Y.ravel()])[self.source]
        return x_next, self.combined(Y)[self.n_hidden :]

    def jacobians(self, x, u):
        """A, B, C and D: the exact derivatives of f and g by x and u."""
        v = np.concatenate([x, u])
        by_v = np.array([step.derivative(v) for step in self.steps])
        picks = self.picks(self.member_outputs(v))
        of_y = np.einsum("mo,mov->ov", picks, by_v)[self.n_hidden :]
        of_x = np.concatenate([np.eye(len(v)), *by_v])[self.source]
        n = self.n_states
        return of_x[:, :n], of_x[:, n:], of_y[:, :n], of_y[:, n:]

    def member_outputs(self, v):
        """Outputs (n_members, n_values) of each network, hidden first; v = [x, u]."""
        return np.array([step.forward(v) for step in self.steps])

    def combined(self, Y):
        """Outputs (n_values,) of the ensemble: the weighted median of its networks."""
        return (self.picks(Y) * Y).sum(axis=0)

    def picks(self, Y):
        """What fraction (n_members, n_values) of each network the median takes.

        A single 1, or two halves, for each output.
        """
        fractions = np.zeros(Y.shape)
        order = np.argsort(Y.real, axis=0, kind="stable")
        below = np.cumsum(self.weights[order], axis=0)
        every = np.arange(Y.shape[1])
        for reached in (below >= 0.5 - ROUNDING, below > 0.5 + ROUNDING):
            fractions[order[reached.argmax(axis=0), every], every] += 0.5
        return fractions

    def constant_state(self, u, Y):
        """The state after constants u (n_inputs,) and Y (n_members, n_values)."""
        layout = self.layout
        n_rows = max([1, *layout.input_depth, *layout.output_depth.ravel()])
        rows = np.repeat(np.asarray(Y)[:, None, :], n_rows, axis=1)
        return layout.fill(np.tile(u, (n_rows, 1)), rows)

    def hidden_state(self, means):
        """The state in which hidden ones have these means (n_members, n_hidden)."""
        values = np.pad(means, ((0, 0), (0, self.n_outputs)))
        return self.layout.fill(np.empty((0, self.n_inputs)), values[:, None])

    def mean_state(self):
        """The state after the training means."""
        u, y = self.means
        return self.constant_state(u, self._of_all(y))

    def _of_all(self, y):
        """Values (n_members, n_values) of all networks, the hidden at their means."""
        return np.hstack([self.hidden, np.tile(y, (len(self.steps), 1))])

    def guesses(self):
        """Inputs and outputs of all networks where an operating point may be near.

        The training means, and the ends of the training record's range.
        """
        bands = self.bands
        ends = [
            self.means,
            (bands.low_inputs, bands.low_outputs),
            (bands.high_inputs, bands.high_outputs),
        ]
        return [(u, self._of_all(y)) for u, y in ends]
