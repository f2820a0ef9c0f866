"""Compiled steps of a simulation that is called row by row, inside a controller.

Passing an array to a kernel costs more than a small network does, so everything that a
step needs is packed into two arrays, and taken from them as views: ``memory`` (float64)
with the numbers, ``layout`` (int64) with the places where they stand. An ensemble is
packed as a whole; each of its networks runs on outputs of its own. No step allocates.

``memory`` starts with the inputs of the row to predict, the outputs predicted last, and
the limit of `recursion.Feedback`. ``layout`` starts with the fields ``N_NETWORKS`` to
``NOW``, followed by a record of the fields ``ACTIVATION`` to ``SCRATCH`` for each
network. The history of a network is a ring buffer of rows, each the inputs and then the
outputs.

The step is that of `recursion`, except that histories are in the user's units: a state
that is saved holds exactly what was measured, and a run that resumes from it gives the
same numbers as one without a stop.
"""

from typing import NamedTuple

import numpy as np

from ..._numba import kernel
from .layers import Layers
from .one_row import forward_row

# head of `layout`; LENGTH: of a history; NOW: where the newest row starts in each
N_NETWORKS, N_INPUTS, N_OUTPUTS, LENGTH, NOW = range(5)
HEAD = 5
# One record per network. SIZES, BACK and FAR are places in `layout`: of the layers'
# widths, and behind them of the distances in the history from the newest row back to
# each regressor, and to the value that is taken off it, 0 if there is none. The others
# are places in `memory`, of blocks that follow one another.
ACTIVATION, SKIP, DIFFERENCE, DIVERGED, SIZES, BACK, FAR = range(7)
WEIGHT, THETA, X_SCALING, Y_SCALING, HISTORY, UNITS, SCRATCH = range(7, 14)
RECORD = 14
# Of sums of weights that should be one half; as in the median of whole records.
ROUNDING = 1e-9


class Member(NamedTuple):
    """A network to be packed, and the maps around it.

    layers : Layers
    signal, lag : (n_regressors,) int64; signals count inputs first, then outputs
    x_offset, x_scale : (n_regressors,)
    y_offset, y_scale : (n_outputs,)
    difference : whether the network predicts differences, from those of past outputs
    """

    layers: Layers
    signal: np.ndarray
    lag: np.ndarray
    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray
    difference: bool = False


def pack(members, weights, n_inputs, n_outputs, n_rows, limit):
    """Memory and layout of some networks, with ``n_rows`` rows of missing history."""
    width = n_inputs + n_outputs
    length = width * n_rows
    memory = [np.zeros(width), [limit]]
    records, tail = [], []
    place = width + 1
    tail_place = HEAD + RECORD * len(members)
    for weight, member in zip(weights, members, strict=True):
        theta, sizes, activation, skip = member.layers
        x_scaling = [member.x_offset, member.x_scale]
        y_scaling = [member.y_offset, member.y_scale]
        blocks = [
            [weight],
            theta,
            np.concatenate(x_scaling),
            np.concatenate(y_scaling),
            np.full(length, np.nan),
            np.zeros(np.sum(sizes)),
            np.zeros(np.sum(sizes)),
        ]
        places = place + np.cumsum([0, *(len(block) for block in blocks)])
        sizes_place, tail_place = tail_place, tail_place + len(sizes)
        back = width * member.lag - member.signal
        far = np.where(member.difference & (member.signal >= n_inputs), back + width, 0)
        back_place, far_place = tail_place, tail_place + len(back)
        tail_place = far_place + len(far)
        records += [activation, skip, member.difference, 0]
        records += [sizes_place, back_place, far_place]
        records += places[:-1].tolist()
        tail += [*sizes, *back, *far]
        memory += blocks
        place = places[-1]
    head = [len(members), n_inputs, n_outputs, length, length - width]
    layout = np.array([*head, *records, *tail], dtype=np.int64)
    return np.concatenate(memory), layout


def histories(memory, layout):
    """Views (n_rows, n_inputs + n_outputs) of the ring buffers, one per network."""
    width, length = layout[N_INPUTS] + layout[N_OUTPUTS], layout[LENGTH]
    starts = layout[HEAD + HISTORY :: RECORD][: layout[N_NETWORKS]]
    return [memory[start : start + length].reshape(-1, width) for start in starts]


def diverged(layout):
    """View of the flags of the networks that have diverged."""
    return layout[HEAD + DIVERGED :: RECORD][: layout[N_NETWORKS]]


@kernel(inline="always")
def _place(layout, now, back):
    """Place in a ring buffer, some numbers before that of the newest row."""
    place = now - back
    return place + layout[LENGTH] if place < 0 else place


@kernel(helper=True)
def _gather(memory, layout, at, now):
    """Scaled regressors of the newest row; False if one of them is missing."""
    back = layout[at + BACK]
    far = layout[at + FAR]
    history = layout[at + HISTORY]
    units = layout[at + UNITS]
    n_regressors = layout[layout[at + SIZES]]
    offset = layout[at + X_SCALING]
    scale = offset + n_regressors
    for i in range(n_regressors):
        value = memory[history + _place(layout, now, layout[back + i])]
        if layout[far + i] != 0:
            value -= memory[history + _place(layout, now, layout[far + i])]
        if not np.isfinite(value):
            return False
        memory[units + i] = (value - memory[offset + i]) / memory[scale + i]
    return True


