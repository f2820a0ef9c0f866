"""The state of a lagged model: which past values its networks still read.

The past values of a signal form a delay line, newest first: an input has one, an output
has one for each network of an ensemble, which runs on outputs of its own. Each is as
long as the longest lag that pruning left.
"""

from typing import NamedTuple

import numpy as np


class StateLayout(NamedTuple):
    """Where past values stand in the state x.

    input_depth : (n_inputs,) int64, rows that the delay line of each input holds
    output_depth : (n_members, n_outputs) int64
    n_hidden : number of outputs, the first ones, that are hidden states
    """

    input_depth: np.ndarray
    output_depth: np.ndarray
    n_hidden: int = 0

    @property
    def n_inputs(self):
        return len(self.input_depth)

    @property
    def n_states(self):
        return int(self.input_depth.sum() + self.output_depth.sum())

    def input_place(self, k, lag):
        """Place of u_k(t - lag) in the vector [x, u]."""
        if lag == 0:
            return self.n_states + k
        return int(self.input_depth[:k].sum()) + lag - 1

    def output_place(self, member, o, lag):
        """Place of y_o(t - lag) of one network in the state."""
        before = self.output_depth[:member].sum() + self.output_depth[member, :o].sum()
        return int(self.input_depth.sum() + before) + lag - 1

    def source(self):
        """For each entry of x(t+1) the place of its value in [x, u, y of all members].

        The y are those that the networks predict from x(t) and u(t).
        """
        first_output = self.n_states + self.n_inputs
        heads = [self.n_states + k for k in range(self.n_inputs)]
        heads += [first_output + k for k in range(self.output_depth.size)]
        depths = [*self.input_depth, *self.output_depth.ravel()]
        source, place = [], 0
        for head, depth in zip(heads, depths, strict=True):
            if depth:
                source += [head, *range(place, place + depth - 1)]
            place += depth
        return np.array(source, dtype=np.int64)

    def fill(self, U, Y):
        """The state behind rows of inputs, and of the outputs of every member.

        U : (n_rows, n_inputs), the latest row last
        Y : (n_members, n_rows, n_outputs)
        """
        lines = [U[len(U) - d :, k][::-1] for k, d in enumerate(self.input_depth)]
        for outputs, depths in zip(Y, self.output_depth, strict=True):
            rows = len(outputs)
            lines += [outputs[rows - d :, o][::-1] for o, d in enumerate(depths)]
        return np.concatenate([np.zeros(0), *lines])

    def names(self, input_names, output_names):
        """Names of the states, such as "u(t-1)", "y(t-1)"; "y[2](t-1)" of member 2.

        A hidden state is a next state a row before: the present one, "state0".
        """
        hidden = [f"state{k}" for k in range(self.n_hidden)]
        single = len(self.output_depth) == 1
        names = _delayed(input_names, self.input_depth)
        for member, depths in enumerate(self.output_depth):
            mark = "" if single else f"[{member}]"
            now, before = np.split(depths, [self.n_hidden])
            names += [f"{k}{mark}" for k, d in zip(hidden, now, strict=True) if d]
            names += _delayed([f"{name}{mark}" for name in output_names], before)
        return names


def _delayed(names, depths):
    lines = zip(names, depths, strict=True)
    return [f"{name}(t-{lag})" for name, d in lines for lag in range(1, d + 1)]


def make_layout(members, n_hidden=0):
    """The shortest delay lines that hold what the networks read.

    The first ``n_hidden`` outputs are hidden states, which are no differences.
    """
    n_inputs, n_outputs = members[0].lags.n_inputs, members[0].lags.n_outputs
    input_depth = np.zeros(n_inputs, dtype=np.int64)
    output_depth = np.zeros((len(members), n_outputs), dtype=np.int64)
    for depths, (fitted, lags) in zip(output_depth, members, strict=True):
        used = fitted.network.units[0]
        if lags.difference:
            depths[n_hidden:] = 1
        for signal, lag in zip(lags.signal[used], lags.lag[used], strict=True):
            if signal < n_inputs:
                input_depth[signal] = max(input_depth[signal], lag)
            else:
                o, reach = signal - n_inputs, lag + lags.difference
                depths[o] = max(depths[o], reach)
    return StateLayout(input_depth, output_depth, n_hidden)
