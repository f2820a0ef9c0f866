"""The equations x(t+1) = f(x(t), u(t)), y(t) = g(x(t), u(t)) of a dynamic model.

With what operating points, responses and exports need of it, as plain arrays; the
public face is `state_space.StateSpaceModel`.
"""

import numpy as np

from ..prediction.ensemble import ROUNDING, Ensemble
from ..prediction.state_forecast import belief_after
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
    is_integrating : whether there are networks that have learned differences
    n_levels : number of hidden states, the first ones, that sum them up
    filters : for each network the StateSpaceNetwork from which it was made, None for
        one on lags; or () for lags alone
    hidden : (n_members, n_hidden) means of the outputs that are hidden, the first ones
        of each network; see `hidden_outputs`. Those that f and g speak of are the rest.
    """

    def __init__(self, ensemble, means, bands, input_names, output_names, filters=()):
        self.ensemble, self.filters = ensemble, filters
        self.means, self.bands = means, bands
        self.input_names, self.output_names = list(input_names), list(output_names)
        self.n_hidden = ensemble.n_outputs - len(self.output_names)
        self.hidden = self._of_filters([one and one.mean for one in filters])
        self.layout = make_layout(ensemble.members, self.n_hidden)
        self.steps = [
            make_step(member, k, self.layout)
            for k, member in enumerate(ensemble.members)
        ]
        self.source = self.layout.source()
        self.n_states = self.layout.n_states
        self.n_inputs = ensemble.n_inputs
        self.n_outputs = len(self.output_names)
        self.state_names = self.layout.names(self.input_names, self.output_names)
        self.n_levels = max((one.n_levels for one in filters if one), default=0)
        of_lags = any(lags.difference for _, lags in ensemble.members)
        self.is_integrating = of_lags or self.n_levels > 0

    @property
    def members(self):
        """The equations of each network alone."""
        rest = self.means, self.bands, self.input_names, self.output_names
        return [
            Equations(Ensemble.single(*member), *rest, self.filters[k : k + 1])
            for k, member in enumerate(self.ensemble.members)
        ]

    @property
    def n_rows_read(self):
        """Rows before a step whose values networks on lags may read."""
        filters = self.filters or [None] * len(self.steps)
        pairs = zip(self.ensemble.members, filters, strict=True)
        return max(
            (one.max_lag for one, of_states in pairs if not of_states), default=0
        )

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

    def state_behind(self, U, Y):
        """The state behind measured rows U (n_rows, n_inputs) and Y."""
        beliefs = [one and belief_after(one, U, Y)[0] for one in self.filters]
        return self.stopped_state(U, [Y] * len(self.steps), beliefs)

    def stopped_state(self, U, outputs, beliefs):
        """The state behind rows of inputs U (n_rows, n_inputs).

        outputs : for each network its outputs (n_rows, n_outputs) in these rows, or in
            none if it is a filter
        beliefs : for each network the means (n_states,) of its hidden states, None for
            one on lags; or () for lags alone
        """
        hidden, values = self._of_filters(beliefs), []
        for of_member, means in zip(outputs, hidden, strict=True):
            # hidden states stand in the last row, also where there is no other
            rows = np.vstack([np.zeros((1, self.n_outputs)), of_member])
            rows = np.pad(rows, ((0, 0), (self.n_hidden, 0)))
            rows[-1, : self.n_hidden] = means
            values.append(rows)
        return self.layout.fill(U, values)

    def _of_filters(self, states):
        """Values (n_members, n_hidden) of hidden states, 0 where a network has none."""
        values = np.zeros((len(self.ensemble.members), self.n_hidden))
        for row, of_member in zip(values, states, strict=False):
            if of_member is not None:
                row[: len(of_member)] = of_member
        return values

    def mean_state(self):
        """The state after the training means.

        Beside lags, they tell hidden states what they are; alone, these are at the
        means that they had in the training record.
        """
        u, y = self.means
        n_rows = self.n_rows_read
        if self.filters and n_rows:
            return self.state_behind(np.tile(u, (n_rows, 1)), np.tile(y, (n_rows, 1)))
        return self.constant_state(u, self.of_all(y))

    def of_all(self, y):
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
        return [(u, self.of_all(y)) for u, y in ends]
