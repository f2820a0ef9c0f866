"""Free runs through training records, and their derivatives, against slow references.

Also run with bounds checks and without the compiler: sizes stay small.
"""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import solve_discrete_lyapunov

from skbayesnn.sparse_bayes.kernels import activations, recursion
from skbayesnn.sparse_bayes.kernels.layers import Layers

CODES = {
    "tanh": activations.TANH,
    "relu": activations.RELU,
    "logistic": activations.LOGISTIC,
}


class Run:
    """A random network, small enough to be stable, and records for it.

    starts : rows at which runs start anew
    given : rows with initial outputs
    unknown : (row, output) of the initial outputs to be estimated
    """

    def __init__(
        self,
        hidden=(3,),
        n_inputs=2,
        n_outputs=1,
        lags=(1, 3),
        activation="tanh",
        n_rows=11,
        starts=(0,),
        given=(),
        unknown=(),
        skip=False,
        pruned=0.0,
        gain=0.4,
        seed=0,
        difference=False,
    ):
        rng = np.random.default_rng(seed)
        pairs = [(o, lag) for o in range(n_outputs) for lag in lags]
        n_features = n_inputs + len(pairs)
        self.sizes = np.array([n_features, *hidden, n_outputs])
        self.activation, self.code = activation, CODES[activation]
        n_parameters = sum((self.sizes[:-1] + 1) * self.sizes[1:])
        n_parameters += n_features * n_outputs * skip
        self.skip = skip
        self.theta = gain * rng.standard_normal(n_parameters)
        keep = rng.uniform(size=n_parameters) >= pruned
        self.theta[~keep] = 0.0
        self.kept = np.flatnonzero(keep)
        # past outputs need not stand together, nor in order
        position = rng.permutation(n_features)[: len(pairs)]
        output, lag = np.reshape(pairs, (-1, 2)).astype(np.int64).T.copy()
        slope = rng.uniform(0.5, 1.5, size=len(pairs))
        offset = rng.standard_normal(len(pairs))
        self.drift = rng.standard_normal(n_outputs) if difference else None
        self.feedback = recursion.make_feedback(
            position, output, lag, slope, offset, 100.0, self.drift
        )
        self.X = rng.standard_normal((n_rows, n_features))
        self.origin = np.array(
            [max(s for s in starts if s <= t) for t in range(n_rows)]
        )
        for place, back in zip(position, lag, strict=True):
            # what is fed back has no measured value that could be read
            self.X[np.arange(n_rows) - back >= self.origin, place] = np.nan
        self.given = np.isin(np.arange(n_rows), given)
        self.initial = np.full((n_rows, n_outputs), np.nan)
        self.initial[self.given] = rng.standard_normal((len(given), n_outputs))
        self.unknown = np.full(self.initial.shape, -1)
        for number, place in enumerate(unknown):
            self.unknown[place] = number
        self.places = list(unknown)
        self.memory = int(self.feedback.terms.lag.max(initial=0))
        self.before = np.zeros((0, 0))
        if difference:
            self.before = np.full((n_rows, n_outputs), np.nan)
            first = np.unique(self.origin)
            self.before[first] = rng.standard_normal((len(first), n_outputs))
        self.residual = rng.standard_normal(self.initial.shape)

    @property
    def network(self):
        return Layers(self.theta, self.sizes, self.code, self.skip)

    @property
    def records(self):
        return recursion.FreeRun(
            self.feedback, self.X, self.origin, self.given, self.before
        )

    @property
    def reference(self):
        """Layers, activation, run and initial outputs, for the references."""
        layers = naive.unflatten(self.theta, self.sizes)
        feedback = list(zip(*self.feedback[:5], strict=True))
        run = naive.FreeRun(
            feedback,
            self.X,
            self.origin,
            self.given,
            self.feedback.limit,
            self.before,
            self.drift,
        )
        return layers, self.activation, run, self.initial

    def derivatives(self):
        """By all parameters, then by the unknown initial outputs."""
        run, initial = self.reference[2:]
        return naive.path_derivatives(
            self.theta, self.sizes, self.activation, run, initial, self.places
        )

    def path(self):
        path = self.initial.copy()
        assert not recursion.run_path(self.network, self.records, path).any()
        return path

    def sensitivities(self, block):
        """Path and its sensitivities (n_rows, n_outputs, n_columns), in blocks."""
        n_rows, n_outputs = self.initial.shape
        n_columns = len(self.kept) + len(self.places)
        head = self.memory * n_outputs
        # nothing but the memory is read, and before the first row that is zero
        S = np.full((head + block * n_outputs, n_columns), np.nan)
        S[:head] = 0.0
        path, parts = self.initial.copy(), []
        diverged = np.zeros(n_rows, dtype=bool)
        for start in range(0, n_rows, block):
            stop = min(start + block, n_rows)
            view = S[: head + (stop - start) * n_outputs]
            recursion.run_sensitivities(
                self.network,
                self.records,
                self.kept,
                self.unknown,
                path,
                diverged,
                view,
                start,
                stop,
            )
            assert not diverged.any()
            parts.append(view[head:].copy())
            S[:head] = view[len(view) - head :].copy()
        return path, np.concatenate(parts).reshape(n_rows, n_outputs, n_columns)


