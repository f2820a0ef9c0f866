"""Small RBMs, their draws and states of solvers, for tests of the solvers."""

import naive
import numpy as np
from scipy.special import comb, ndtri
from scipy.stats import chi2

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm import states as states_of_units
from skbayesnn.rbm.learning import contrastive, growth
from skbayesnn.rbm.learning import unit_search as fw
from skbayesnn.rbm.visible import BINARY

# Of each statistical test; the seeds are fixed, so it is what a change of the random
# numbers would meet. There are some 100 of them.
FALSE_ALARM = 1e-5


FRACTIONS = [0.5, 1.7, 3.0, 0.25, 1.0, 2.2]


# n_units, n_features; the last ones are summed over in more than one block
SIZES = [(0, 5), (1, 1), (3, 7), (7, 3), (12, 4), (2, 12), (12, 12), (13, 14)]


def random_model(n_units, n_features, seed=0, scale=1.0, fractional=False):
    """A model and its float64 twin."""
    rng = np.random.default_rng((n_units, n_features, seed))
    weights = rng.normal(0.0, scale, (n_units, n_features))
    hidden, visible = rng.normal(0.0, 0.7, n_units), rng.normal(0.0, 0.7, n_features)
    c = np.resize(FRACTIONS, n_units) if fractional else None
    rbm = rbm_model.make_rbm(weights, hidden, visible, c)
    return rbm, twin(rbm)


def twin(rbm):
    return tuple(array.astype(np.float64) for array in rbm[:4])


def trapped_model(barrier, n_units=22, n_features=40, weight=0.4, bias=-2.0):
    """All units see all features equally: off together, or on together.

    The state in which they are on has nearly all the probability, and a unit turns on
    by itself when more than the fraction ``barrier`` of the features is on: from 0.5
    on, annealing hardly finds it. Returns the model and its log partition function.
    """
    rbm = rbm_model.make_rbm(
        np.full((n_units, n_features), weight),
        np.full(n_units, -weight * barrier * n_features),
        np.full(n_features, bias),
    )
    n_on = np.arange(n_features + 1)
    x = n_on * float(rbm.weights[0, 0]) + float(rbm.hidden[0])
    logs = np.log(comb(n_features, n_on)) + bias * n_on + n_units * naive.softplus(x)
    return rbm, naive.log_sum(logs)


def random_states(n_rows, n_features, seed=0, dtype=np.float32):
    rng = np.random.default_rng((n_rows, n_features, seed))
    return rng.integers(0, 2, (n_rows, n_features)).astype(dtype)


def exact_draws(model, n, seed=0, dtype=np.float32):
    """Independent draws from a small model."""
    V, p = naive.rbm_distribution(model)
    index = np.random.default_rng((n, seed)).choice(len(V), size=n, p=p)
    return V[index].astype(dtype)


def multiset(model, n, dtype=np.float32):
    """About n states, each as often as its probability asks, and their shares."""
    V, p = naive.rbm_distribution(model)
    counts = np.round(p * n).astype(int)
    states = np.repeat(V.astype(dtype), counts, axis=0)
    return states, counts / counts.sum()


def numbers(states):
    """Of states among all."""
    return (states @ 2.0 ** np.arange(states.shape[1])).astype(int)


def check_distribution(states, p):
    """Chi-square of independent states; cells that expect few are taken together."""
    n = len(states)
    counts = np.bincount(numbers(states), minlength=len(p)).astype(float)
    assert len(counts) == len(p)
    assert not counts[p == 0.0].any()
    few = n * p < 5.0
    expected = np.append(n * p[~few], n * p[few].sum())
    counts = np.append(counts[~few], counts[few].sum())
    if expected[-1] < 5.0:
        # too few for a cell of their own: with the smallest one
        smallest = np.argmin(expected[:-1])
        expected[smallest] += expected[-1]
        counts[smallest] += counts[-1]
        expected, counts = expected[:-1], counts[:-1]
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert statistic < chi2.isf(FALSE_ALARM, len(expected) - 1)


def check_mean(values, expected):
    """Means of independent values, by their standard errors; Bonferroni over all."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    bound = -ndtri(FALSE_ALARM / 2 / np.size(expected))
    assert (np.abs(values.mean(axis=0) - expected) <= bound * error + 1e-6).all()


CLAMPED = (np.array([False, True, False, True]), np.array([0, 1, 0, 0], np.uint8))


def clamp_of(clamped):
    return rbm_model.Clamp(*(part[None] for part in CLAMPED)) if clamped else None


PLAIN = contrastive.Settings(1, False, 0.0, 0.0, False, averaging=0.0)


def start_state(rbm, chains, visible_offset=None, hidden_offset=None, seed=0):
    n_units, n_features = rbm.weights.shape
    if visible_offset is None:
        visible_offset = np.zeros(n_features)
    if hidden_offset is None:
        hidden_offset = np.zeros(n_units)
    return contrastive.init(
        rbm_model.copy(rbm), visible_offset, hidden_offset, chains, seed
    )


def uniform_weights(V):
    return np.full(len(V), 1.0 / len(V))


def base_of(rbm, model):
    """Log odds of the model's own rates."""
    V, p = naive.rbm_distribution(model)
    return BINARY.natural_parameters(p @ V, 1000)


