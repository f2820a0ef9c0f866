r"""Records whose rows are dense: fits to a fraction of the rows, and then to all.

Where the outputs move little from row to row, neighbouring rows hardly differ, weights
of a step are tiny, and a free run has many rows. So a fit begins with every m-th row,
and means of the inputs over m rows. With all rows, the states go a fraction
:math:`h = 1 / m` of the way in each,

.. math:: x_{t+1} = (1 - h) x_t + h f_x(x_t, u_t),

so that the same weights describe the same system, to first order in h, and keep their
size. The residuals of m rows count as one: the temperature is m times as high.
"""

import numpy as np

from ..network import split_layers
from ..records.layout import Stage
from .prior import Prior, parameter_variance
from .restarts import learn

# A fraction of the rows is enough where straight lines between them miss the outputs by
# less than this, in standard deviations, and as long as so many rows are left.
NEGLIGIBLE = 0.002
MIN_ROWS = 1000


def choose_fraction(Y, starts):
    """The number m such that every m-th row is enough; 1 where every row counts.

    Lines to missing outputs are left out; every row counts where no line is left.
    """
    every = 1
    # bound: at least MIN_ROWS stay
    while (every + 1) * MIN_ROWS <= len(Y) and _missed(
        Y, starts, every + 1
    ) < NEGLIGIBLE:
        every += 1
    return every


def _missed(Y, starts, every):
    """Largest error of straight lines through every m-th row, over the deviation."""
    errors = []
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        rows = np.arange(start, stop - every)
        middle = every // 2
        part = middle / every
        lines = (1.0 - part) * Y[rows] + part * Y[rows + every]
        errors.append(lines - Y[rows + middle])
    errors = np.concatenate(errors)
    if not np.isfinite(errors).any(axis=0).all():
        return np.inf
    spread = np.maximum(np.nanstd(Y, axis=0), 1e-300)
    return float((np.sqrt(np.nanmean(errors**2, axis=0)) / spread).max())


def take_fraction(U, Y, starts, every):
    """Means of the inputs, outputs and starts of sessions of every m-th row."""
    inputs, outputs, lengths = [], [], []
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        first = np.arange(start, stop, every)
        sums = np.add.reduceat(U[start:stop], first - start, axis=0)
        counts = np.diff(np.append(first, stop))
        inputs.append(sums / counts[:, None])
        outputs.append(Y[first])
        lengths.append(len(first))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate(inputs), np.concatenate(outputs), starts


def refine(problem, learned, seed):
    """The `Learned` network, after a fit to all rows, with whole steps.

    ``problem.data`` holds all rows; ``learned`` comes from a fit to the stages.
    """
    step = problem.data.run.step
    if step == 1.0:
        return _with_whole_steps(learned, problem.data.run, problem.starts)
    strengths = problem.settings.reg_lambda / step
    fine = problem._replace(
        stages=(Stage(problem.data, np.inf),),
        settings=problem.settings._replace(reg_lambda=strengths),
        start=learned.start,
        starts=None,
        n_screening=0,
        reduce=None,
    )
    learned = learn(fine, seed).networks[0]
    return _with_whole_steps(learned, problem.data.run, problem.starts)


def with_whole_steps(data):
    """The data of all rows for networks with whole steps."""
    X = data.run.X.copy()
    X[data.run.begin] *= data.run.step
    held = np.zeros_like(data.run.held)
    return data._replace(run=data.run._replace(X=X, held=held, step=1.0))


def _with_whole_steps(learned, run, starts):
    """The same network as x(t+1) = f(x(t), u(t)), with its covariance and its prior."""
    network, step = learned.fitted.network, run.step
    if not run.held.any():
        return learned
    factor = np.ones(len(network.theta))
    blocks = split_layers(factor, network.sizes, network.skip)
    sessions = network.units[0] >= starts.sizes[0] - starts.n_sessions
    n_states = starts.n_states
    for weights, biases in (blocks[len(network.sizes) - 2], blocks[-1]):
        weights[:, :n_states] = step
        if len(biases):
            biases[:n_states] = step
    blocks[-1][0][sessions] = 1.0
    theta = network.theta * factor
    linear = split_layers(theta, network.sizes, network.skip)[-1][0]
    read = network.units[0][network.units[0] < n_states]
    linear[np.arange(len(read)), read] += run.held[read]
    network = network._replace(theta=theta)
    kept = factor[network.keep]
    covariance = learned.fitted.covariance * np.outer(kept, kept)
    prior = learned.start.prior
    labels = np.where(prior.labels[0] >= 0, np.arange(len(factor)), -1)
    variances = parameter_variance(prior) * factor**2
    return learned._replace(
        fitted=learned.fitted._replace(network=network, covariance=covariance),
        start=learned.start._replace(
            network=network, prior=Prior((labels,), (variances,))
        ),
    )