RUNS = [
    dict(),
    dict(hidden=()),
    dict(hidden=(3, 2), activation="relu"),
    dict(hidden=(2,), n_outputs=2, activation="logistic"),
    dict(lags=()),
    dict(n_inputs=0, lags=(1, 2, 4)),
    # two to eight past outputs: sums over four at a time, and over the rest
    dict(n_outputs=2, lags=(1, 2, 3, 5)),
    dict(n_outputs=2, lags=(2,), starts=(0, 4, 5, 9)),
    dict(starts=(0, 1, 2, 3, 7)),
    dict(given=(0, 1, 2)),
    dict(n_outputs=2, given=(0, 1, 2, 6, 7), starts=(0, 6), activation="relu"),
    dict(given=range(11)),
    dict(skip=True, n_outputs=2),
    dict(hidden=(), skip=True, gain=0.2),
    # more columns than are carried through time together
    dict(hidden=(12,)),
    dict(hidden=(11,), n_outputs=2, given=(0, 1, 2), starts=(0, 5)),
    dict(hidden=(3, 2), pruned=0.4, seed=1),
    dict(pruned=0.5, skip=True, n_outputs=2, starts=(0, 5), seed=2),
    dict(pruned=1.0),
    dict(n_rows=1),
    dict(difference=True),
    dict(difference=True, lags=(), starts=(0, 3)),
    dict(difference=True, n_outputs=2, lags=(1, 2, 4), starts=(0, 4, 5), skip=True),
    dict(difference=True, n_outputs=2, given=(0, 1, 2, 6, 7), starts=(0, 6)),
]
UNKNOWN = [
    dict(difference=True, given=(0, 1, 2), unknown=[(0, 0), (1, 0), (2, 0)]),
    dict(given=(0, 1, 2), unknown=[(0, 0), (1, 0), (2, 0)]),
    dict(given=(0, 1), n_outputs=2, unknown=[(1, 1), (0, 0)], activation="relu"),
    dict(
        n_outputs=2,
        lags=(1, 2, 4),
        given=(0, 1, 2, 3, 6, 7),
        starts=(0, 6),
        unknown=[(0, 0), (3, 1), (6, 0), (7, 1)],
        activation="logistic",
        pruned=0.4,
        skip=True,
    ),
]


@pytest.mark.parametrize("activation", CODES)
@pytest.mark.parametrize("options", RUNS, ids=str)
def test_path(options, activation):
    run = Run(**{**options, "activation": activation})
    expected, diverged = naive.run_path(*run.reference)
    assert diverged == -1
    path = run.path()
    assert_allclose(path, expected, rtol=1e-11, atol=1e-12)
    # initial outputs are the caller's
    assert_array_equal(path[run.given], run.initial[run.given])


@pytest.mark.parametrize("options", RUNS + UNKNOWN, ids=str)
def test_sensitivities(options):
    run = Run(**options)
    n_parameters = len(run.theta)
    columns = [*run.kept, *range(n_parameters, n_parameters + len(run.places))]
    path, S = run.sensitivities(len(run.X))
    assert_array_equal(path, run.path())
    tol = dict(rtol=1e-10, atol=1e-11)
    assert_allclose(S, run.derivatives()[..., columns], **tol)
    again = naive.path_recursion(*run.reference, run.places)
    assert_allclose(S, again[..., columns], **tol)


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_sensitivities_are_finite_differences_of_the_path(activation):
    places = [(0, 0), (2, 1)]
    run = Run(
        n_outputs=2,
        lags=(1, 3),
        given=(0, 1, 2),
        unknown=places,
        activation=activation,
        skip=True,
    )
    _, S = run.sensitivities(len(run.X))
    theta, initial = run.theta, run.initial

    def moved_path(column, step):
        run.theta, run.initial = theta.copy(), initial.copy()
        if column < len(theta):
            run.theta[column] += step
        else:
            run.initial[places[column - len(theta)]] += step
        return run.path()

    for column in range(S.shape[2]):
        difference = moved_path(column, 1e-5) - moved_path(column, -1e-5)
        assert_allclose(S[..., column], difference / 2e-5, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("block", [1, 2, 4, 7])
@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(n_outputs=2, lags=(1, 2, 5)),
        dict(n_outputs=2, lags=(2,), starts=(0, 4, 5, 9)),
        dict(lags=()),
        dict(hidden=(12,)),
        *UNKNOWN,
    ],
    ids=str,
)
def test_sensitivities_do_not_depend_on_blocks(options, block):
    run = Run(**options)
    expected_path, expected = run.sensitivities(len(run.X))
    path, S = run.sensitivities(block)
    assert_array_equal(path, expected_path)
    assert_array_equal(S, expected)
    # rows after the first block do depend on those before
    assert np.isfinite(S).all()