KINDS = ["linearized", "likelihood"]


def objective_of(kind, unit_weight=1.0, unit_penalty=0.1, radius=None):
    return fw.Objective(kind, unit_penalty, radius, unit_weight)


def search_samples(kind, with_offsets, seed=0, scale=1.0):
    """Samples of an enumerated model, and their exact probabilities.

    With a ``scale``, the data are probabilities.
    """
    _, model = random_model(2, 4, seed)
    data = np.float32(scale) * random_states(12, 4, seed)
    states, shares = multiset(model, 2000)
    rng = np.random.default_rng(seed)
    offsets = None, None
    if with_offsets:
        offsets = rng.normal(size=len(data)), rng.normal(size=16)
    samples = fw.Samples(fw.pack(data), fw.pack(states), offsets[0], None)
    assert isinstance(samples.data, fw.PackedRows if scale == 1.0 else fw.DenseRows)
    if with_offsets:
        samples = samples._replace(model_offset=offsets[1][numbers(states)])
    o_data, o_model = offsets if with_offsets else (np.zeros(len(data)), np.zeros(16))
    return samples, (data.astype(float), naive.all_states(4), shares), (o_data, o_model)


def all_rows(rows):
    return rows.take(slice(None))


def make_unit(weights, bias, shift=0.0):
    return fw.Unit(np.float32(weights), float(bias), shift, 0.0, 0)


class ArrayRows:
    """Training rows, as the estimators hand them to a rbm_model."""

    def __init__(self, V):
        self.V = V

    def __len__(self):
        return len(self.V)

    def take(self, index):
        return self.V[index]

    def states(self, index):
        return self.take(index).astype(np.uint8)


SETTINGS = growth.Settings(
    objective="likelihood",
    unit_penalty=0.01,
    radius=None,
    alpha="count",
    away_steps=False,
    units_per_step=1,
    n_search_rows=1000,
    max_search_iter=20,
    n_gibbs_steps=3,
    n_bias_steps=1,
    n_corrective_steps=5,
    batch_size=20,
    learning_rate=0.1,
    averaging=0.0,
    tol=0.0,
)


def growing_state(rbm, states, data):
    means = rbm_model.hidden_means(rbm, data).mean(axis=0)
    chains = rbm_model.Chains(states, np.uint64(1), 1, 0)
    state = growth.init(rbm, len(states), data.mean(axis=0), means, 0)
    return state._replace(chains=chains)


def with_alpha(rbm, alpha):
    n_units = len(rbm.weights)
    return rbm._replace(unit_weights=np.full(n_units, alpha / n_units, np.float32))


def blocks_data(n=400, seed=0):
    """Two groups of features that are on or off together."""
    rng = np.random.default_rng(seed)
    V = np.repeat(rng.integers(0, 2, (n, 2)), 3, axis=1)
    noise = rng.random(V.shape) < 0.05
    return np.abs(V - noise).astype(np.float32)


def grow(settings, data, n_steps, seed=0, n_chains=200):
    rbm = rbm_model.independent_units(
        BINARY.natural_parameters(data.mean(axis=0), len(data))
    )
    state = growth.init(rbm, n_chains, data.mean(axis=0), np.zeros(0), seed)
    infos = []
    for _ in range(n_steps):
        state, info = growth.step(settings, state, ArrayRows(data), seed)
        infos.append(info)
        assert all(array.dtype == np.float32 for array in state.rbm[:4])
        assert state.chains.states.dtype == np.uint8
    return state, infos


def likelihood_of(state, data):
    return naive.rbm_mean_log_likelihood(twin(state.rbm), data.astype(float))


def independent_likelihood(data):
    base = BINARY.natural_parameters(data.mean(axis=0), len(data))
    model = twin(rbm_model.independent_units(base))
    return naive.rbm_mean_log_likelihood(model, data.astype(float))


def transposed_product(states, values):
    """``states.T @ values`` of states as the update of the weights takes it."""
    out = np.empty((states.shape[1], values.shape[1]), dtype=np.float32)

    def take(part, first, last):
        out[:, first:last] = part[:, : last - first]

    states_of_units.give_transposed_product(states, values, take)
    return out
