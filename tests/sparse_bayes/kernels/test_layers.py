"""The compiled passes against their slow references.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import math

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.sparse_bayes.kernels import activations
from skbayesnn.sparse_bayes.kernels import layers as mlp
from skbayesnn.sparse_bayes.kernels import one_row as row
from skbayesnn.sparse_bayes.kernels import recursion as narx
from skbayesnn.sparse_bayes.kernels.activations import BLOCK

CODES = {
    "tanh": activations.TANH,
    "relu": activations.RELU,
    "logistic": activations.LOGISTIC,
}
HIDDEN = [(), (4,), (4, 3), (3, 4, 2)]
N_SAMPLES = [1, 63, 64, 65, 130]
EPS = np.finfo(float).eps


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
        self.sizes = np.array(sizes, dtype=np.int64)
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
        self.column = np.full(n_parameters, -1)
        self.column[self.keep] = np.arange(self.keep.sum())

    @property
    def network(self):
        return self.theta, self.sizes, self.code

    @property
    def reference(self):
        return self.layers, self.activation


def check_all_passes(case):
    """Every pass over samples agrees with its reference."""
    tol = dict(rtol=1e-11, atol=1e-11)
    X, Y, XT, YT, weights = case.X, case.Y, case.XT, case.YT, case.weights
    expected = naive.forward(*case.reference, X)
    out = mlp.forward(*case.network, XT)
    assert out.shape == expected.T.shape
    assert_allclose(out, expected.T, **tol)

    loss, gradient = mlp.loss_gradient(*case.network, weights, XT, YT)
    loss_expected, gradient_expected = naive.loss_gradient(
        *case.reference, weights[:, 0], X, Y
    )
    assert_allclose(loss, loss_expected, **tol)
    assert_allclose(gradient, gradient_expected, rtol=1e-10, atol=1e-9)

    diag = mlp.ggn_diag(*case.network, weights, XT)
    diag_expected = naive.ggn_diag(*case.reference, weights[:, 0], X)
    assert_allclose(diag, diag_expected, rtol=1e-10, atol=1e-10)

    n_kept = int(case.keep.sum())
    out, JT = mlp.jacobian(*case.network, case.column, n_kept, weights, XT)
    J = naive.jacobian(*case.reference, X) * weights
    assert_allclose(out, expected.T, **tol)
    assert JT.shape == (n_kept, case.sizes[-1], len(X))
    assert_allclose(JT, J.transpose(2, 1, 0)[case.keep], **tol)
    assert_allclose(
        np.einsum("pos,pos->p", JT, JT), diag[case.keep], rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("activation", CODES)
def test_passes_by_layers(activation, hidden, n_outputs):
    check_all_passes(Case((3, *hidden, n_outputs), activation))


@pytest.mark.parametrize("n_samples", [1, 2, 65, 130])
def test_each_observation_may_have_a_weight(n_samples):
    case = Case((3, 4, 2), n_samples=n_samples, pruned=0.3, skip=True)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.0, 2.0, size=case.YT.shape)
    weights[0, 0] = 0.0
    J = naive.jacobian(*case.reference, case.X) * weights.T[:, :, None]
    residual = (naive.forward(*case.reference, case.X) - case.Y) * weights.T
    tol = dict(rtol=1e-11, atol=1e-12)
    loss, gradient = mlp.loss_gradient(*case.network, weights, case.XT, case.YT)
    assert_allclose(loss, 0.5 * np.sum(residual**2), **tol)
    assert_allclose(gradient, np.einsum("sop,so->p", J, residual), **tol)
    diag = mlp.ggn_diag(*case.network, weights, case.XT)
    assert_allclose(diag, np.sum(J**2, axis=(0, 1)), **tol)
    n_kept = int(case.keep.sum())
    _, JT = mlp.jacobian(*case.network, case.column, n_kept, weights, case.XT)
    assert_allclose(JT, J.transpose(2, 1, 0)[case.keep], **tol)
    # the same for all samples
    same = np.repeat(case.weights, n_samples, axis=1)
    for function in (mlp.loss_gradient, mlp.ggn_diag):
        targets = (case.YT,) if function is mlp.loss_gradient else ()
        one = function(*case.network, case.weights, case.XT, *targets)
        many = function(*case.network, same, case.XT, *targets)
        assert_allclose(np.hstack(one), np.hstack(many), rtol=1e-14)


@pytest.mark.parametrize("n_samples", N_SAMPLES)
@pytest.mark.parametrize("activation", CODES)
def test_passes_by_sample_count(activation, n_samples):
    check_all_passes(Case((2, 3, 2), activation, n_samples))


@pytest.mark.parametrize("pruned", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("activation", CODES)
def test_passes_with_pruned_parameters(activation, pruned):
    check_all_passes(Case((4, 3, 3, 2), activation, pruned=pruned, seed=1))


@pytest.mark.parametrize("sizes", [(0, 1), (0, 0, 1), (0, 0, 0, 2), (2, 0, 3)])
@pytest.mark.parametrize("activation", CODES)
def test_passes_with_layers_of_no_units(activation, sizes):
    case = Case(sizes, activation)
    check_all_passes(case)
    out = mlp.forward(*case.network, case.XT)
    assert_array_equal(out, np.repeat(case.layers[-1][1][:, None], 65, axis=1))


@pytest.mark.parametrize("pruned", [0.0, 0.6])
@pytest.mark.parametrize("hidden", [(), (4,), (0,), (3, 2)])
@pytest.mark.parametrize("activation", CODES)
def test_passes_with_a_skip_connection(activation, hidden, pruned):
    case = Case((3, *hidden, 2), activation, pruned=pruned, seed=1, skip=True)
    assert case.theta[-6:].any()
    check_all_passes(case)


def test_the_skip_connection_starts_behind_the_layers():
    for sizes in [(3, 2), (3, 4, 2), (3, 0, 2), (0, 1)]:
        expected = len(Case(sizes).theta)
        assert mlp.n_layer_parameters(np.array(sizes)) == expected


def test_a_skip_connection_is_a_linear_network_beside_the_layers():
    case = Case((3, 4, 2), skip=True)
    layers = mlp.forward(case.theta[:-6], case.sizes, case.code, case.XT)
    beside = case.theta[-6:].reshape(3, 2).T @ case.XT
    found = mlp.forward(*case.network, case.XT)
    assert_allclose(found, layers + beside, rtol=1e-12, atol=1e-13)


def test_no_samples():
    case = Case((2, 3, 1), n_samples=0)
    assert mlp.forward(*case.network, case.XT).shape == (1, 0)
    loss, gradient = mlp.loss_gradient(*case.network, case.weights, case.XT, case.YT)
    assert loss == 0.0 and not gradient.any()


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("activation", CODES)
def test_references_agree_with_each_other(activation, skip):
    case = Case((3, 4, 2, 2), activation, n_samples=7, skip=skip)
    by_step = naive.jacobian(*case.reference, case.X)
    by_hand = naive.jacobian_backpropagation(*case.reference, case.X)
    assert_allclose(by_step, by_hand, rtol=1e-12, atol=1e-13)


def test_inputs_stay_untouched_and_may_be_read_only():
    case = Case((3, 4, 2), pruned=0.3)
    arrays = [case.theta, case.sizes, case.weights, case.column, case.XT, case.YT]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    check_all_passes(case)
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


def test_orders_of_memory_agree():
    case = Case((3, 4, 2))
    expected = mlp.forward(*case.network, case.XT)
    fortran = mlp.forward(*case.network, np.asfortranarray(case.XT))
    strided = mlp.forward(*case.network, np.repeat(case.XT, 2, axis=1)[:, ::2])
    assert_array_equal(fortran, expected)
    assert_array_equal(strided, expected)
    assert expected.dtype == np.float64


# one sample


ROWS = [
    dict(sizes=(3, 2)),
    dict(sizes=(3, 4, 1)),
    dict(sizes=(2, 3, 4, 2), pruned=0.4),
    # wider than a block of samples
    dict(sizes=(2, BLOCK + 6, 2)),
    dict(sizes=(2, 0, 3)),
    dict(sizes=(0, 0, 1)),
    dict(sizes=(3, 2), skip=True),
    dict(sizes=(3, 4, 2), skip=True),
    dict(sizes=(3, 4, 3, 2), skip=True, pruned=0.4),
    dict(sizes=(3, 0, 2), skip=True),
]


@pytest.mark.parametrize("activation", CODES)
@pytest.mark.parametrize("options", ROWS, ids=str)
def test_row(options, activation):
    case = Case(**options, activation=activation, n_samples=3)
    n_in, n_out = case.sizes[0], case.sizes[-1]
    a, power, bits = row.row_workspace(case.sizes)
    delta, derivative = np.empty_like(a), np.empty_like(case.theta)
    for x, seed in zip(case.X, case.Y, strict=True):
        # what the last sample left behind is not read
        a[n_in:] = delta[:] = derivative[:] = np.nan
        a[:n_in] = x
        row.forward_row(*case.network, a, power, bits)
        assert_array_equal(a[:n_in], x)
        expected = naive.forward(*case.reference, x)
        assert_allclose(a[len(a) - n_out :], expected, rtol=1e-12, atol=1e-13)

        delta[len(delta) - n_out :] = seed
        row.backward_row(*case.network, a, delta, derivative)
        expected = naive.backpropagation(*case.reference, x, seed)
        assert_allclose(derivative, expected, rtol=1e-11, atol=1e-12)
        expected = seed @ naive.input_jacobian(*case.reference, x[None])[0]
        assert_allclose(delta[:n_in], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("activation", CODES)
def test_row_and_block_agree_at_all_units(activation):
    case = Case((3, 5, 4, 2), activation, n_samples=1, skip=True)
    a, power, bits = row.row_workspace(case.sizes)
    a[:3] = case.X[0]
    row.forward_row(*case.network, a, power, bits)
    hidden = naive.activate(
        activation, case.X[0] @ case.layers[0][0] + case.layers[0][1]
    )
    assert_allclose(a[3:8], hidden, rtol=1e-13, atol=1e-14)
    out = mlp.forward(*case.network, case.XT)
    assert_allclose(a[-2:], out[:, 0], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("activation", CODES)
def test_a_missing_value_reaches_the_outputs_of_a_row(activation):
    case = Case((2, 3, 2), activation)
    a, power, bits = row.row_workspace(case.sizes)
    a[:2] = 0.3, np.nan
    with np.errstate(all="ignore"):
        row.forward_row(*case.network, a, power, bits)
    assert np.isnan(a[2:]).all()


# activations


def apply_many(activation, values):
    """`activate_many` on a copy."""
    h = np.array(values)
    power, bits = activations.activation_workspace(len(h))
    activations.activate_many(CODES[activation], h, len(h), power, bits)
    return h


def ladder(lowest=-320):
    """Magnitudes from denormal to huge, dense where tanh bends, both signs."""
    magnitudes = np.concatenate(
        [10.0 ** np.arange(lowest, 300, 10), np.linspace(0.0, 24.0, 700), [1e308]]
    )
    return np.concatenate([magnitudes, -magnitudes])


def ulps(values, reference):
    """Error in units in the last place of the reference, itself in long double."""
    spacing = np.spacing(np.abs(reference.astype(float)))
    return np.abs((values - reference) / spacing).astype(float)


def test_many_tanh_are_accurate_to_a_few_ulp():
    x = ladder()
    reference = np.tanh(x.astype(np.longdouble))
    with np.errstate(over="ignore"):
        found = apply_many("tanh", x)
    assert ulps(found, reference).max() < 4.0
    assert np.abs(found).max() <= 1.0
    assert_array_equal(np.sign(found), np.sign(x))


def test_many_tanh_are_accurate_at_random_points():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2000) * 10.0 ** rng.uniform(-8.0, 1.0, size=2000)
    assert ulps(apply_many("tanh", x), np.tanh(x.astype(np.longdouble))).max() < 4.0


def test_many_logistic():
    x = np.linspace(-60.0, 60.0, 601)
    reference = 1.0 / (1.0 + np.exp(-x))
    # built from a tanh around 1/2: accurate beside 1, not relative to itself
    assert_allclose(apply_many("logistic", x), reference, rtol=0.0, atol=2.0 * EPS)
    assert_array_equal(apply_many("logistic", np.array([-1e308, 1e308])), [0.0, 1.0])


def test_many_relu():
    x = ladder()
    assert_array_equal(apply_many("relu", x), np.maximum(x, 0.0))


@pytest.mark.parametrize(
    "activation, low, high",
    [("tanh", -1.0, 1.0), ("relu", 0.0, np.inf), ("logistic", 0.0, 1.0)],
)
def test_many_at_nan_and_infinity(activation, low, high):
    values = np.zeros(BLOCK)
    values[[3, 10, 20, 63]] = [np.nan, -np.inf, np.inf, -np.nan]
    with np.errstate(all="ignore"):
        found = apply_many(activation, values)
    assert np.isnan(found[[3, 63]]).all()
    assert_array_equal(found[[10, 20]], [low, high])
    others = np.delete(found, [3, 10, 20, 63])
    assert_array_equal(others, naive.activate(activation, np.zeros(BLOCK - 4)))


@pytest.mark.parametrize("activation", CODES)
def test_single_values(activation):
    code = CODES[activation]
    for h in [-700.0, -3.0, -1e-9, 0.0, 1e-9, 0.7, 3.0, 700.0]:
        a = activations.activate(code, h)
        assert_allclose(a, naive.activate(activation, h), rtol=4 * EPS, atol=0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            expected = naive.slope(activation, h)
        if abs(h) < 100.0:
            assert_allclose(activations.slope(code, a), expected, atol=2 * EPS)
    assert math.isnan(activations.activate(code, np.nan))
    ends = [activations.activate(code, sign * np.inf) for sign in (-1, 1)]
    limits = {"tanh": [-1.0, 1.0], "relu": [0.0, np.inf], "logistic": [0.0, 1.0]}
    # exp(inf) is exact, so even the logistic function reaches its limits
    assert ends == limits[activation]


@pytest.mark.parametrize("activation", CODES)
def test_slope_block_agrees_with_single_slopes(activation):
    rng = np.random.default_rng(0)
    a = naive.activate(activation, rng.standard_normal(BLOCK))
    delta = rng.standard_normal(BLOCK)
    expected = [
        d * activations.slope(CODES[activation], x)
        for x, d in zip(a, delta, strict=True)
    ]
    activations.slope_block(CODES[activation], a, delta)
    assert_allclose(delta, expected, rtol=4 * EPS)


@pytest.mark.parametrize("activation", CODES)
def test_many_and_single_activations_agree(activation):
    x = np.linspace(-8.0, 8.0, 101)
    single = [activations.activate(CODES[activation], h) for h in x]
    assert_allclose(apply_many(activation, x), single, rtol=0.0, atol=4 * EPS)


@pytest.mark.parametrize("n", [0, 1, 5, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("activation", CODES)
def test_only_so_many_are_activated(activation, n):
    h = np.linspace(-2.0, 2.0, n + 3)
    expected = h.copy()
    expected[:n] = naive.activate(activation, h[:n])
    activations.activate_many(
        CODES[activation], h, n, *activations.activation_workspace(n)
    )
    assert_allclose(h, expected, rtol=1e-14)
    assert_array_equal(h[n:], expected[n:])


@pytest.mark.parametrize("n", [1, BLOCK])
def test_workspace_is_one_memory_seen_twice(n):
    power, bits = activations.activation_workspace(n)
    power[:] = 1.0
    assert power.shape == bits.shape == (n,)
    assert (bits == 1023 << 52).all()


# NaN and infinity under the floating-point policy


@pytest.mark.parametrize("activation", CODES)
def test_a_missing_value_spoils_its_own_sample_only(activation):
    case = Case((2, 3, 2), activation, n_samples=70)
    case.XT[1, 5] = np.nan
    with np.errstate(all="ignore"):
        out = mlp.forward(*case.network, case.XT)
        _, JT = mlp.jacobian(
            *case.network, case.column, len(case.theta), case.weights, case.XT
        )
        loss, gradient = mlp.loss_gradient(
            *case.network, case.weights, case.XT, case.YT
        )
    assert_array_equal(np.flatnonzero(np.isnan(out).any(axis=0)), [5])
    assert np.isnan(out[:, 5]).all()
    assert np.isnan(JT[:, :, 5]).any()
    assert np.isfinite(np.delete(JT, 5, axis=2)).all()
    assert math.isnan(loss) and np.isnan(gradient).any()


def test_infinity_saturates_and_differences_of_infinities_are_nan():
    theta = np.array([1.0, 1.0, 0.0])
    XT = np.array([[np.inf, np.inf, -np.inf, 1.0], [1.0, -np.inf, 2.0, 1.0]])
    with np.errstate(all="ignore"):
        linear = mlp.forward(theta, np.array([2, 1]), CODES["tanh"], XT)
    assert_array_equal(linear, [[np.inf, np.nan, -np.inf, 2.0]])
    case = Case((2, 3, 1))
    XT = np.array([[np.inf], [0.0]])
    with np.errstate(all="ignore"):
        out = mlp.forward(*case.network, XT)
    (W, _), (W2, b2) = case.layers
    assert_allclose(out[:, 0], np.sign(W[0]) @ W2 + b2, rtol=1e-14)


def test_a_pruned_weight_does_not_read_its_input():
    case = Case((2, 3, 1))
    case.theta[:3] = 0.0
    case.XT[0] = np.nan
    assert np.isfinite(mlp.forward(*case.network, case.XT)).all()


# recursions


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
        return narx.Recursion(signal, lag, *self.model[3:7], self.model.limit)

    @property
    def arguments(self):
        return (*self.case.network, self.recursion)

    def posterior(self, diagonal):
        """As the kernels take it, and as the reference does: for all parameters."""
        keep = self.case.keep
        variances = np.diag(self.covariance).copy()
        matrix = np.diag(variances) if diagonal else self.covariance
        full = np.zeros((len(keep), len(keep)))
        full[np.ix_(keep, keep)] = matrix
        given = np.empty((0, 0)) if diagonal else matrix
        ceiling = np.full(len(self.noise), np.inf)
        return (self.case.column, given, variances, self.noise, ceiling), full


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


@pytest.mark.parametrize("activation", CODES)
@pytest.mark.parametrize("options", SYSTEMS, ids=str)
def test_simulate(options, activation):
    system = System(**options, activation=activation)
    expected, diverged = naive.free_run(
        system.model, system.U, system.Y, system.start, system.stop
    )
    Y = system.Y.copy()
    # what is simulated is not read
    Y[system.start :] = 1e6
    found = narx.simulate(*system.arguments, system.U, Y, system.start, system.stop)
    assert found == diverged == -1
    assert_allclose(Y, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("options", SYSTEMS, ids=str)
def test_simulate_variance(options, diagonal):
    system = System(**options)
    posterior, full = system.posterior(diagonal)
    expected, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, system.start, system.stop, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, -1.0)
    diverged = narx.simulate_variance(
        *system.arguments, *posterior, system.U, Y, V, system.start, system.stop
    )
    assert diverged == -1
    rows = slice(system.start, system.stop)
    assert_allclose(Y, expected, rtol=1e-11, atol=1e-12)
    assert_allclose(V[rows], V_expected[rows], rtol=1e-10)
    # rows before the start are the caller's
    assert (V[: system.start] == -1.0).all()


@pytest.mark.parametrize("activation", ["relu", "logistic"])
def test_simulate_variance_of_other_activations(activation):
    system = System(activation=activation, n_outputs=2, hidden=(3, 2))
    posterior, full = system.posterior(False)
    rows = (system.start, system.stop)
    _, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, *rows, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.simulate_variance(*system.arguments, *posterior, system.U, Y, V, *rows)
    assert_allclose(V, V_expected, rtol=1e-10)


@pytest.mark.parametrize("start", [3, 5, 8])
def test_simulate_variance_from_any_row(start):
    system = System(n_outputs=2)
    posterior, full = system.posterior(False)
    _, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, start, 12, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.simulate_variance(*system.arguments, *posterior, system.U, Y, V, start, 12)
    assert_allclose(V, V_expected, rtol=1e-10)
    assert_array_equal(Y[12:], system.Y[12:])


@pytest.mark.parametrize("horizon", [1, 2, 4, 30])
@pytest.mark.parametrize("options", SYSTEMS, ids=str)
def test_predict_ahead(options, horizon):
    system = System(**options, n_rows=10)
    posterior, full = system.posterior(False)
    U, Y = system.U, system.Y
    mean_expected, V_expected, _ = naive.predict_ahead(
        system.model, U, Y, horizon, 1, 10, full, system.noise
    )
    mean, V = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
    n_diverged = narx.predict_ahead(*system.arguments, U, Y, horizon, mean, 1, 10)
    assert n_diverged == 0
    assert_allclose(mean, mean_expected, rtol=1e-11, atol=1e-12)
    mean[:] = np.nan
    n_diverged = narx.predict_ahead_variance(
        *system.arguments, *posterior, U, Y, horizon, mean, V, 1, 10
    )
    assert n_diverged == 0
    assert_allclose(mean, mean_expected, rtol=1e-11, atol=1e-12)
    assert_allclose(V, V_expected, rtol=1e-10)


def test_predict_ahead_with_a_long_horizon_is_the_free_run():
    system = System(n_outputs=2)
    mean = np.full(system.Y.shape, np.nan)
    narx.predict_ahead(*system.arguments, system.U, system.Y, 99, mean, 0, system.stop)
    Y = system.Y.copy()
    narx.simulate(*system.arguments, system.U, Y, system.start, system.stop)
    assert_allclose(mean[system.start :], Y[system.start :], rtol=1e-12)


def test_predict_ahead_skips_what_is_missing():
    system = System(n_rows=16)
    system.Y[7] = np.nan
    system.U[12] = np.nan
    expected, _, _ = naive.predict_ahead(system.model, system.U, system.Y, 2, 0, 16)
    mean = np.full(system.Y.shape, np.nan)
    n_diverged = narx.predict_ahead(
        *system.arguments, system.U, system.Y, 2, mean, 0, 16
    )
    assert n_diverged == 0
    assert_allclose(mean, expected, rtol=1e-11)
    assert np.isnan(mean[system.start :]).any() and np.isfinite(mean).any()


def test_recursions_take_read_only_arrays():
    system = System()
    posterior, _ = system.posterior(False)
    Y = system.Y.copy()
    narx.simulate(*system.arguments, system.U, Y, system.start, system.stop)
    system.U.flags.writeable = False
    again, V = system.Y.copy(), np.empty_like(Y)
    narx.simulate_variance(
        *system.arguments, *posterior, system.U, again, V, system.start, system.stop
    )
    assert_array_equal(again, Y)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_fed_back_noise_has_a_ceiling(n_outputs):
    system = System(n_outputs=n_outputs, hidden=(), gain=0.3)
    (*posterior, _), full = system.posterior(False)
    # between the variance in the first row and that in the last
    ceiling = 1.01 * system.noise**2
    rows = (system.start, system.stop)
    record = (system.model, system.U, system.Y, *rows, full, system.noise)
    _, V_expected, _ = naive.free_run_variance(*record, ceiling)
    _, V_free, _ = naive.free_run_variance(*record)
    assert (V_expected < V_free)[-1].all() and (V_expected == V_free)[rows[0]].all()
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    arguments = (*system.arguments, *posterior, ceiling, system.U)
    narx.simulate_variance(*arguments, Y, V, *rows)
    assert_allclose(V, V_expected, rtol=1e-10)
    out, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.predict_ahead_variance(*arguments, system.Y, 99, out, V, 0, system.stop)
    assert_allclose(V, V_expected, rtol=1e-10)


# noise that may add as much as it does
FREE = np.full(1, np.inf)


def autoregression(*coefficients, intercept=0.0, limit=100.0):
    """A linear network on its own past, without inputs or scales."""
    n = len(coefficients)
    recursion = narx.Recursion(
        signal=np.zeros(n, dtype=np.int64),
        lag=np.arange(1, n + 1),
        x_offset=np.zeros(n),
        x_scale=np.ones(n),
        y_offset=np.zeros(1),
        y_scale=np.ones(1),
        limit=limit,
    )
    theta = np.array([*coefficients, intercept])
    return theta, np.array([n, 1]), CODES["tanh"], recursion


@pytest.mark.parametrize("with_variance", [False, True])
def test_divergence_is_reported_and_blanks_what_follows(with_variance):
    arguments = autoregression(2.0)
    U, Y = np.empty((12, 0)), np.zeros((12, 1))
    Y[0], Y[10:] = 1.0, 5.0
    V = np.zeros_like(Y)
    if with_variance:
        column = np.array([0, 1])
        posterior = (column, np.eye(2), np.ones(2), np.ones(1), FREE)
        row = narx.simulate_variance(*arguments, *posterior, U, Y, V, 1, 10)
        assert np.isfinite(V[:7]).all() and np.isnan(V[7:10]).all()
        assert (V[10:] == 0.0).all()
    else:
        row = narx.simulate(*arguments, U, Y, 1, 10)
    # 2^7 is the first power beyond 100
    assert row == 7
    assert_array_equal(Y[:7, 0], 2.0 ** np.arange(7))
    assert np.isnan(Y[7:10]).all()
    assert (Y[10:] == 5.0).all()


def test_a_value_at_the_limit_has_not_diverged():
    arguments = autoregression(2.0, limit=64.0)
    Y = np.ones((9, 1))
    assert narx.simulate(*arguments, np.empty((9, 0)), Y, 1, 9) == 7


def test_the_limit_is_one_of_scaled_outputs():
    theta, sizes, code, recursion = autoregression(2.0, limit=64.0)
    wide = recursion._replace(x_scale=np.full(1, 1e6), y_scale=np.full(1, 1e6))
    Y = np.full((9, 1), 1e6)
    assert narx.simulate(theta, sizes, code, wide, np.empty((9, 0)), Y, 1, 9) == 7
    assert_allclose(Y[6], 64e6)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_predictions_have_diverged(value):
    arguments = autoregression(1.0, intercept=value)
    Y = np.ones((4, 1))
    with np.errstate(all="ignore"):
        assert narx.simulate(*arguments, np.empty((4, 0)), Y, 1, 4) == 1
    assert np.isnan(Y[1:]).all()


def test_predictions_that_are_not_numbers_have_diverged():
    arguments = autoregression(1.0, intercept=np.nan)
    Y = np.ones((4, 1))
    assert narx.simulate(*arguments, np.empty((4, 0)), Y, 1, 4) == 1


def test_every_diverged_row_ahead_is_counted():
    arguments = autoregression(2.0)
    U = np.empty((6, 0))
    Y = np.array([1.0, 60.0, 1.0, 30.0, 1.0, 1.0])[:, None]
    for horizon, diverged in [(1, [2]), (2, [3, 5]), (3, [4])]:
        model = naive.Recursion(
            [(np.array([[2.0]]), np.zeros(1))],
            "tanh",
            [(0, 1)],
            *([np.zeros(1), np.ones(1)] * 2),
            100.0,
        )
        expected, _, n_expected = naive.predict_ahead(model, U, Y, horizon, 0, 6)
        mean, V = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
        n_diverged = narx.predict_ahead(*arguments, U, Y, horizon, mean, 0, 6)
        assert n_diverged == n_expected == len(diverged)
        assert_array_equal(mean, expected)
        assert_array_equal(np.flatnonzero(np.isnan(mean[1:, 0])) + 1, diverged)
        posterior = (np.array([0, 1]), np.eye(2), np.ones(2), np.ones(1), FREE)
        n_diverged = narx.predict_ahead_variance(
            *arguments, *posterior, U, Y, horizon, mean, V, 0, 6
        )
        assert n_diverged == len(diverged)
        assert_array_equal(np.isnan(V[1:]), np.isnan(mean[1:]))


@pytest.mark.parametrize("with_variance", [False, True])
@pytest.mark.parametrize("output_lags", [(), (1,)])
def test_missing_inputs_are_not_divergence(output_lags, with_variance):
    system = System(output_lags=output_lags)
    system.U[6] = np.nan
    rows = (system.start, system.stop)
    posterior, full = system.posterior(False)
    expected, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, *rows, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    if with_variance:
        row = narx.simulate_variance(
            *system.arguments, *posterior, system.U, Y, V, *rows
        )
        assert_allclose(V, V_expected, rtol=1e-10)
    else:
        row = narx.simulate(*system.arguments, system.U, Y, *rows)
    assert row == -1
    assert_allclose(Y, expected, rtol=1e-11)
    # with its own past the recursion never recovers, without it does at once
    missing = np.flatnonzero(np.isnan(Y[:, 0]))
    assert_array_equal(missing, range(6, 14) if output_lags else [6, 8])


def test_variance_after_a_gap_does_not_remember_what_was_before_it():
    # only the output two rows back is fed back, so odd rows never see the gap
    system = System(n_inputs=1, input_lags=(0,), output_lags=(2,), n_rows=20)
    system.U[8] = np.nan
    posterior, full = system.posterior(False)
    rows = (system.start, system.stop)
    _, V_expected, _ = naive.free_run_variance(
        system.model, system.U, system.Y, *rows, full, system.noise
    )
    Y, V = system.Y.copy(), np.full(system.Y.shape, np.nan)
    narx.simulate_variance(*system.arguments, *posterior, system.U, Y, V, *rows)
    assert_allclose(V, V_expected, rtol=1e-10)
    assert np.isnan(V[8::2]).all() and np.isfinite(V[3::2]).all()


def test_missing_initial_outputs():
    Y = np.array([np.nan, 1.0, 0.0, 0.0])[:, None]
    row = narx.simulate(*autoregression(0.5, 0.1), np.empty((4, 0)), Y, 2, 4)
    assert row == -1
    assert np.isnan(Y[2:]).all() and Y[1] == 1.0


def test_noise_of_an_autoregression_reaches_its_stationary_variance():
    a1, a2, noise = 0.5, 0.3, 0.2
    n_rows = 150
    Y, V = np.zeros((n_rows, 1)), np.zeros((n_rows, 1))
    posterior = (np.arange(3), np.empty((0, 0)), np.zeros(3), np.array([noise]), FREE)
    arguments = autoregression(a1, a2)
    U = np.empty((n_rows, 0))
    narx.simulate_variance(*arguments, *posterior, U, Y, V, 2, n_rows)
    psi = [1.0, a1]
    while len(psi) < n_rows - 2:
        psi.append(a1 * psi[-1] + a2 * psi[-2])
    assert_allclose(V[2:, 0], noise**2 * np.cumsum(np.square(psi)), rtol=1e-12)
    stationary = noise**2 * (1 - a2) / ((1 + a2) * ((1 - a2) ** 2 - a1**2))
    assert_allclose(V[-1], stationary, rtol=1e-6)


def test_weight_variance_of_an_autoregression():
    a, y0, spread = 0.8, 3.0, 0.01
    n_rows = 20
    Y, V = np.zeros((n_rows, 1)), np.zeros((n_rows, 1))
    Y[0] = y0
    matrix, variances = np.eye(1) * spread, np.full(1, spread)
    posterior = (np.array([0, -1]), matrix, variances, np.zeros(1), FREE)
    U = np.empty((n_rows, 0))
    narx.simulate_variance(*autoregression(a), *posterior, U, Y, V, 1, n_rows)
    t = np.arange(n_rows)
    assert_allclose(Y[:, 0], y0 * a**t, rtol=1e-13)
    # the derivative of y0 a^t by a
    assert_allclose(V[1:, 0], (spread * (y0 * t * a ** (t - 1.0)) ** 2)[1:], rtol=1e-12)


def test_a_fully_pruned_recursion_predicts_a_constant():
    theta, sizes = np.array([0.7]), np.array([0, 0, 1])
    empty = np.empty(0)
    recursion = narx.Recursion(
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        empty,
        empty,
        np.array([1.0]),
        np.array([2.0]),
        100.0,
    )
    U, Y, V = np.zeros((5, 2)), np.zeros((5, 1)), np.zeros((5, 1))
    arguments = (theta, sizes, CODES["tanh"], recursion)
    posterior = (np.zeros(1, dtype=np.int64), np.eye(1) * 0.5, np.full(1, 0.5))
    posterior = (*posterior, np.array([0.1]), FREE)
    assert narx.simulate_variance(*arguments, *posterior, U, Y, V, 0, 5) == -1
    assert_allclose(Y, 2.4)
    assert_allclose(V, 4.0 * (0.5 + 0.01))
    out, out_V = np.zeros_like(Y), np.zeros_like(Y)
    narx.predict_ahead(*arguments, U, Y, 3, out, 0, 5)
    assert_allclose(out, 2.4)
    narx.predict_ahead_variance(*arguments, *posterior, U, Y, 3, out, out_V, 0, 5)
    assert_allclose(out_V, V)