@kernel(helper=True)
def _forward(memory, layout, at):
    """All units of one network from its regressors."""
    layers = Layers(
        memory[layout[at + THETA] : layout[at + X_SCALING]],
        layout[layout[at + SIZES] : layout[at + BACK]],
        layout[at + ACTIVATION],
        layout[at + SKIP] != 0,
    )
    a = memory[layout[at + UNITS] : layout[at + SCRATCH]]
    power = memory[layout[at + SCRATCH] : layout[at + SCRATCH] + len(a)]
    forward_row(layers, a, power, power.view(np.int64))


@kernel(helper=True)
def _emit(memory, layout, at, now):
    """Outputs of one network into its history; False if they diverged."""
    n_inputs = layout[N_INPUTS]
    n_outputs = layout[N_OUTPUTS]
    limit = memory[n_inputs + n_outputs]
    scaled = layout[at + SCRATCH] - n_outputs
    last = layout[at + HISTORY] + _place(layout, now, n_inputs + n_outputs) + n_inputs
    for o in range(n_outputs):
        # a NaN fails this comparison, too
        if not abs(memory[scaled + o]) <= limit:
            return False
    row = layout[at + HISTORY] + now + n_inputs
    offset = layout[at + Y_SCALING]
    scale = offset + n_outputs
    for o in range(n_outputs):
        value = memory[scaled + o] * memory[scale + o] + memory[offset + o]
        if layout[at + DIFFERENCE]:
            value += memory[last + o]
        memory[row + o] = value
    return True


@kernel(helper=True)
def _advance(memory, layout, at, now):
    """Outputs of one network for the newest row; False if they are missing."""
    if layout[at + DIVERGED] or not _gather(memory, layout, at, now):
        return False
    _forward(memory, layout, at)
    if _emit(memory, layout, at, now):
        return True
    layout[at + DIVERGED] = 1
    return False


@kernel(helper=True)
def _combine(memory, layout, place):
    """Weighted median over the networks of what stands at ``place`` of a history.

    Without sorting: a value is the median if half of the weight is not above it, and
    where exactly half is, the median lies between it and the next.
    """
    n_networks = layout[N_NETWORKS]
    if n_networks == 1:
        return memory[layout[HEAD + HISTORY] + place]
    total = 0.0
    for k in range(n_networks):
        at = HEAD + k * RECORD
        if np.isfinite(memory[layout[at + HISTORY] + place]):
            total += memory[layout[at + WEIGHT]]
    if total < 0.5:
        return np.nan
    low = np.inf
    high = np.inf
    for k in range(n_networks):
        value = memory[layout[HEAD + k * RECORD + HISTORY] + place]
        below = 0.0
        for j in range(n_networks):
            at = HEAD + j * RECORD
            # false for a NaN
            if memory[layout[at + HISTORY] + place] <= value:
                below += memory[layout[at + WEIGHT]]
        if below >= (0.5 - ROUNDING) * total and value < low:
            low = value
        if below > (0.5 + ROUNDING) * total and value < high:
            high = value
    return 0.5 * (low + high)


@kernel(helper=True)
def step(memory, layout):
    """Predict the row whose inputs stand at the head of ``memory``.

    The outputs follow the inputs there, in the user's units, NaN where missing or
    diverged; the first of them is returned as well.
    """
    n_inputs = layout[N_INPUTS]
    n_outputs = layout[N_OUTPUTS]
    now = layout[NOW] + n_inputs + n_outputs
    now = now if now < layout[LENGTH] else 0
    layout[NOW] = now
    for k in range(layout[N_NETWORKS]):
        at = HEAD + k * RECORD
        row = layout[at + HISTORY] + now
        for i in range(n_inputs):
            memory[row + i] = memory[i]
        if not _advance(memory, layout, at, now):
            for o in range(n_outputs):
                memory[row + n_inputs + o] = np.nan
    for o in range(n_outputs):
        memory[n_inputs + o] = _combine(memory, layout, now + n_inputs + o)
    return memory[n_inputs]


@kernel
def run(memory, layout, X, out):
    """`step` through the rows of ``X``, with the outputs in those of ``out``."""
    n_inputs = layout[N_INPUTS]
    for row in range(len(out)):
        for i in range(n_inputs):
            memory[i] = X[row, i]
        step(memory, layout)
        for o in range(layout[N_OUTPUTS]):
            out[row, o] = memory[n_inputs + o]


@kernel
def update(memory, layout):
    """Replace the newest outputs of all networks by those that stand in ``memory``.

    A missing one leaves the networks' own. A network that diverged resumes once all
    outputs of the row are there.
    """
    n_inputs = layout[N_INPUTS]
    n_outputs = layout[N_OUTPUTS]
    for k in range(layout[N_NETWORKS]):
        at = HEAD + k * RECORD
        row = layout[at + HISTORY] + layout[NOW] + n_inputs
        complete = True
        for o in range(n_outputs):
            if np.isfinite(memory[n_inputs + o]):
                memory[row + o] = memory[n_inputs + o]
            complete = complete and np.isfinite(memory[row + o])
        if complete:
            layout[at + DIVERGED] = 0
