r"""States that are not needed leave a network, as long as the objective falls.

The basis of the states is arbitrary, so that a state too many is spread over all of
them, and no single weight is small. In the balanced basis it has a direction of its
own: with the covariance P of the states along the record and the mean Q of
:math:`\sum_k S_k^T S_k`, :math:`S_k` the derivatives of the output k rows ahead by the
state, the states are rotated and scaled such that P is the identity and Q diagonal
(Moore, 1981; here along the runs of a nonlinear system). The last ones move the outputs
least. Without the last, the fit goes on for some cycles: if the objective ends no more
than the price of a state higher, the state stays away, and the next one is tried.

The objective alone has no price for a state: it optimises a variance for each weight,
and among the poles that a further state may have there is always one that follows the
noise a little. The price is that of the Bayesian information criterion, :math:`\log n`
for each of its parameters in the canonical form, one per input and output.
"""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from ..kernels.state_recursion import run_state_sensitivities, run_states
from ..network import prune, split_layers
from . import cycle, reduction
from . import prior as priors

# Rows ahead over which a state moves the outputs.
WINDOW = 50
# Of the variance of the states, added to their covariance, which may be singular.
RIDGE = 1e-8


def reduce_order(settings, stage, state, max_cycles, rng):
    """Yield ``(state, info)`` of the cycles of every network that needs fewer states.

    ``state`` is where a fit ended.
    """

    def trials(state):
        reduced = without_least_state(state)
        if reduced is None:
            return
        try:
            smaller = cycle.init(
                settings, stage.data, *reduced, state.noise, state.likelihood
            )
        except FloatingPointError:
            return
        yield reduction.trial_cycles(settings, smaller, rng)

    def is_enough(state, smaller):
        limit = state.objective + price(settings, state.data)
        return smaller.objective <= limit

    yield from reduction.reduce_network(
        settings, state, max_cycles, rng, trials, is_enough
    )


def price(settings, data):
    """By how much a state has to lower the objective."""
    n_inputs = int(np.count_nonzero(np.ptp(data.run.X[~data.run.begin], axis=0)))
    n_parameters = n_inputs + data.Y.shape[1]
    return reduction.price(settings, data, n_parameters)


def without_least_state(state):
    """Network and prior in the balanced basis, without the last of its states.

    None where there is no state that is read, or none whose basis can be found.
    """
    network, data = state.network, state.data
    rows = np.flatnonzero(data.run.state >= 0)
    if not len(rows):
        return None
    try:
        T, inverse = _balance(network, data)
    except LinAlgError:
        return None
    network, dense = _transformed(network, data.run.state, T, inverse)
    variances = []
    for label, variance in zip(state.prior.labels, state.prior.variances, strict=True):
        of_weights = label[dense & (label >= 0)]
        variance = variance.copy()
        variance[of_weights] = priors.MAX_VARIANCE
        variances.append(variance)
    prior = state.prior._replace(variances=tuple(variances))
    n_states = data.run.initial.shape[1]
    drop = _of_state(network, n_states, data.run.state, rows[-1])
    network, index = prune(network, drop)
    return network, priors.take(prior, index)


def _balance(network, data):
    """T (n, n) to the balanced basis, and its inverse, of the states that are read."""
    run, n_outputs = data.run, data.Y.shape[1]
    read = run.state[run.state >= 0]
    states, _ = run_states(network.layers, run, n_outputs)
    rows = ~run.begin
    X, states = run.X[rows], states[rows]
    if not np.isfinite(states).all():
        raise LinAlgError("the run diverged")
    # the rows before sessions are gone; the ones behind them begin a window
    begin = run.begin[:-1][rows[1:]]
    begin[::WINDOW] = True
    run = run._replace(X=X, begin=begin, initial=states)
    nothing = np.zeros(0, dtype=np.int64)
    _, _, S = run_state_sensitivities(
        network.layers, run, n_outputs, nothing, by_initial=True
    )
    S = S[:, read]
    if not np.isfinite(S).all():
        raise LinAlgError("the derivatives diverged")
    covariance = np.atleast_2d(np.cov(states[:, read].T))
    spread = max(float(np.trace(covariance)), 1e-12)
    covariance[np.diag_indices_from(covariance)] += RIDGE * spread
    root = cholesky(covariance, lower=True)
    _, vectors = eigh(root.T @ (S.T @ S) @ root)
    vectors = vectors[:, ::-1]
    return solve_triangular(root, vectors, lower=True, trans=1).T, root @ vectors


def _transformed(network, state, T, inverse):
    """The same network in another basis, and which parameters are dense there."""
    values, dense = network.theta.copy(), np.zeros(len(network.theta), dtype=bool)
    rows, columns = np.flatnonzero(state >= 0), state[state >= 0]
    parts = split_layers(values, network.sizes, network.skip)
    masks = split_layers(dense, network.sizes, network.skip)
    kept = split_layers(network.keep, network.sizes, network.skip)
    last = len(network.sizes) - 2
    for block in {0, len(parts) - 1}:
        parts[block][0][rows] = inverse.T @ parts[block][0][rows]
        masks[block][0][rows] = kept[block][0][rows].any(axis=0)
    for block in {last, len(parts) - 1}:
        weights, biases = parts[block]
        weights[:, columns] = weights[:, columns] @ T.T
        reached = (masks[block][0] | kept[block][0])[:, columns].any(axis=1)
        masks[block][0][:, columns] = reached[:, None]
        if len(biases):
            biases[columns] = T @ biases[columns]
            masks[block][1][columns] = True
    keep = network.keep | dense
    return network._replace(theta=np.where(keep, values, 0.0), keep=keep), dense


def _of_state(network, n_states, state, row):
    """The parameters of the state in a row, and of those that nothing reads."""
    drop = np.zeros(len(network.theta), dtype=bool)
    parts = split_layers(drop, network.sizes, network.skip)
    gone = np.setdiff1d(np.arange(n_states), np.delete(state, row))
    for block in {0, len(parts) - 1}:
        parts[block][0][row] = True
    for block in {len(network.sizes) - 2, len(parts) - 1}:
        weights, biases = parts[block]
        weights[:, gone] = True
        if len(biases):
            biases[gone] = True
    return drop


def count_states(network, n_states):
    """Number of states from which weights lead to an output, in this row or later."""
    layers = split_layers(network.theta != 0.0, network.sizes, network.skip)
    n_layers = len(network.sizes) - 1
    leads = np.eye(network.sizes[0], dtype=bool)
    for weights, _ in layers[:n_layers]:
        leads = leads @ weights
    if network.skip:
        leads |= layers[-1][0]
    states = network.units[0] < n_states
    read = network.units[0][states]
    to_states, seen = leads[states][:, read], leads[states][:, n_states:].any(axis=1)
    for _ in read:
        seen = seen | to_states @ seen
    return int(np.count_nonzero(seen))
