"""Draws of new records, their agreement with the linearised spread, and coverage."""

import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from fitted_models import fitted_network, replace_fitted, set_fitted
from free_run_cases import oscillator
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from scipy.stats import norm

from skbayesnn import SparseBayesMLPRegressor, SparseBayesNARXRegressor
from skbayesnn.metrics import crps_samples
from skbayesnn.sparse_bayes.prediction import posterior

BENCHMARK = Path(__file__).parents[3] / "examples/benchmarks/uncertainty.py"
NOISE = 0.1
N_DRAWS = 2000
# the standard error of a standard deviation is std / sqrt(2 n); five, for many rows
STD_TOLERANCE = 5 / np.sqrt(2 * N_DRAWS)


def record(n_rows=300, seed=0, linear=False, noise=NOISE):
    """A stable system with one input, of the second order."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n_rows, 1))
    y = np.zeros(n_rows)
    for t in range(2, n_rows):
        past = 1.2 * y[t - 1] - 0.5 * y[t - 2]
        y[t] = past + 0.8 * u[t - 1, 0] if linear else np.tanh(past) + 0.8 * u[t - 1, 0]
        y[t] += noise * rng.standard_normal()
    return u, y


def fit(u, y, input_lags=2, output_lags=2, **options):
    options = {"max_cycles": 40, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseBayesNARXRegressor(input_lags, output_lags, **options)
        return model.fit(u, y)


LINEAR = {"hidden_layer_sizes": (), "reg_lambda": 1.0}
MODELS = {
    "linear": LINEAR,
    "prediction": {"hidden_layer_sizes": 4},
    "simulation": {"hidden_layer_sizes": 4, "focus": "simulation"},
    "ensemble": {"hidden_layer_sizes": 3, "n_estimators": 3},
    "diag": {"hidden_layer_sizes": 4, "curvature": "diag"},
}


@pytest.fixture(scope="module")
def models():
    u, y = record()
    return {name: fit(u, y, **options) for name, options in MODELS.items()}


def starts(y):
    """Arguments of every kind of prediction of a record."""
    return {
        "one step": {"y": y},
        "ahead": {"y": y, "horizon": 3},
        "free run": {"y_init": y[:5]},
        "free run with y": {"y": y, "horizon": None},
        "from the means": {},
    }


KINDS = tuple(starts(np.zeros(9)))


def assert_agree(draws, mean, std, tolerance=STD_TOLERANCE):
    """Mean and spread of draws, where there is any, are those that are given."""
    rows = std > 0.0
    errors = (draws.mean(axis=-1) - mean)[rows] / std[rows]
    assert_allclose(errors, 0.0, atol=5 / np.sqrt(draws.shape[-1]))
    assert_allclose(draws.std(axis=-1)[rows], std[rows], rtol=tolerance)
    # what is known is the same in all draws
    known = draws[std == 0.0]
    assert_array_equal(known, np.repeat(mean[std == 0.0][:, None], known.shape[1], 1))


@pytest.mark.parametrize("name", ["linear", "prediction", "simulation", "diag"])
@pytest.mark.parametrize("seed", range(3))
def test_one_step_draws_have_the_linearised_spread(models, name, seed):
    """The posterior is that of the network linearised in its weights, draws as well."""
    u, y = record(seed=1)
    model = models[name]
    draws = model.sample_y(u, y, n_samples=N_DRAWS, random_state=seed)
    assert_agree(draws, *model.predict(u, y, return_std=True))


@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_a_simulation_model_have_the_linearised_spread(models, kind):
    u, y = record(100, seed=1)
    model, start = models["simulation"], starts(y)[kind]
    draws = model.sample_y(u, **start, n_samples=N_DRAWS)
    assert_agree(draws, *model.predict(u, **start, return_std=True))


def with_posterior(model, factor):
    """The model with its posterior and its noise scaled by a factor."""
    replace_fitted(
        model,
        covariance=factor**2 * fitted_network(model).covariance,
        noise_std=factor * fitted_network(model).noise_std,
    )
    return model


def without_range(model):
    """The model with bands that do not know the range of its training record."""
    bands = model._model.bands
    infinite = np.full_like(bands.high_outputs, np.inf)
    bands = bands._replace(low_outputs=-infinite, high_outputs=infinite)
    model._model = model._model._replace(bands=bands)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", [pytest.param("linear", marks=pytest.mark.slow), "prediction"]
)
def test_free_run_draws_of_a_small_posterior(name, kind):
    """Where deviations are small the linearised recursion is exact, up to sampling."""
    u, y = record(seed=1, linear=name == "linear")
    model = fit(*record(linear=name == "linear"), **MODELS[name])
    # draws do not know it
    model = without_range(with_posterior(model, 0.05))
    start = starts(y)[kind]
    draws = model.sample_y(u, **start, n_samples=N_DRAWS)
    assert_agree(draws, *model.predict(u, **start, return_std=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ahead", "free run"])
def test_free_run_draws_at_the_fitted_posterior(models, kind):
    """A tanh system, noise 0.1: the linearised spread is right within a tenth."""
    u, y = record(seed=1)
    model, start = models["prediction"], starts(y)[kind]
    draws = model.sample_y(u, **start, n_samples=N_DRAWS)
    _, std = model.predict(u, **start, return_std=True)
    rows = std > 0.0
    assert_allclose(draws.std(axis=1)[rows], std[rows], rtol=0.1 + STD_TOLERANCE)


@pytest.mark.parametrize("horizon", [1, 2, 3, 8, None])
def test_stable_linear_system_in_closed_form(horizon):
    """Weights known: the variance is that of the noise through the impulse response."""
    u, y = record(150, linear=True)
    model = fit(u, y, **LINEAR)
    covariance = np.zeros_like(fitted_network(model).covariance)
    replace_fitted(model, covariance=covariance)
    draws = model.sample_y(u, y, horizon=horizon, n_samples=N_DRAWS)
    coefs, _ = posterior.unscaled_layers(fitted_network(model))
    a1, a2 = coefs[0][3:, 0]
    response = [1.0, a1]
    for _ in range(300):
        response.append(a1 * response[-1] + a2 * response[-2])
    steps = np.arange(len(y) - 2) + 1
    if horizon is not None:
        steps = np.minimum(steps, horizon)
    variance = model.noise_variance_ * np.cumsum(np.square(response))[steps - 1]
    assert_allclose(draws.std(axis=1)[2:], np.sqrt(variance), rtol=STD_TOLERANCE)
    mean = model.predict(u, y, horizon=horizon)
    error = 5 * np.sqrt(variance / N_DRAWS)
    assert (np.abs(draws.mean(axis=1) - mean)[2:] < error).all()


def test_noise_is_fed_back_one_step_ahead_and_not_in_simulation(models):
    """Known weights: neighbouring rows of a free run are correlated, or are not."""
    u, y = record(seed=1)
    for name, correlated in (("linear", True), ("simulation", False)):
        model = models[name]
        kept = fitted_network(model)
        try:
            no_spread = np.zeros_like(kept.covariance)
            set_fitted(model, kept._replace(covariance=no_spread))
            draws = model.sample_y(u, y_init=y[:2], n_samples=N_DRAWS)
        finally:
            set_fitted(model, kept)
        found = [np.corrcoef(draws[t : t + 2])[0, 1] for t in range(10, 30)]
        if correlated:
            assert min(found) > 0.5
        else:
            assert np.abs(found).max() < 5 / np.sqrt(N_DRAWS)
            std = kept.free_run_std[0] * kept.scaling.y_scale[0]
            assert_allclose(draws[2:].std(axis=1), std, rtol=STD_TOLERANCE)


@pytest.mark.parametrize("seed", range(3))
def test_bands_ahead_of_outputs_that_were_measured_with_noise_hold(seed):
    """The noise of the known outputs is predicted on, until the system forgets it."""
    u, y = oscillator(2600, noise=NOISE, seed=seed)
    model = fit(u[:600], y[:600], **LINEAR, focus="simulation")
    u, y = u[600:], y[600:]
    for horizon in (1, 2, 3, 5, 10):
        mean, std = model.predict(u, y, horizon=horizon, return_std=True)
        held = (np.abs(y - mean) < 1.96 * std)[10:]
        # errors of neighbouring rows are alike
        assert 0.92 < held.mean() < 0.98, horizon


@pytest.mark.parametrize("seed", range(3))
def test_bands_of_free_runs_hold_from_the_first_row_on(seed):
    """The noise of the given outputs is in the first rows: no wider, 3 of 5 hold."""
    u, y = oscillator(3600, noise=NOISE, seed=seed)
    model = fit(u[:600], y[:600], **LINEAR, focus="simulation")
    sessions = np.arange(3000) // 20
    u, y = u[600:], y[600:]
    mean, std = model.predict(u, y, horizon=None, sessions=sessions, return_std=True)
    held = (np.abs(y - mean) < 1.96 * std).reshape(-1, 20)[:, model.max_lag_ :]
    assert 0.88 < held[:, :3].mean() < 0.99
    assert 0.92 < held.mean() < 0.99
    draws = model.sample_y(u[:20], y_init=y[: model.max_lag_], n_samples=N_DRAWS)
    found = draws.std(axis=1)[model.max_lag_ :]
    assert_allclose(found, std[model.max_lag_ : 20], rtol=STD_TOLERANCE)


@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_bands_of_differences_hold_the_error_of_the_first_level(noise):
    """It stays through the whole run: without it, 3 of 4 rows hold."""
    rng = np.random.default_rng(0)
    u = np.repeat(rng.uniform(-2.0, 2.0, 1650), 4)
    position = np.cumsum(lfilter([0.0, 0.2], [1.0, -0.8], u)) / 10
    y = position + noise * rng.standard_normal(len(u))
    options = LINEAR | dict(input_lags=3, output_lags=3, output="difference")
    model = fit(u[:600, None], y[:600], **options, focus="simulation")
    u, y, sessions = u[600:, None], y[600:], np.arange(6000) // 60
    mean, std = model.predict(u, y, horizon=None, sessions=sessions, return_std=True)
    held = (np.abs(y - mean) < 1.96 * std).reshape(-1, 60)[:, model.max_lag_ :]
    for part in (held[:, :10], held[:, 10:]):
        assert 0.88 < part.mean() < 0.99
    # a draw has the same error of the level in all rows: its steps have none
    draws = model.sample_y(u[:60], y_init=y[: model.max_lag_], n_samples=N_DRAWS)
    draws, std = draws[model.max_lag_ :], std[model.max_lag_ : 60]
    assert_allclose(draws.std(axis=1), std, rtol=STD_TOLERANCE)
    kept = fitted_network(model)
    of_step = np.sqrt(2) * kept.free_run_std[0] * kept.scaling.y_scale[0]
    late = np.diff(draws, axis=0)[30:]
    assert_allclose(late.std(axis=1), of_step, rtol=STD_TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one step", "ahead", "free run"])
def test_ensemble_draws_from_the_mixture(models, kind):
    u, y = record(100, seed=1)
    model, start = models["ensemble"], starts(y)[kind]
    draws = model.sample_y(u, **start, n_samples=N_DRAWS)
    assert draws.shape == (len(u), N_DRAWS)
    mean, square = 0.0, 0.0
    for member, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        own = member.sample_y(u, **start, n_samples=N_DRAWS, random_state=7)
        mean += weight * own.mean(axis=1)
        square += weight * np.mean(own**2, axis=1)
    std = np.sqrt(np.maximum(square - mean**2, 0.0))
    rows = np.arange(len(u)) >= 5
    errors = (draws.mean(axis=1) - mean)[rows] / std[rows]
    # both sides are draws
    assert np.abs(errors).max() < 5 * np.sqrt(2 / N_DRAWS)
    assert_allclose(draws.std(axis=1)[rows], std[rows], rtol=2 * STD_TOLERANCE)
    # no order of the members among the columns
    half = draws[:, : N_DRAWS // 2].mean(axis=1) - draws[:, N_DRAWS // 2 :].mean(axis=1)
    assert np.abs(half[rows] / std[rows]).max() < 5 * np.sqrt(4 / N_DRAWS)


def test_a_member_without_a_draw(models):
    u, y = record(seed=1)
    for start in starts(y).values():
        assert models["ensemble"].sample_y(u, **start, n_samples=1).shape == (300, 1)


def unstable():
    """A model whose own output grows, from a record that hides it."""
    u, y = record(linear=True)
    model = fit(u, y, **LINEAR)
    network = fitted_network(model).network
    theta = network.theta.copy()
    theta[-2] *= 0.0
    theta[-3] = 1.15
    replace_fitted(model, network=network._replace(theta=theta))
    return model, u, y


@pytest.mark.parametrize("kind", ["free run", "ahead"])
def test_diverged_draws_are_counted(kind):
    model, u, y = unstable()
    start = {"y_init": y[:5]} if kind == "free run" else {"y": y, "horizon": 80}
    with pytest.warns(RuntimeWarning, match="50 of 50 draws diverged"):
        draws = model.sample_y(u, **start, n_samples=50)
    assert np.isfinite(draws[:5]).all()
    assert np.isnan(draws[-1]).all()
    if kind == "free run":
        # from there on, and each draw from a row of its own
        missing = np.isnan(draws).astype(int)
        assert (np.diff(missing, axis=0) >= 0).all()
        assert len(np.unique(missing.sum(axis=0))) > 5
    assert crps_samples(y, draws) == np.inf


def test_some_draws_diverge():
    """The count is that of the columns that end in NaN."""
    model, u, y = unstable()
    network = fitted_network(model).network
    theta = network.theta.copy()
    theta[-3] = 1.0
    replace_fitted(model, network=network._replace(theta=theta))
    covariance = np.zeros_like(fitted_network(model).covariance)
    covariance[-3, -3] = 0.02**2
    replace_fitted(model, covariance=covariance)
    with pytest.warns(RuntimeWarning, match="draws diverged") as caught:
        draws = model.sample_y(u, y_init=y[:5], n_samples=200)
    lost = int(np.isnan(draws[-1]).sum())
    assert 0 < lost < 200
    assert str(caught[0].message).startswith(f"{lost} of 200 draws")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_draws(models, name, kind):
    u, y = record(60, seed=1)
    start = starts(y)[kind]
    draw = models[name].sample_y
    first = draw(u, **start, n_samples=20, random_state=3)
    assert_array_equal(draw(u, **start, n_samples=20, random_state=3), first)
    other = draw(u, **start, n_samples=20, random_state=4)
    assert not np.array_equal(other, first)
    # one path goes with the mean, and none is another's copy
    assert len(np.unique(first[-1])) == 20
    generator = np.random.RandomState(3)
    assert_array_equal(draw(u, **start, n_samples=20, random_state=generator), first)


@pytest.mark.slow
def test_n_jobs_does_not_change_the_draws():
    u, y = record(120)
    draws = [
        fit(u, y, n_estimators=2, max_cycles=5, n_jobs=n_jobs).sample_y(u, y_init=y[:5])
        for n_jobs in (1, 2)
    ]
    assert_array_equal(*draws)


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MissingInputWarning")
def test_known_and_missing_rows(models):
    u, y = record(60, seed=1)
    y[20] = np.nan
    model = models["prediction"]
    for horizon in (1, 3, None):
        draws = model.sample_y(u, y, horizon=horizon, n_samples=5)
        mean = model.predict(u, y, horizon=horizon)
        assert_array_equal(draws[:2], np.repeat(y[:2, None], 5, axis=1))
        assert_array_equal(np.isnan(draws), np.repeat(np.isnan(mean)[:, None], 5, 1))
    u[30] = np.nan
    draws = model.sample_y(u, y_init=y[:8], n_samples=5)
    assert_array_equal(draws[:8], np.repeat(y[:8, None], 5, axis=1))
    assert np.isfinite(draws[:30]).all() and np.isnan(draws[33:]).all()


def test_rows_before_the_record_are_not_returned(models):
    u, y = record(60, seed=1)
    draws = models["prediction"].sample_y(
        u[8:], y_init=y[:8], X_init=u[:8], n_samples=4
    )
    assert_array_equal(
        draws, models["prediction"].sample_y(u, y_init=y[:8], n_samples=4)[8:]
    )


def test_sessions_start_anew_and_share_the_weights(models):
    u, y = record(60, seed=1)
    model = models["simulation"]
    kept = fitted_network(model)
    try:
        errors = {"noise_std": 1e-12 * kept.noise_std}
        errors["free_run_std"] = 1e-12 * kept.free_run_std
        set_fitted(model, kept._replace(**errors))
        twice = {"sessions": np.repeat([0, 1], 60), "horizon": None}
        draws = model.sample_y(np.tile(u, (2, 1)), np.tile(y, 2), **twice, n_samples=5)
    finally:
        set_fitted(model, kept)
    assert_allclose(draws[:60], draws[60:], atol=1e-9)
    assert draws[-1].std() > 1e-6


@pytest.mark.slow
def test_several_outputs():
    u, y = record()
    Y = np.column_stack([y, np.roll(y, 1)])
    model = fit(u, Y, hidden_layer_sizes=3)
    for start in ({"y": Y}, {"y": Y, "horizon": 2}, {"y_init": Y[:3]}):
        draws = model.sample_y(u, **start, n_samples=N_DRAWS)
        assert draws.shape == (300, 2, N_DRAWS)
        mean, std = model.predict(u, **start, return_std=True)
        rows = std > 0.0
        error = np.abs(draws.mean(axis=2) - mean)[rows] / std[rows]
        assert np.median(error) < 1.5 / np.sqrt(N_DRAWS)


def test_refuses(models):
    u, y = record(60)
    model = models["linear"]
    for n_samples in (0, 2.5, None):
        with pytest.raises(ValueError, match="n_samples must be a positive integer"):
            model.sample_y(u, y, n_samples=n_samples)
    with pytest.raises(ValueError, match="horizon must be"):
        model.sample_y(u, y, horizon=0)
    with pytest.raises(ValueError, match="y_init and X_init start a free run"):
        model.sample_y(u, y, y_init=y[:3])
    with pytest.raises(ValueError, match="X must not be None"):
        model.sample_y(None)


@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_draws_of_the_static_network_have_its_spread(seed):
    """Hidden units that can replace each other leave the weights wide open."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (200, 2))
    y = np.sin(2 * X[:, 0]) + NOISE * rng.standard_normal(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseBayesMLPRegressor(10, max_cycles=40, random_state=seed).fit(X, y)
    draws = model.sample_y(X, N_DRAWS, random_state=seed)
    assert_agree(draws, *model.predict(X, return_std=True))


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("uncertainty", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["uncertainty"] = module
    spec.loader.exec_module(module)
    return module


def assert_nominal(table, quantities, levels, loss=0.0):
    """Within three standard errors, over systems, and ``loss`` below.

    Three for a single number; 18 numbers at once are as rarely off by chance at 3.8.
    """
    n_errors = norm.isf(norm.sf(3.0) / (len(quantities) * len(levels)))
    for what in quantities:
        mean = np.array(table[what]["mean"])
        error = np.array(table[what]["standard_error"])
        assert (mean - levels < n_errors * error).all(), (what, mean, error)
        assert (levels - mean < n_errors * error + loss).all(), (what, mean, error)


@pytest.mark.parametrize("seed", range(5))
def test_posterior_of_a_linear_system_is_that_of_bayes_rule(benchmark, seed):
    """With the prior and the noise known, mean and covariance in closed form."""
    system = benchmark.make_system("linear", seed)
    u, y = system.record(80)
    model = fitted_network(benchmark.fit_with_known_prior(system, u, y))
    Z = system.regressors(u[:, 0], y)
    A, noise = np.column_stack([Z, np.ones(len(Z))]), system.noise_std**2
    precision = A.T @ A / noise + np.eye(A.shape[1]) / system.prior_std**2
    covariance = np.linalg.inv(precision)
    mean = covariance @ A.T @ y[-len(Z) :] / noise
    assert_allclose(model.covariance, covariance, rtol=1e-8, atol=1e-12)
    assert_allclose(model.network.theta, mean, atol=1e-6)


ONE_RECORD = ("one_step", "one_step_draws", "free_run", "free_run_draws")


# inputs are normal: a new record has some beyond those of the training record
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
@pytest.mark.slow
def test_coverage_of_linear_systems_from_the_prior(benchmark):
    """Bayes' rule and the true structure: all that is covered, at its nominal rate."""
    variant = "prior and noise known"
    table = benchmark.prior_coverage("linear", 150, [variant])[variant]
    assert_nominal(table, (*ONE_RECORD, "function", "weights"), benchmark.LEVELS)


# inputs are normal: a new record has some beyond those of the training record
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
@pytest.mark.slow
def test_coverage_of_linear_systems_with_all_that_is_learned(benchmark):
    """The noise variance is plugged in as if it were known: less than a point."""
    variant = "learned, one variance"
    table = benchmark.prior_coverage("linear", 150, [variant])[variant]
    assert_nominal(table, ONE_RECORD, benchmark.LEVELS, loss=0.01)
    assert_nominal(table, ("function", "weights"), benchmark.LEVELS)


# inputs are normal: a new record has some beyond those of the training record
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
@pytest.mark.slow
def test_coverage_of_networks_from_the_prior(benchmark):
    """A tanh net; its weights are only known up to exchanges, so what it predicts."""
    variant = "prior and noise known"
    table = benchmark.prior_coverage("tanh", 150, [variant])[variant]
    assert_nominal(table, (*ONE_RECORD, "function"), benchmark.LEVELS)


# inputs are normal: a new record has some beyond those of the training record
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
@pytest.mark.slow
def test_coverage_of_networks_with_all_that_is_learned(benchmark):
    """Noise and prior variances are plugged in as if they were known.

    That costs new observations less than one point, and the function, whose intervals
    hold no noise, up to five.
    """
    variant = "learned, a variance a layer"
    table = benchmark.prior_coverage("tanh", 150, [variant])[variant]
    assert_nominal(table, ONE_RECORD, benchmark.LEVELS, loss=0.01)
    assert_nominal(table, ["function"], benchmark.LEVELS, loss=0.05)


@pytest.mark.parametrize("scales", [(1e-6, 1.0), (1.0, 1e6), (1e6, 1e-6)])
def test_draws_do_not_depend_on_units(scales):
    """They round differently: no direction of the weights may turn around by that."""
    rng = np.random.default_rng(0)
    u, y = np.repeat(rng.standard_normal((76, 2)), 4, axis=0)[:300], np.zeros(300)
    for t in range(2, 300):
        y[t] = 0.8 * y[t - 1] + 0.5 * np.tanh(2 * u[t - 1, 0])
        y[t] += 0.1 * rng.standard_normal()

    def draws(u, y):
        model = SparseBayesNARXRegressor(4, 4, hidden_layer_sizes=()).fit(u, y)
        return model.sample_y(u, y, horizon=3, n_samples=5)

    by_u, by_y = scales
    assert_allclose(draws(by_u * u, by_y * y) / by_y, draws(u, y), atol=1e-6)
