"""Random networks for tests: with samples, and on lagged signals with a record."""

import naive
import numpy as np
from lagged import Recursion

from skbayesnn.sparse_bayes.kernels import activations
from skbayesnn.sparse_bayes.kernels.layers import Layers

CODES = {
    "tanh": activations.TANH,
    "relu": activations.RELU,
    "logistic": activations.LOGISTIC,
}


class Case:
    """A random network, some of its weights pruned, and data for it."""

    def __init__(
        self,
        sizes,
        activation="tanh",
        n_samples=65,
        seed=0,
        pruned=0.0,
        skip=False,
    ):
        rng = np.random.default_rng(seed)
        self.sizes, self.skip = np.array(sizes, dtype=np.int64), skip
        self.activation, self.code = activation, CODES[activation]
        n_parameters = sum(
            (a + 1) * b for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )
        if skip:
            n_parameters += sizes[0] * sizes[-1]
        self.theta = rng.standard_normal(n_parameters)
        self.keep = rng.uniform(size=n_parameters) >= pruned
        self.theta[~self.keep] = 0.0
        self.layers = naive.unflatten(self.theta, sizes)
        self.X = rng.standard_normal((n_samples, sizes[0]))
        self.Y = rng.standard_normal((n_samples, sizes[-1]))
        self.XT, self.YT = self.X.T.copy(), self.Y.T.copy()
        self.weights = rng.uniform(0.5, 2.0, size=(sizes[-1], 1))
        self.kept = np.flatnonzero(self.keep)

    @property
    def network(self):
        """What every pass takes first."""
        return (Layers(self.theta, self.sizes, self.code, self.skip),)

    @property
    def reference(self):
        return self.layers, self.activation


class System:
    """A random network on lagged signals, small enough to be stable, and a record."""

    def __init__(
        self,
        hidden=(3,),
        n_inputs=1,
        n_outputs=1,
        activation="tanh",
        input_lags=(0, 2),
        output_lags=(1, 3),
        n_rows=14,
        seed=0,
        gain=0.5,
        pruned=0.0,
        skip=False,
    ):
        rng = np.random.default_rng(seed)
        pairs = [(k, lag) for k in range(n_inputs) for lag in input_lags]
        pairs += [(n_inputs + k, lag) for k in range(n_outputs) for lag in output_lags]
        sizes = (len(pairs), *hidden, n_outputs)
        self.case = Case(sizes, activation, seed=seed, pruned=pruned, skip=skip)
        self.case.theta *= gain
        maps = [rng.standard_normal(n) for n in (len(pairs), n_outputs)]
        scales = [rng.uniform(0.5, 2.0, size=n) for n in (len(pairs), n_outputs)]
        self.model = naive.Recursion(
            *self.case.reference, pairs, maps[0], scales[0], maps[1], scales[1], 100.0
        )
        self.U = rng.standard_normal((n_rows, n_inputs))
        self.Y = rng.standard_normal((n_rows, n_outputs))
        self.noise = rng.uniform(0.1, 0.5, size=n_outputs)
        self.max_lag = max((lag for _, lag in pairs), default=0)
        self.n_kept = int(self.case.keep.sum())
        root = rng.standard_normal((self.n_kept, self.n_kept))
        self.covariance = root @ root.T / self.n_kept
        self.start, self.stop = self.max_lag, n_rows

    @property
    def recursion(self):
        pairs = np.array(self.model.regressors, dtype=np.int64).reshape(-1, 2)
        signal, lag = pairs.T.copy()
        return Recursion(signal, lag, *self.model[3:7], self.model.limit)

    @property
    def arguments(self):
        case = self.case
        return case.theta, case.sizes, case.code, self.recursion

    def posterior(self, diagonal):
        """As the kernels take it, and as the reference does: for all parameters."""
        keep = self.case.keep
        variances = np.diag(self.covariance).copy()
        matrix = np.diag(variances) if diagonal else self.covariance
        full = np.zeros((len(keep), len(keep)))
        full[np.ix_(keep, keep)] = matrix
        given = np.empty((0, 0)) if diagonal else matrix
        ceiling = np.full(len(self.noise), np.inf)
        column = np.full(len(keep), -1)
        column[keep] = np.arange(self.n_kept)
        return (column, given, variances, self.noise, ceiling), full


SYSTEMS = [
    dict(),
    dict(hidden=()),
    dict(hidden=(3, 2)),
    dict(hidden=(2, 3, 2)),
    dict(n_outputs=2),
    dict(n_outputs=2, n_inputs=2, output_lags=(2,)),
    dict(n_inputs=0, output_lags=(1, 2)),
    dict(output_lags=()),
    dict(pruned=0.4, seed=3),
    dict(pruned=1.0),
    dict(skip=True),
    dict(hidden=(), n_outputs=2, skip=True, gain=0.25),
    dict(hidden=(3, 2), n_outputs=2, skip=True, pruned=0.3, gain=0.3),
]
