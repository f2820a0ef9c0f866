"""The interface of visible units, by Gaussian units as a second implementation."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from skbayesnn.rbm import model as rbm_model
from skbayesnn.rbm.learning import contrastive
from skbayesnn.rbm.likelihood import annealing, exact
from skbayesnn.rbm.states import all_states
from skbayesnn.rbm.visible import BINARY, BinaryUnits

LOG_2_PI = np.log(2.0 * np.pi)


class GaussianUnits(NamedTuple):
    """Real values of unit variance: log m(v) = -v^2 / 2."""

    enumerable = False

    def natural_parameters(self, means, n_samples):
        return np.asarray(means, dtype=np.float64)

    def log_partitions(self, y):
        return 0.5 * (np.square(y) + LOG_2_PI)

    def sum_log_partitions(self, low, high):
        return self.log_partitions(high[:, None] + low).sum(axis=2)

    def means(self, y):
        return y

    def variances(self, means):
        return np.ones_like(means)

    def add_means(self, x, bias, total):
        total += x + bias

    def draw(self, x, bias, place):
        seed, step, first_row = (int(number) for number in place)
        noise = [
            np.random.default_rng((seed, step, row)).standard_normal(x.shape[1])
            for row in range(first_row, first_row + len(x))
        ]
        return (x + bias + np.array(noise)).astype(np.float32)

    def draw_from(self, h, weights, bias, place):
        return self.draw(h @ weights, bias, place)

    def log_factor(self, v, bias):
        return v @ bias.astype(np.float64) - 0.5 * np.square(v).sum(axis=1)

    def fast_log_factor(self, v, bias):
        return self.log_factor(v, bias)

    def draw_annealed(self, x, base, bias, beta, place):
        now = np.float32(beta)
        v = self.draw(now * x, (1 - now) * base + now * bias, place)
        return v, self.slope(v, base, bias)

    def slope(self, v, base, bias):
        return v.astype(np.float64) @ (bias - base)

    def flip(self, v):
        raise NotImplementedError("a real value has no other value")

    def hold(self, v, clamp):
        return np.where(clamp.mask, clamp.values, v)

    def check_states(self, values, name):
        """Each number is a state."""

    def public(self, v):
        return v


GAUSSIAN = GaussianUnits()
PLAIN = contrastive.Settings(1, True, 0.0, 0.0, True, averaging=0.1)


def test_both_kinds_have_the_same_interface():
    def interface(cls):
        return {name for name in vars(cls) if not name.startswith("_")}

    assert interface(GaussianUnits) == interface(BinaryUnits)
    assert rbm_model.independent_units(np.zeros(2)).units is BINARY


def gaussian_model(n_units=3, n_features=2, seed=0, c=None):
    rng = np.random.default_rng((n_units, n_features, seed))
    weights = rng.normal(0.0, 0.8, (n_units, n_features))
    hidden, visible = rng.normal(0.0, 0.7, n_units), rng.normal(0.0, 0.7, n_features)
    return rbm_model.make_rbm(weights, hidden, visible, c, GAUSSIAN)


def mixture(rbm):
    """The marginal over the visible units: log weights and means of Gaussians."""
    W, b, a = (np.asarray(array, dtype=np.float64) for array in rbm[:3])
    H = all_states(len(b))
    means = H @ W + a
    log_weights = H @ b + 0.5 * (np.square(means) + LOG_2_PI).sum(axis=1)
    return log_weights, means


def grid_log_partition(rbm, width=12.0, n=601):
    """By a sum over a grid of two visible units, with any unit weights."""
    axis = np.linspace(-width, width, n)
    V = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    log_p = -rbm_model.free_energy(rbm, V.astype(np.float32))
    return logsumexp(log_p) + 2.0 * np.log(axis[1] - axis[0])


def log_likelihood(rbm, V):
    return float(np.mean(-rbm_model.free_energy(rbm, V)) - exact.log_partition(rbm))


@pytest.mark.parametrize("n_units", [0, 1, 3, 13])
def test_enumeration_of_the_hidden_units(n_units):
    rbm = gaussian_model(n_units)
    assert exact.size(rbm) == n_units
    log_weights, _ = mixture(rbm)
    assert_allclose(exact.log_partition(rbm), logsumexp(log_weights), rtol=1e-12)


def test_density_of_the_visible_units():
    rbm = gaussian_model()
    assert_allclose(exact.log_partition(rbm), grid_log_partition(rbm), rtol=1e-5)
    V = np.random.default_rng(0).normal(0.0, 2.0, (9, 2)).astype(np.float32)
    fast = rbm_model.unnormalised_log_probability(rbm, V)
    assert_allclose(fast, -rbm_model.free_energy(rbm, V), rtol=1e-5, atol=1e-5)


def test_what_cannot_be_enumerated_is_told():
    rbm = gaussian_model(c=[0.5, 1.0, 2.0])
    with pytest.raises(ValueError, match="Neither side can be enumerated"):
        exact.log_partition(rbm)


@pytest.mark.slow
@pytest.mark.parametrize("c", [None, [0.5, 1.7, 1.0]])
def test_chains_have_the_means_and_variances_of_the_model(c):
    rbm = gaussian_model(c=c)
    chains = rbm_model.start_chains(rbm, 4000, 1)
    chains, acceptance = rbm_model.gibbs(rbm, chains, 40)
    V = chains.states.astype(np.float64)
    axis = np.linspace(-12.0, 12.0, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    p = np.exp(-rbm_model.free_energy(rbm, grid.astype(np.float32)))
    p /= p.sum()
    mean, variance = p @ grid, p @ np.square(grid) - np.square(p @ grid)
    error = np.sqrt(variance / len(V))
    assert (np.abs(V.mean(axis=0) - mean) < 5.0 * error).all()
    assert_allclose(V.var(axis=0), variance, rtol=0.15)
    assert acceptance == 1.0 if c is None else 0.0 < acceptance < 1.0
    # the same means, averaged over steps of the chains
    means = rbm_model.sum_visible(rbm, chains, 5)[0].astype(np.float64) / 5
    assert (np.abs(means.mean(axis=0) - mean) < 5.0 * error).all()


def test_chains_hold_what_is_clamped():
    rbm = gaussian_model()
    clamp = rbm_model.Clamp(np.array([[True, False]]), np.float32([[0.7, 0.0]]))
    chains, _ = annealing.annealed_chains(
        rbm, np.zeros(2), np.linspace(0.0, 1.0, 9), 50, 3, clamp
    )
    chains, _ = rbm_model.gibbs(rbm, chains, 3, clamp)
    assert (chains.states[:, 0] == np.float32(0.7)).all()
    assert np.unique(chains.states[:, 1]).size == 50


@pytest.mark.parametrize("reverse", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "c", [pytest.param(None, marks=pytest.mark.slow), [0.5, 1.7, 1.0]]
)
def test_annealing_agrees_with_the_log_partition(c, reverse):
    rbm = gaussian_model(c=c)
    expected = exact.log_partition(rbm) if c is None else grid_log_partition(rbm)
    base = GAUSSIAN.natural_parameters([0.3, -0.2], 100)
    result = annealing.ais(
        rbm, base, annealing.make_betas(200), 100, 0, reverse=reverse
    )
    low, high = result.interval
    assert low - 1e-3 < expected < high + 1e-3
    assert high - low < 0.5


@pytest.mark.parametrize(
    "persistent", [True, pytest.param(False, marks=pytest.mark.slow)]
)
def test_training_raises_the_likelihood(persistent):
    """Of a mixture of two Gaussians, which one hidden unit can describe."""
    rng = np.random.default_rng(5)
    centers = np.array([[1.5, -1.0], [-1.5, 1.0]])
    V = centers[rng.integers(0, 2, 400)] + rng.standard_normal((400, 2))
    V = V.astype(np.float32)
    base = GAUSSIAN.natural_parameters(V.mean(axis=0), len(V))
    weights = 0.01 * rng.standard_normal((2, 2))
    rbm = rbm_model.make_rbm(weights, np.zeros(2), base, None, GAUSSIAN)
    before = log_likelihood(rbm, V)
    settings = PLAIN._replace(persistent=persistent)
    state = contrastive.init(rbm, V.mean(axis=0), np.full(2, 0.5), V[:50], 0)
    for _ in range(300):
        batch = V[rng.choice(len(V), 50, replace=False)]
        state, _ = contrastive.step(settings, state, batch, 0.05, 0)
    contrastive.settle(settings, state)
    contrastive.check(state)
    # the mixture itself, with weights 1/2, is the best that can be hoped for
    distances = np.square(V[:, None] - centers).sum(axis=2)
    best = np.mean(logsumexp(-0.5 * distances, axis=1) - np.log(2.0) - LOG_2_PI)
    after = log_likelihood(contrastive.model(settings, state), V)
    assert after > before + 0.8 * (best - before) > before