@pytest.mark.parametrize("options", RUNS + UNKNOWN, ids=str)
def test_gradient_is_that_of_the_sensitivities(options):
    run = Run(**options)
    adjoint = run.residual.copy()
    gradient = recursion.path_gradient(run.network, run.records, run.path(), adjoint)
    J = run.derivatives()[..., : len(run.theta)]
    # by the parameters that were pruned, too
    expected = np.einsum("top,to->p", J, run.residual)
    assert_allclose(gradient, expected, rtol=1e-10, atol=1e-11)
    _, S = run.sensitivities(len(run.X))
    kept = S[..., : len(run.kept)]
    assert_allclose(
        gradient[run.kept],
        np.einsum("top,to->p", kept, run.residual),
        rtol=1e-10,
        atol=1e-11,
    )


@pytest.mark.parametrize("options", UNKNOWN, ids=str)
def test_the_adjoint_ends_as_the_gradient_by_initial_outputs(options):
    run = Run(**options)
    adjoint = run.residual.copy()
    recursion.path_gradient(run.network, run.records, run.path(), adjoint)
    by_initial = run.derivatives()[..., len(run.theta) :]
    expected = np.einsum("top,to->p", by_initial, run.residual)
    found = [adjoint[place] for place in run.places]
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_some_runs_have_more_columns_than_go_together():
    assert max(len(Run(**options).kept) for options in RUNS) > recursion.COLUMNS


def doubling(n_rows=9, gain=2.0, limit=100.0):
    """A linear network that doubles its last output, from an initial output of one."""
    run = Run(hidden=(), n_inputs=0, lags=(1,), n_rows=n_rows, given=(0,))
    run.theta = np.array([gain, 0.0])
    run.feedback = run.feedback._replace(
        slope=np.ones(1), offset=np.zeros(1), limit=limit
    )
    run.initial[0] = 1.0
    return run


def both_runs(run):
    """What a run and its sensitivities return, and their paths."""
    paths = run.initial.copy(), run.initial.copy()
    n_rows, n_outputs = run.initial.shape
    S = np.zeros(((run.memory + n_rows) * n_outputs, len(run.kept)))
    with np.errstate(all="ignore"):
        diverged = recursion.run_path(run.network, run.records, paths[0])
        also = np.zeros(n_rows, dtype=bool)
        recursion.run_sensitivities(
            run.network,
            run.records,
            run.kept,
            run.unknown,
            paths[1],
            also,
            S,
            0,
            n_rows,
        )
    assert_array_equal(diverged, also)
    assert_array_equal(*paths)
    return not diverged.any(), not also.any(), paths


def test_divergence_ends_a_run():
    run = doubling()
    finite, also, paths = both_runs(run)
    assert not finite and not also
    # 2^7 is the first power beyond 100
    assert naive.run_path(*run.reference)[1] == 7
    for path in paths:
        assert_array_equal(path[:7, 0], 2.0 ** np.arange(7))
        assert np.isnan(path[7:]).all()


@pytest.mark.parametrize("n_rows, limit", [(7, 64.0), (7, 100.0), (9, 256.0)])
def test_a_value_at_the_limit_has_not_diverged(n_rows, limit):
    run = doubling(n_rows, limit=limit)
    assert both_runs(run)[:2] == (True, True)
    # downwards as upwards
    run = doubling(n_rows, gain=-2.0, limit=limit)
    assert both_runs(run)[:2] == (True, True)
    run = doubling(n_rows + 1, gain=-2.0, limit=2.0 ** (n_rows - 1))
    assert both_runs(run)[:2] == (False, False)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("activation", CODES)
