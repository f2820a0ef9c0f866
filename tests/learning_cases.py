"""Random networks, data and states that tests of learning share."""

import naive
import numpy as np

from skbayesnn.sparse_bayes.kernels import layers as mlp
from skbayesnn.sparse_bayes.learning import cycle
from skbayesnn.sparse_bayes.learning import prior as priors
from skbayesnn.sparse_bayes.learning.curvature import (
    Full,
    linearize,
)
from skbayesnn.sparse_bayes.learning.cycle import Settings
from skbayesnn.sparse_bayes.learning.likelihood import Gaussian
from skbayesnn.sparse_bayes.learning.weights import (
    SOLVERS,
    WeightFit,
)
from skbayesnn.sparse_bayes.network import (
    bias_mask,
    init_network,
    layer_index,
)
from skbayesnn.sparse_bayes.records.one_step import OneStepData

NAMES = {0: "tanh", 1: "relu", 2: "logistic"}


GROUPS = [
    ("element",),
    ("row",),
    ("column",),
    ("row", "column"),
    ("element", "row"),
    ("element", "row", "column"),
    ("layer",),
    ("layer", "row"),
]


def random_network(sizes, activation="tanh", seed=0, skip=False):
    """All parameters random, the biases too."""
    rng = np.random.default_rng(seed)
    network = init_network(sizes, activation, rng, skip)
    return network._replace(theta=rng.standard_normal(len(network.theta)))


def random_data(network, n_samples=50, seed=0, weighted=True):
    rng = np.random.default_rng(seed + 100)
    n_in, n_out = network.full_sizes[0], network.full_sizes[-1]
    weights = rng.uniform(0.5, 1.5, size=n_out) if weighted else np.ones(n_out)
    X = rng.standard_normal((n_in, n_samples))
    return OneStepData(X, rng.standard_normal((n_out, n_samples)), weights)


def outputs(network, XT):
    used = np.ascontiguousarray(XT[network.units[0]])
    return mlp.forward(network.layers, used)


def reference(network):
    """Layers and activation for the references."""
    return naive.unflatten(network.theta, network.sizes), NAMES[network.activation]


def weighted_jacobian(network, data):
    """(n_outputs * n_samples, n_kept), outputs first, as the curvature stacks them."""
    J = naive.jacobian(*reference(network), data.XT.T) * data.weights[:, None]
    J = J.transpose(1, 0, 2).reshape(-1, len(network.theta))
    return J[:, network.keep]


def random_drop(network, share, rng):
    drop = rng.uniform(size=len(network.theta)) < share
    return drop & ~bias_mask(network)


def make_settings(n_layers=2, **options):
    defaults = dict(
        reg_lambda=1.0,
        reweight=True,
        kappa_variance=0.0,
        kappa_weight=0.0,
        noise_variance=0.3,
        curvature="full",
        solver="lm",
        max_iter=3,
        tol=1e-6,
    )
    settings = {**defaults, **options}
    settings["likelihood"] = Gaussian(settings.pop("noise_variance"))
    settings["reg_lambda"] = np.broadcast_to(
        np.asarray(settings["reg_lambda"], dtype=float), (n_layers,)
    ).copy()
    return Settings(**settings)


def random_prior(sizes, groups, seed=0, skip=False):
    rng = np.random.default_rng(seed)
    prior = priors.init_prior(sizes, groups, skip)
    variances = tuple(10.0 ** rng.uniform(-3.0, 0.0, len(v)) for v in prior.variances)
    return prior._replace(variances=variances)


def determinant_parts(settings, network):
    """Which strengths go with which parameters (of the kept) in one determinant."""
    if len(set(settings.reg_lambda)) == 1:
        return [(settings.reg_lambda[0], np.arange(int(network.keep.sum())))]
    layers = layer_index(network)[network.keep]
    return [
        (strength, np.flatnonzero(layers == number))
        for number, strength in enumerate(settings.reg_lambda)
    ]


def naive_objective(settings, state, network=None, at=None):
    """``L`` of a state by dense algebra; ``at`` takes the Jacobian elsewhere."""
    network = state.network if network is None else network
    keep, data = network.keep, state.data
    J = weighted_jacobian(network if at is None else at, data)
    H = J.T @ J / state.noise
    if settings.curvature == "diag":
        H = np.diag(np.diag(H))
    out = naive.forward(*reference(network), data.XT.T)
    residual = (out - data.YT.T) * data.weights
    return naive.evidence_objective(
        np.sum(residual**2),
        H,
        network.theta[keep],
        priors.parameter_variance(state.prior)[keep],
        state.noise,
        data.weights,
        data.YT.shape[1],
        determinant_parts(settings, network),
    )


def state_of(groups, settings, sizes=(3, 3, 2), seed=0, n_samples=40):
    network = random_network(sizes, seed=seed)
    network = network._replace(theta=0.3 * network.theta)
    data = random_data(network, n_samples, seed)
    prior = random_prior(sizes, groups, seed)
    return cycle.init(settings, data, network, prior)


def run_cycles(data, network, settings, groups, n_cycles, seed=0):
    rng = np.random.default_rng(seed)
    prior = priors.init_prior(network.sizes, groups, network.skip)
    state = cycle.init(settings, data, network, prior)
    infos = []
    for _ in range(n_cycles):
        state, info = cycle.step(settings, state, rng)
        infos.append(info)
    return state, infos


def linear_record(n_outputs=1, n_samples=60, seed=0):
    """Centred data of a sparse linear model: no bias is needed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 6))
    X -= X.mean(axis=0)
    W = np.zeros((6, n_outputs))
    W[[1, 4]] = rng.uniform(0.5, 1.5, size=(2, n_outputs))
    Y = X @ W + 0.5 * rng.standard_normal((n_samples, n_outputs))
    Y -= Y.mean(axis=0)
    return OneStepData(X.T.copy(), Y.T.copy(), np.ones(n_outputs))


def start_fit(network, data, solver, form=Full):
    memory = SOLVERS[solver].memory
    return WeightFit(network, linearize(network, data, form), memory)