def test_an_infinite_input_is_a_divergence(activation, value):
    run = Run(activation=activation, n_outputs=2, skip=True)
    column = np.setdiff1d(np.arange(run.X.shape[1]), run.feedback.position)[0]
    run.X[6, column] = value
    finite, also, paths = both_runs(run)
    assert not finite and not also
    assert all(np.isfinite(path[:6]).all() for path in paths)
    assert all(np.isnan(path[6:]).all() for path in paths)
    # a row that is given is not computed
    run.given[6], run.initial[6] = True, 0.5
    assert both_runs(run)[:2] == (True, True)


@pytest.mark.parametrize("lags, lost", [((1,), range(6, 9)), ((2,), [6, 8]), ((), [6])])
def test_a_missing_input_is_no_divergence(lags, lost):
    run = Run(lags=lags, starts=(0, 9))
    column = np.setdiff1d(np.arange(run.X.shape[1]), run.feedback.position)[0]
    run.X[6, column] = np.nan
    finite, also, paths = both_runs(run)
    assert finite and also
    # what the missing row is fed into, up to the next run
    assert_array_equal(np.flatnonzero(np.isnan(paths[0][:, 0])), lost)


def test_a_run_that_diverges_leaves_the_next_alone():
    run = doubling(12, limit=4.0)
    run.origin[:] = np.repeat([0, 6], 6)
    run.given[6] = True
    run.initial[6] = 0.25
    _, _, paths = both_runs(run)
    missing = np.flatnonzero(np.isnan(paths[0][:, 0]))
    assert_array_equal(missing, [3, 4, 5, 11])
    assert_array_equal(paths[0][6:11, 0], 0.25 * 2.0 ** np.arange(5))


def test_one_output_that_diverges_is_enough():
    run = Run(n_outputs=2, hidden=())
    run.theta[-1] = 1e3
    assert both_runs(run)[:2] == (False, False)


# the package hands over arrays of one kind; these are compiled for others
@pytest.mark.slow
def test_inputs_stay_untouched_and_may_be_read_only():
    run = Run(**UNKNOWN[-1])
    expected = run.path()
    arrays = [run.theta, run.sizes, run.kept, run.X, run.origin, run.given]
    arrays += [run.initial, run.unknown, *run.feedback[:5]]
    for array in arrays:
        array.flags.writeable = False
    path, S = run.sensitivities(4)
    assert_array_equal(path, expected)
    assert np.isfinite(S).all()
    recursion.path_gradient(run.network, run.records, path, run.residual)


def test_fed_back_noise_keeps_its_variance():
    """Three coupled outputs: rounding errors must not grow over a long run."""
    rng = np.random.default_rng(0)
    run = Run(hidden=(), n_outputs=3, lags=(1, 2), n_rows=400).records
    terms, noise = run.feedback.terms, np.array([0.1, 1.0, 0.3])
    # the companion matrix of outputs that depend on themselves and each other
    gain = rng.standard_normal((3, 6))
    companion = np.zeros((6, 6))
    companion[3:, :3] = np.eye(3)
    companion[:3, 3 * (terms.lag - 1) + terms.output] = gain
    modulus = np.abs(np.linalg.eigvals(companion)).max()
    gain *= (0.95 / modulus) ** terms.lag
    companion[:3, 3 * (terms.lag - 1) + terms.output] = gain
    added = np.diag([*noise**2, 0.0, 0.0, 0.0])
    expected = np.diag(solve_discrete_lyapunov(companion, added))[:3]
    found = recursion.fed_back_noise(run, np.tile(gain, (400, 1, 1)), noise)
    assert_allclose(found[-1], expected, rtol=1e-6)
    assert_allclose(found[0], noise**2, rtol=1e-12)


def test_draws_of_fed_back_errors_have_their_variance():
    """Of two runs, whose outputs depend on each other."""
    rng, n_draws = np.random.default_rng(0), 2000
    run = Run(hidden=(), n_outputs=2, lags=(1, 2), n_rows=40).records
    run = run._replace(origin=np.repeat([0, 25], [25, 15]))
    gains = 0.4 * rng.standard_normal((40, 2, len(run.feedback.terms.lag)))
    errors = np.array([0.1, 1.0])
    variance = recursion.fed_back_errors(run, gains, errors)
    paths = recursion.draw_fed_back_errors(run, gains, errors, n_draws, rng)
    # the standard error of a standard deviation is std / sqrt(2 n)
    tolerance = 5.0 / np.sqrt(2.0 * n_draws)
    assert_allclose(paths.std(axis=0), np.sqrt(variance), rtol=tolerance)
    # the errors before one run are not those before the other
    both = np.corrcoef(paths[:, [0, 25], 0].T)[0, 1]
    assert abs(both) < 5.0 / np.sqrt(n_draws)
