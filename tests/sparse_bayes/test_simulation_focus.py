"""Networks that are learned on the free run, and committees of them."""

import io
import itertools
import pickle
import warnings

import joblib
import naive
import numpy as np
import pytest
import sklearn
from fitted_models import (
    ensemble_of,
    fitted_network,
    lags_of,
    n_observations,
    replace_fitted,
    set_weights,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.metrics import simulation_scorer
from skbayesnn.sparse_bayes.learning import restarts as _restarts
from skbayesnn.sparse_bayes.network import init_network
from skbayesnn.sparse_bayes.prediction import posterior
from skbayesnn.sparse_bayes.records.initial_outputs import estimate_initial
from skbayesnn.sparse_bayes.records.layout import (
    outputs_before,
    typical_step,
    with_unknown_start,
)

NOISE = 0.1
FAST = dict(focus="simulation", hidden_layer_sizes=3, reg_lambda=4.0, max_cycles=15)


def output_error(n_rows=300, seed=0, noise=NOISE, linear=False):
    """Inputs, measured and true outputs; the noise does not enter the system."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-2, 2, size=-(-n_rows // 3)), 3)[:n_rows, None]
    x = np.zeros(n_rows)
    for t in range(2, n_rows):
        drive = u[t - 1, 0] if linear else np.tanh(1.5 * u[t - 1, 0])
        x[t] = 1.2 * x[t - 1] - 0.4 * x[t - 2] + 0.5 * drive
    return u, x + noise * rng.standard_normal(n_rows), x


def two_by_two(n_rows=200, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    U, Y = rng.standard_normal((n_rows, 2)), np.zeros((n_rows, 2))
    for t in range(1, n_rows):
        Y[t, 0] = 0.5 * Y[t - 1, 0] + 0.3 * Y[t - 1, 1] + U[t, 0]
        Y[t, 1] = 0.4 * Y[t - 1, 1] + np.tanh(U[t - 1, 1])
    return U, [100.0, -3.0] + [10.0, 0.1] * (Y + noise * rng.standard_normal(Y.shape))


def rms(error):
    return float(np.sqrt(np.mean(np.square(error))))


def fit(u, y, *lags, sessions=None, **options):
    model = SparseBayesNARXRegressor(*lags, **{"random_state": 0, **FAST, **options})
    with warnings.catch_warnings():
        # a few cycles are enough here
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(u, y, sessions=sessions)


def assert_same_fit(a, b):
    for first, second in zip(a.coefs_, b.coefs_, strict=True):
        assert_array_equal(first, second)
    assert_array_equal(a.history_["objective"], b.history_["objective"])


# what the free run is good for


@pytest.mark.parametrize("seed", range(4))
def test_simulates_better_than_one_step_ahead(seed):
    """Noise on the measured outputs biases a fit one step ahead."""
    u, y, _ = output_error(400, seed)
    new_u, _, x = output_error(seed=seed + 100)
    error = {}
    for focus in ("prediction", "simulation"):
        model = fit(u, y, focus=focus, hidden_layer_sizes=4, max_cycles=100)
        error[focus] = rms(model.predict(new_u, y_init=x[:2]) - x)
    assert error["simulation"] < 0.6 * error["prediction"]
    assert error["simulation"] < 0.6 * NOISE
    # the errors of the fit are the noise; the prior keeps some of the signal out
    assert 0.9 * NOISE < np.sqrt(model.noise_variance_) < 1.25 * NOISE


@pytest.mark.parametrize("seed", range(4))
def test_a_linear_system_is_recognised(seed):
    u, y, _ = output_error(400, seed, linear=True)
    model = fit(u, y, hidden_layer_sizes=4, max_cycles=100)
    # units that are left are linear within the data
    assert model.history_["n_active_units"][-1] <= 2
    one_step = model.predict(u, y)[2:]
    Z = np.column_stack([u[2:], u[1:-1], u[:-2], y[1:-1], y[:-2], np.ones(398)])
    linear = Z @ np.linalg.lstsq(Z, one_step)[0]
    assert rms(one_step - linear) < 3e-3 * one_step.std()
    new_u, _, x = output_error(seed=seed + 100, linear=True)
    assert rms(model.predict(new_u, y_init=x[:2]) - x) < 0.02 * x.std()


def test_without_skip_connection_or_hidden_layer():
    u, y, _ = output_error(linear=True)
    skipless = fit(u, y, skip_connection=False)
    assert not hasattr(skipless, "skip_coef_")
    linear = fit(u, y, hidden_layer_sizes=(), reg_lambda=0.0)
    coefs, _ = posterior.unscaled_layers(fitted_network(linear))
    # regressors u(t), u(t-1), u(t-2), y(t-1), y(t-2)
    assert_allclose(coefs[0][:, 0], [0, 0.5, 0, 1.2, -0.4], atol=0.05)


def test_refit_without_skip_connection_forgets_it():
    u, y, _ = output_error(100)
    model = fit(u, y)
    assert model.skip_coef_.shape == (5, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(skip_connection=False).fit(u, y)
    assert not [name for name in vars(model) if name.startswith("skip_coef")]


# every kind of record and setting


def missing(y, *rows):
    y = y.copy()
    y[list(rows)] = np.nan
    return y


def records():
    u, y, _ = output_error(150)
    U, Y = two_by_two()
    half = np.repeat([1, 0], [60, 90])
    three = np.repeat(["a", "b", "a"], [40, 20, 90])
    rng = np.random.default_rng(1)
    wave = np.sin(0.3 * np.arange(150)) + 0.01 * rng.standard_normal(150)
    return {
        "plain": (u, y, {}),
        "lists with holes": (u, y, dict(input_lags=[1, 4], output_lags=[1, 3])),
        "no current input": (u, y, dict(include_current_input=False)),
        "inputs further back": (u, y, dict(input_lags=[0, 6], output_lags=1)),
        "sessions": (u, y, dict(sessions=half)),
        "sessions with an id twice": (u, y, dict(sessions=three)),
        "missing outputs": (u, missing(y, 50, 51, 52, 100), {}),
        "missing first outputs": (u, missing(y, 0, 1, 5), {}),
        "missing inputs": (missing(u, 70, 71), y, {}),
        "missing both": (missing(u, 70), missing(y, 68, 72, 120), dict(sessions=half)),
        "two by two": (U, Y, {}),
        "two by two, gaps": (missing(U, 60), missing(Y, 90), dict(output_lags=1)),
        "autoregression": (None, wave, dict(output_lags=[1, 2, 5])),
        "inputs only": (u, y, dict(input_lags=8, output_lags=0)),
        "the current input only": (u, y, dict(input_lags=0, output_lags=0)),
        "linear": (u, y, dict(hidden_layer_sizes=())),
        "two layers": (u, y, dict(hidden_layer_sizes=(3, 2))),
        "relu": (u, y, dict(activation="relu")),
        "logistic": (u, y, dict(activation="logistic")),
        "lbfgs": (u, y, dict(solver="lbfgs", max_iter=10)),
        "lbfgs, diag": (U, Y, dict(solver="lbfgs", max_iter=10, curvature="diag")),
        "diag": (u, y, dict(curvature="diag")),
        "lasso": (u, y, dict(reweight=False, groups="element")),
        "group lasso": (u, y, dict(reweight=False)),
        "no prior": (u, y, dict(reg_lambda=0.0)),
        "a strength a layer": (u, y, dict(reg_lambda=[1.0, 4.0, 0.5])),
        "elements": (u, y, dict(groups="element")),
        "given noise": (u, y, dict(noise_variance=NOISE**2)),
        "given noises": (U, Y, dict(noise_variance=[0.25, 2.5e-5])),
        "not normalized": (u, y, dict(normalize=False)),
        "whole records only": (u, y, dict(horizon_schedule=(None,))),
    }


@pytest.fixture(scope="module")
def fits():
    """Every case fitted, when it is first asked for."""
    done = {}

    def fitted(case):
        if case not in done:
            u, y, options = records()[case]
            done[case] = (fit(u, y, **options), u, y, options.get("sessions"))
        return done[case]

    return fitted


def naive_stretches(model, U, Y, sessions):
    sessions = np.zeros(len(Y)) if sessions is None else sessions
    lags = lags_of(model)
    regressors = list(zip(lags.signal.tolist(), lags.lag.tolist(), strict=True))
    # not only equal ids: one session is a run of them
    run = np.cumsum(np.r_[False, sessions[1:] != sessions[:-1]])
    return naive.stretches(U, Y, regressors, run)[0]


@pytest.mark.parametrize("case", records())
def test_last_error_is_that_of_the_training_free_run(fits, case):
    """By predictions, each of a stretch without its outputs."""
    model, u, y, sessions = fits(case)
    Y = y.reshape(len(y), -1)
    U = np.empty((len(Y), 0)) if u is None else u
    max_lag, errors = model.max_lag_, []
    for start, stop in naive_stretches(model, U, Y, sessions):
        rows = slice(start - max_lag, stop)
        init = y[start - max_lag : start] if max_lag else None
        free = model.predict(U[rows], y_init=init).reshape(-1, Y.shape[1])
        errors.append((free - Y[rows])[max_lag:])
    errors = np.concatenate(errors)
    assert n_observations(model) == np.count_nonzero(np.isfinite(errors))
    expected = np.sqrt(np.nanmean(errors**2, axis=0))
    assert_allclose(np.atleast_1d(model.history_["rmse"][-1]), expected, rtol=1e-7)
    assert (expected < np.nanstd(Y, axis=0)).all()


@pytest.mark.parametrize("case", records())
def test_history(fits, case):
    history = fits(case)[0].history_
    horizon = history["horizon"]
    assert (np.diff(horizon[np.isfinite(horizon)]) >= 0).all()
    assert horizon[-1] == np.inf
    start, end = history["objective_start"], history["objective"]
    assert (end <= start + 1e-9 * np.abs(start)).all()
    assert history["n_diverged_starts"] == 0
    assert fits(case)[0].n_cycles_ == len(horizon) == len(history["rmse"])


@pytest.mark.parametrize("case", records())
def test_predictions_of_the_training_record(fits, case):
    model, u, y, sessions = fits(case)
    U = np.empty((len(y), 0)) if u is None else u
    for horizon in (1, 3, None):
        mean, std = model.predict(
            U, y, horizon=horizon, sessions=sessions, return_std=True
        )
        assert mean.shape == std.shape == y.shape
        # before, rows are returned as measured, even where they are not
        rest = slice(model.max_lag_, None)
        assert_array_equal(np.isnan(mean[rest]), np.isnan(std[rest]))
        assert (std[np.isfinite(std)] >= 0).all()
    # from the training means nothing measured is needed
    if np.isfinite(U).all():
        assert np.isfinite(model.predict(U, sessions=sessions)).all()


def test_inputs_only_simulates_as_it_predicts(fits):
    model, u, y, _ = fits("inputs only")
    one_step = model.predict(u, y)
    assert_allclose(model.predict(u, y_init=y[:8]), one_step, rtol=1e-10)
    assert_allclose(model.predict(u, y, horizon=5), one_step, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_two_by_two_is_close_to_the_truth(seed):
    U, Y = two_by_two(300, seed)
    model = fit(U, Y, 1, 1, max_cycles=60)
    new_U, new_Y = two_by_two(200, seed + 50, noise=0.0)
    free = model.predict(new_U, y_init=new_Y[:1])
    assert (np.sqrt(np.mean((free - new_Y) ** 2, axis=0)) < 0.5 * new_Y.std(0)).all()
    assert model.score(new_U, new_Y, horizon=None) > 0.98


def test_sessions_in_another_order_are_the_same_data():
    u, y, _ = output_error(150)
    sessions = np.repeat([0, 1], [60, 90])
    order = np.r_[60:150, 0:60]
    one = fit(u, y, sessions=sessions)
    other = fit(u[order], y[order], sessions=sessions[order])
    assert_allclose(one.history_["rmse"], other.history_["rmse"], rtol=1e-5)
    joined = fit(u, y)
    assert abs(joined.history_["rmse"][-1] - one.history_["rmse"][-1]) > 1e-4


def test_no_window_to_start_from():
    u, y, _ = output_error(100)
    gappy = missing(y, *range(0, 100, 4))
    # one step ahead needs lag 1 only; a free run, every row since the longest lag
    model = SparseBayesNARXRegressor([6], [1], reg_lambda=1.0, tol=1e-1).fit(u, gappy)
    with pytest.raises(ValueError, match="y holds no 6 measured rows in turn"):
        model.set_params(focus="simulation").fit(u, gappy)


# initial conditions


def slow_system(n_rows, seed, n_before=0, noise=0.0):
    """y(t) = 1.9 y(t-1) - 0.905 y(t-2) + 0.01 u(t-1), which forgets slowly."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1, 1, size=n_rows // 5 + 1), 5)[:n_rows]
    u = np.concatenate([np.full(n_before, u[0]), u])
    y = np.zeros(n_before + n_rows)
    y[:2] = rng.uniform(-2, 2) + np.array([0.0, rng.uniform(-0.2, 0.2)])
    for t in range(2, len(y)):
        y[t] = 1.9 * y[t - 1] - 0.905 * y[t - 2] + 0.01 * u[t - 1]
    return u[:, None], y + noise * rng.standard_normal(len(y))


LINEAR = dict(hidden_layer_sizes=(), reg_lambda=1.0, max_cycles=60)


@pytest.mark.parametrize("gap", [0, 1, 4])
@pytest.mark.parametrize("n_sessions", [1, 3])
def test_estimated_initial_conditions(gap, n_sessions):
    """All measured rows count, and a noise-free system is reproduced from the first."""
    pairs = [slow_system(80, seed) for seed in range(n_sessions)]
    u, y = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    sessions = np.repeat(np.arange(n_sessions), 80)
    # the last session starts without measured rows
    y = missing(y, *range(len(y) - 80, len(y) - 80 + gap))
    options = dict(sessions=sessions, **LINEAR)
    measured = fit(u, y, **options)
    estimated = fit(u, y, initial_conditions="estimated", **options)
    n_lost = 2 * (n_sessions - 1) + gap + 2
    assert n_observations(measured) == 80 * n_sessions - n_lost
    assert n_observations(estimated) == 80 * n_sessions - gap
    assert estimated.history_["rmse"][-1] < 2e-3 * np.nanstd(y)
    assert estimated.history_["objective"][-1] < np.inf


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_known", [1, 2, 5, 30])
def test_outputs_before_a_record(seed, n_known):
    """Close to the truth as far as the outputs tell it."""
    model = fit(*slow_system(150, 100), **LINEAR)
    u, y = slow_system(60, seed, n_before=2)
    step = typical_step(y[:, None], np.array([0, len(y)]))
    Y = y[2 : 2 + n_known, None]
    before = outputs_before(
        fitted_network(model), lags_of(model), u[2 : 2 + n_known], Y, step
    )
    assert before.shape == (2, 1)
    # one output leaves the slope open: they stay near it then
    held = np.abs(y[2] - y[:2]).max()
    bound = 1.1 * held if n_known == 1 else 0.02 * y.std()
    assert np.abs(before[:, 0] - y[:2]).max() < bound


def test_a_session_without_any_output():
    """It tells nothing of the others, wherever it stands."""
    pairs = [slow_system(60, seed) for seed in range(3)]
    u, y = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    sessions = np.repeat([0, 1, 2], 60)
    options = dict(initial_conditions="estimated", **LINEAR)
    kept = sessions != 1
    whole = fit(u[kept], y[kept], sessions=sessions[kept], **options)
    y[~kept] = np.nan
    model = fit(u, y, sessions=sessions, **options)
    error, expected = model.history_["rmse"], whole.history_["rmse"]
    assert_allclose(error, expected, rtol=1e-4, atol=1e-9 * np.nanstd(y))


def test_unknown_outputs_do_not_depend_on_other_sessions(fits):
    """Not even where a session holds no value of an output to start from."""
    model, U, Y, _ = fits("two by two")
    Y = Y.copy()
    Y[:30, 1] = np.nan
    starts, scaling = np.array([0, 30, 60, 90]), fitted_network(model).scaling
    found = []
    for shift in (0.0, 1.0):
        Y[30:90] += shift * np.nanstd(Y, axis=0)
        weights = 1 / fitted_network(model).free_run_std
        data, _ = with_unknown_start(
            U[:90], Y[:90], lags_of(model), starts, scaling, weights
        )
        step = np.ones(2)
        found.append(
            estimate_initial(fitted_network(model).network, data, 1.0, step).initial
        )
    assert_array_equal(found[0][:2], found[1][:2])
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_estimated_initial_conditions_need_all_inputs():
    u, y, _ = output_error(100)
    with pytest.raises(ValueError, match="X must hold no missing.*estimated"):
        fit(missing(u, 50), y, initial_conditions="estimated")


@pytest.mark.parametrize("options", [{}, dict(n_estimators=3)])
@pytest.mark.parametrize("n_known", [1, 2, 4])
def test_start_from_fewer_rows_than_the_longest_lag(options, n_known):
    u, y = slow_system(300, 0, noise=0.01)
    model = fit(u, y, 5, 5, hidden_layer_sizes=2, max_cycles=30, **options)
    better = []
    for seed in range(1, 5):
        u, y = slow_system(60, seed)
        free, std = model.predict(u, y_init=y[:n_known], return_std=True)
        assert np.isfinite(free).all() and free.shape == std.shape == y.shape
        assert_array_equal(free[:n_known], y[:n_known])
        assert_array_equal(std[:n_known], 0.0)
        assert (std[n_known:] > 0).all()
        from_mean = model.predict(u)
        better.append(rms(free - y) < rms(from_mean - y))
    assert np.mean(better) >= 0.75


def test_short_start_of_two_outputs_and_of_an_autoregression(fits):
    model, U, Y, _ = fits("two by two")
    free = model.predict(U, y_init=Y[:1])
    assert_array_equal(free[0], Y[0])
    assert rms((free - Y)[5:] / Y.std(axis=0)) < 0.5
    model, _, y, _ = fits("autoregression")
    free = model.predict(np.empty((20, 0)), y_init=y[:3])
    assert_array_equal(free[:3], y[:3])
    assert np.isfinite(free).all()


def test_short_start_with_a_missing_input():
    """As behind any missing input, nothing can be said from there on."""
    u, y, _ = output_error(150)
    model = fit(u, y, 4, 4)
    free = model.predict(missing(u, 0)[:20], y_init=y[:2])
    assert_array_equal(free[:2], y[:2])
    assert np.isnan(free[2:]).any()


# horizons


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("auto", [1, 8, 32, 128, np.inf]),
        ((1, 8, 32, 128, None), [1, 8, 32, 128, np.inf]),
        ((None,), [np.inf]),
        ((1,), [1]),
        ([3, 9], [3, 9]),
        (np.array([1, 5]), [1, 5]),
        ((1, 1000), [1, 1000]),
        # a stage longer than the record would repeat the last
        ((1, 500, 1000, None), [1, np.inf]),
        ((2, np.inf), [2, np.inf]),
        ((1.0, 4.0), [1, 4]),
    ],
    ids=str,
)
def test_horizon_schedule(schedule, expected):
    u, y, _ = output_error(200)
    model = fit(u, y, horizon_schedule=schedule, max_cycles=3)
    horizons = [horizon for horizon, _ in itertools.groupby(model.history_["horizon"])]
    assert horizons == expected
    assert np.isfinite(model.predict(u, y)).all()


@pytest.mark.parametrize(
    "schedule",
    [
        (),
        (0,),
        (-1, 5),
        (1.5,),
        (2, 1),
        (1, 1),
        (None, 5),
        (None, None),
        (np.nan,),
        (1, np.nan),
        ("a",),
        "all",
        5,
        None,
        [[1, 2], [3, 4]],
    ],
    ids=str,
)
def test_bad_horizon_schedule(schedule):
    u, y, _ = output_error(50)
    with pytest.raises(ValueError, match="horizon_schedule"):
        fit(u, y, horizon_schedule=schedule)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(solver="adam"), "solver='adam'.*focus='simulation'"),
        (dict(weighting="validation"), "weighting='validation' needs"),
        (dict(focus="both"), "focus"),
        (dict(initial_conditions="zero"), "initial_conditions"),
        (dict(n_estimators=0), "n_estimators"),
        (dict(selection="best"), "selection"),
        (dict(validation_fraction=1.0), "validation_fraction"),
        (dict(validation_fraction=0.99, selection="validation"), "y without its"),
        (dict(reg_lambda=[1.0, 2.0]), "reg_lambda"),
    ],
)
def test_bad_parameters(options, message):
    u, y, _ = output_error(50)
    with pytest.raises(ValueError, match=message):
        fit(u, y, **options)


# divergence


def in_closed_loop(n_rows=300, seed=0):
    """An unstable system, held by a controller: no free run can follow its record."""
    rng = np.random.default_rng(seed)
    u, y = np.zeros((n_rows, 1)), np.zeros(n_rows)
    for t in range(1, n_rows):
        y[t] = 1.4 * y[t - 1] + u[t - 1, 0] + 0.1 * rng.standard_normal()
        u[t] = -1.1 * y[t] + rng.standard_normal()
    return u, y


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_every_start_diverges(n_estimators):
    u, y = in_closed_loop()
    model = SparseBayesNARXRegressor(
        1,
        1,
        **{**FAST, "n_estimators": n_estimators, "n_restarts": 2, "random_state": 0},
    )
    message = "Every start diverged in free run.* that of the horizon (1|8|32)[.]"
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(u, y)
    assert model.history_["n_diverged_starts"] == max(2, n_estimators)
    for member in getattr(model, "estimators_", []):
        assert member.history_["n_diverged_starts"] == 1
    assert model.history_["horizon"][-1] < np.inf
    # it predicts what can be predicted
    assert model.score(u, y, horizon=1) > 0.95
    mean, std = model.predict(u, y, horizon=2, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


def test_a_free_run_that_cannot_even_start():
    """There is a model without a stage one step ahead, too."""
    u, y = in_closed_loop()
    n_wild = 0
    for seed in range(4):
        options = dict(hidden_layer_sizes=20, activation="relu", random_state=seed)
        model = fit(u, y, 2, 8, horizon_schedule=(None,), reg_lambda=1.0, **options)
        assert np.isfinite(model.predict(u, y)).all()
        assert (model.history_["rmse"] < 100 * y.std()).all()
        # the same start, as it would have been
        network = init_network((11, 20, 1), "relu", first_generator(seed), skip=True)
        wild = pickle.loads(pickle.dumps(model))
        replace_fitted(wild, network=network)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            n_wild += np.isnan(wild.predict(u, y_init=y[:8])).any()
    assert n_wild


def first_generator(random_state):
    """What draws the initial weights of the first start."""
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])


def mark_as_diverged(monkeypatch, *numbers):
    """Every fit takes the starts with these numbers for diverged."""
    run, calls = _restarts._run, itertools.count()

    def marked(problem, seed):
        done = run(problem, seed)
        return done._replace(diverged=next(calls) in numbers)

    monkeypatch.setattr(_restarts, "_run", marked)


def test_diverged_starts_are_counted_and_left_out(monkeypatch):
    u, y, _ = output_error(150)
    options = dict(n_restarts=3, n_estimators=3)
    everyone = fit(u, y, **options)
    objectives = [m.history_["objective_pruned"][-1] for m in everyone.estimators_]
    assert len(objectives) == 3 and everyone.history_["n_diverged_starts"] == 0
    mark_as_diverged(monkeypatch, 1)
    rest = fit(u, y, **options)
    assert rest.history_["n_diverged_starts"] == 1
    kept = [m.history_["objective_pruned"][-1] for m in rest.estimators_]
    assert len(kept) == 2 and set(kept) < set(objectives)
    assert_allclose(rest.estimator_weights_, [0.5, 0.5])


# fits that go on, stop, repeat


def test_warm_start_on_new_data():
    u, y, _ = output_error(200)
    model = fit(u, y, warm_start=True, max_cycles=60)
    before = model.history_["rmse"][-1]
    coefs = [coef.copy() for coef in model.coefs_]
    new_u, new_y, _ = output_error(200, seed=1)
    cold = rms(new_y - new_y.mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_cycles=1).fit(new_u, new_y)
    # the last stage alone, from where the other fit ended
    assert_array_equal(model.history_["horizon"], [np.inf])
    assert model.history_["rmse"][0] < 1.5 * before < 0.5 * cold
    change = max(np.abs(a - b).max() for a, b in zip(coefs, model.coefs_, strict=True))
    assert 0 < change < 1.0


@pytest.mark.parametrize(
    "change",
    [
        dict(hidden_layer_sizes=5),
        dict(skip_connection=False),
        dict(groups="row"),
        dict(activation="relu"),
        # as many regressors, but others
        dict(input_lags=1, output_lags=3),
        dict(output_lags=[1, 3]),
    ],
)
def test_warm_start_of_another_model_is_refused(change):
    u, y, _ = output_error(100)
    model = fit(u, y, warm_start=True)
    before = model.predict(u, y)
    with pytest.raises(ValueError, match="warm_start=True.*warm_start=False"):
        model.set_params(**change).fit(u, y)
    assert_array_equal(model.predict(u, y), before)


def test_warm_start_where_the_old_model_diverges():
    """It runs through all stages again, whatever they are."""
    u, y, _ = output_error(200)
    model = fit(u, y, warm_start=True, horizon_schedule=(None,))
    start = model._learned.start
    wild = start.network._replace(theta=5.0 * start.network.theta)
    start = start._replace(network=wild)
    model._learned = model._learned._replace(start=start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(u, y)
    assert np.isfinite(model.predict(u)).all()


@pytest.mark.parametrize("n_estimators", [1, 2])
@pytest.mark.parametrize("n_cycles", [3, 18])
def test_interrupt_with_warm_start(interrupt_after, n_cycles, n_estimators):
    u, y, _ = output_error(150)
    model = SparseBayesNARXRegressor(
        **FAST, n_estimators=n_estimators, warm_start=True, random_state=0
    )
    interrupt_after(n_cycles)
    with pytest.raises(KeyboardInterrupt):
        model.fit(u, y)
    assert len(getattr(model, "estimators_", [model])) == 1
    assert model.n_cycles_ == n_cycles
    assert model.history_["horizon"][-1] < np.inf
    assert np.isfinite(model.predict(u, y)).all()
    assert len(model.lag_relevance_) == 5


def test_interrupt_leaves_the_old_fit(interrupt_after):
    u, y, _ = output_error(150)
    model = fit(u, y, n_estimators=2)
    before, old = model.predict(u, y_init=y[:2]), dict(vars(model))
    interrupt_after(5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(u, y + 1.0)
    assert vars(model) == old
    assert_array_equal(model.predict(u, y_init=y[:2]), before)


def test_failure_leaves_the_old_fit():
    u, y, _ = output_error(150)
    model = fit(u, y)
    old = dict(vars(model))
    with pytest.raises(ValueError, match="longest lag"):
        model.fit(u[:2], y[:2])
    assert vars(model) == old


@pytest.mark.parametrize("options", [{}, dict(initial_conditions="estimated")])
def test_reproducible_for_any_n_jobs(options):
    u, y, _ = output_error(120)
    options = dict(n_estimators=3, max_cycles=5, **options)
    alone = fit(u, y, **options)
    assert_same_fit(alone, fit(u, y, **options))
    together = fit(u, y, n_jobs=2, **options)
    for a, b in zip(alone.estimators_, together.estimators_, strict=True):
        assert_same_fit(a, b)
    assert_array_equal(alone.predict(u), together.predict(u))
    other = fit(u, y, **{**options, "random_state": 1})
    assert np.abs(other.coefs_[0] - alone.coefs_[0]).max() > 0


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("initial_conditions", ["measured", "estimated"])
def test_arrays_are_never_written(order, initial_conditions):
    U, Y = two_by_two(80)
    U, Y = np.array(U, order=order), np.array(Y, order=order)
    sessions = np.repeat([0, 1], 40)
    copies = U.copy(), Y.copy(), sessions.copy()
    for array in (U, Y, sessions):
        array.flags.writeable = False
    model = fit(
        U,
        Y,
        sessions=sessions,
        initial_conditions=initial_conditions,
        selection="validation",
        n_estimators=2,
        max_cycles=2,
    )
    model.predict(U, Y, horizon=3, sessions=sessions, return_std=True)
    model.predict(U, y_init=Y[:1], return_std=True)
    for array, copy in zip((U, Y, sessions), copies, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize("options", [{}, dict(n_estimators=2)])
def test_copies_predict_the_same(options):
    u, y, _ = output_error(100)
    model = fit(u, y, **options)
    stream = io.BytesIO()
    joblib.dump(model, stream)
    stream.seek(0)
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(stream)):
        for arguments in ({"y": y}, {"y_init": y[:2]}, {"y_init": y[:1]}):
            assert_array_equal(
                copy.predict(u, **arguments, return_std=True),
                model.predict(u, **arguments, return_std=True),
            )
    new = clone(model)
    assert not [name for name in vars(new) if name.endswith("_")]
    assert new.get_params() == model.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert_same_fit(new.fit(u, y), model)


@pytest.mark.parametrize("routing", [False, True])
def test_in_a_pipeline(routing):
    u, y, _ = output_error(120)
    sessions = np.repeat([0, 1], 60)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = SparseBayesNARXRegressor(**FAST, n_estimators=2, random_state=0)
        key = "sessions" if routing else "sparsebayesnarxregressor__sessions"
        if routing:
            model.set_fit_request(sessions=True)
            model.set_predict_request(y_init=True, return_std=True)
        pipeline = make_pipeline(StandardScaler(), model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            pipeline.fit(u, y, **{key: sessions})
        # two sessions lose two rows each
        assert n_observations(pipeline[-1]) == 116
        free, std = pipeline.predict(u, y_init=y[:1], return_std=True)
        assert free[0] == y[0] and (std[1:] > 0).all()
        assert simulation_scorer(pipeline, u, y) > -0.5 * y.std()


# spread


def numeric_slopes(function, theta, step=1e-5):
    columns = []
    for k in range(len(theta)):
        moved = [theta.copy(), theta.copy()]
        moved[0][k] += step
        moved[1][k] -= step
        columns.append((function(moved[0]) - function(moved[1])) / (2 * step))
    return np.array(columns).T


def with_theta(model, theta):
    """A copy of a model with all parameters kept, and these values of them."""
    copy = pickle.loads(pickle.dumps(model))
    network = fitted_network(copy).network
    replace_fitted(copy, network=network._replace(theta=theta))
    return copy


@pytest.mark.parametrize("hidden", [(), (2,)])
def test_std_of_a_free_run(hidden):
    """sqrt(s' C s + sigma^2), with the slopes of the whole path by finite differences.

    The noise belongs to the measurement: it is not fed back.
    """
    u, y, _ = output_error(200)
    model = fit(u, y, hidden_layer_sizes=hidden, reg_lambda=0.0)
    theta = fitted_network(model).network.theta
    assert fitted_network(model).network.keep.all()

    def free_run(values):
        return with_theta(model, values).predict(u[:60], y_init=y[:2])

    slopes = numeric_slopes(free_run, theta)
    variance = np.einsum("ti,ij,tj->t", slopes, model.posterior_covariance_, slopes)
    _, std = model.predict(u[:60], y_init=y[:2], return_std=True)
    expected = np.sqrt(variance + model.noise_variance_)
    assert_allclose(std[2:], expected[2:], rtol=1e-4)
    assert_array_equal(std[:2], 0.0)


def test_std_of_one_step():
    u, y, _ = output_error(200, linear=True)
    model = fit(u, y, hidden_layer_sizes=(), reg_lambda=0.0)
    theta = fitted_network(model).network.theta
    slopes = numeric_slopes(lambda v: with_theta(model, v).predict(u, y), theta)
    variance = np.einsum("ti,ij,tj->t", slopes, model.posterior_covariance_, slopes)
    one_step, std = model.predict(u, y, return_std=True)
    # the residuals of one step are not those that were squared
    noise = rms((one_step - y)[2:])
    assert noise > 1.2 * np.sqrt(model.noise_variance_)
    assert_allclose(std[2:], np.sqrt(variance + noise**2)[2:], rtol=1e-6)


@pytest.mark.parametrize("case", ["plain", "linear", "two by two", "relu"])
def test_std_ahead_lies_between(fits, case):
    model, u, y, _ = fits(case)
    n = model.max_lag_
    free = model.predict(u, y, horizon=None, return_std=True)[1][n:]
    one = model.predict(u, y, horizon=1, return_std=True)[1][n:]
    low, high = np.minimum(one, free), np.maximum(one, free)
    for horizon in (2, 5, 50):
        std = model.predict(u, y, horizon=horizon, return_std=True)[1][n:]
        # the rows' means: in a single row the slopes differ from run to run
        assert (std.mean(axis=0) > 0.97 * low.mean(axis=0)).all()
        assert (std.mean(axis=0) < 1.03 * high.mean(axis=0)).all()


@pytest.mark.parametrize("seed", range(3))
def test_std_of_a_free_run_covers(seed):
    u, y, _ = output_error(400, seed)
    model = fit(u, y, hidden_layer_sizes=4, max_cycles=100)
    new_u, new_y, x = output_error(400, seed + 100)
    mean, std = model.predict(new_u, y_init=x[:2], return_std=True)
    inside = np.abs(mean - new_y)[2:] < 1.96 * std[2:]
    # 400 rows tell a share of 95 % to one percent; a prior at temperature 4 is wider
    assert inside.mean() > 0.90


# committees


@pytest.fixture(scope="module")
def committee():
    u, y, _ = output_error(200)
    return fit(u, y, n_estimators=3, max_cycles=30)


def naive_median(values, weights):
    order = np.argsort(values)
    total, result = 0.0, []
    for k in order:
        before, total = total, total + weights[k]
        if before < 0.5 - 1e-9 < total or abs(before - 0.5) < 1e-9:
            result.append(values[k])
    return np.mean(result)


@pytest.mark.parametrize("weights", [None, [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
@pytest.mark.parametrize("start", ["one step", "ahead", "free", "short", "mean"])
def test_prediction_of_a_committee(committee, weights, start):
    u, y, _ = output_error(60, seed=7)
    arguments = {
        "one step": dict(y=y),
        "ahead": dict(y=y, horizon=4),
        "free": dict(y_init=y[:2]),
        "short": dict(y_init=y[:1]),
        "mean": {},
    }[start]
    model = pickle.loads(pickle.dumps(committee))
    if weights:
        set_weights(model, np.array(weights))
    weights = model.estimator_weights_
    mean, std = model.predict(u, **arguments, return_std=True)
    if start == "short":
        # all start from the same estimate, that of the first
        first, step = ensemble_of(model).members[0], model._lagged.step_variance
        before = outputs_before(*first, u[:1], y[:1, None], step)
        head = np.tile(u[:1], (2, 1)), np.concatenate([before[:, 0], y[:1]])
        members = [
            [
                part[2:]
                for part in m.predict(
                    np.concatenate([head[0], u]), y_init=head[1], return_std=True
                )
            ]
            for m in model.estimators_
        ]
    else:
        members = [
            m.predict(u, **arguments, return_std=True) for m in model.estimators_
        ]
    means = np.array([member[0] for member in members])
    spread = np.array([member[1] for member in members])
    expected = [naive_median(column, weights) for column in means.T]
    assert_allclose(mean, expected, rtol=1e-12)
    mixture = np.sqrt(weights @ (spread**2 + (means - mean) ** 2))
    known = 0 if start == "mean" else len(arguments.get("y_init", y[:2]))
    assert_allclose(std[known:], mixture[known:], rtol=1e-10)
    assert np.ptp(means, axis=0).max() > 1e-6


def test_committee(committee):
    u, y, _ = output_error(200)
    assert len(committee.estimators_) == 3
    assert committee.estimator_weights_.sum() == pytest.approx(1.0)
    for member in committee.estimators_:
        assert not hasattr(member, "estimators_") and member.n_estimators == 1
        assert member.score(u, y) > 0.9
    assert committee.score(u, y) > 0.9 and committee.score(u, y, horizon=None) > 0.9
    squares = [m.feature_relevance_**2 for m in committee.estimators_]
    expected = np.sqrt(np.mean(squares, axis=0))
    assert_allclose(committee.feature_relevance_, expected)
    names = committee.get_lagged_feature_names_out()
    assert list(committee.lag_relevance_) == list(names)
    assert_allclose(list(committee.lag_relevance_.values()), expected)
    # the rest describes the first
    assert_same_fit(committee, committee.estimators_[0])


def test_refit_with_one_network_removes_the_committee():
    u, y, _ = output_error(100)
    model = fit(u, y, n_estimators=2)
    assert len(model.estimators_) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(n_estimators=1).fit(u, y)
    assert not hasattr(model, "estimators_")
    assert not hasattr(model, "estimator_weights_")
    assert_same_fit(model, fit(u, y))


def training_error(member, u, y, rows=slice(2, None)):
    return rms((member.predict(u, y_init=y[:2]) - y)[rows])


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
@pytest.mark.parametrize("selection", ["evidence", "simulation", "validation"])
def test_selection_orders_the_starts(selection, focus):
    u, y, _ = output_error(150)
    model = fit(
        u, y, focus=focus, n_estimators=4, selection=selection, hidden_layer_sizes=5
    )
    errors = {
        "evidence": [m.history_["objective_pruned"][-1] for m in model.estimators_],
        "simulation": [training_error(m, u, y) for m in model.estimators_],
        "validation": [
            training_error(m, u, y, slice(120, None)) for m in model.estimators_
        ],
    }[selection]
    assert len(set(errors)) > 1
    assert errors == sorted(errors)
    single = fit(
        u, y, focus=focus, n_restarts=4, selection=selection, hidden_layer_sizes=5
    )
    assert_same_fit(single, model.estimators_[0])
    # more starts than networks: the best stay
    fewer = fit(
        u,
        y,
        focus=focus,
        n_estimators=2,
        n_restarts=4,
        selection=selection,
        hidden_layer_sizes=5,
    )
    for a, b in zip(fewer.estimators_, model.estimators_, strict=False):
        assert_same_fit(a, b)


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
@pytest.mark.parametrize("n_sessions", [1, 3])
def test_validation_stretches_are_not_seen(focus, n_sessions):
    u, y, _ = output_error(150)
    sessions = np.arange(150) * n_sessions // 150
    length = 150 // n_sessions
    held_out = np.arange(150) % length >= length - np.ceil(0.3 * length)
    options = dict(
        sessions=sessions, focus=focus, selection="validation", validation_fraction=0.3
    )
    one = fit(u, y, **options)
    other = fit(u, np.where(held_out, -y, y), **options)
    assert_same_fit(one, other)
    assert one.noise_variance_ == other.noise_variance_
    seen = fit(u, np.where(np.roll(held_out, -1), -y, y), **options)
    assert np.abs(seen.coefs_[0] - one.coefs_[0]).max() > 0


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_weights_by_evidence(focus):
    """Posterior probabilities at the temperature of the fit."""
    u, y, _ = output_error(150)
    model = fit(
        u, y, n_estimators=3, weighting="evidence", focus=focus, reg_lambda=20.0
    )
    objective = [m.history_["objective_pruned"][-1] for m in model.estimators_]
    odds = np.exp(-0.5 * (np.array(objective) - min(objective)) / 20.0)
    assert_allclose(model.estimator_weights_, odds / odds.sum(), rtol=1e-9)


def assert_least_error(weights, paths, y):
    def error(weights):
        return rms(weights @ paths - y)

    rng = np.random.default_rng(0)
    others = [*np.eye(3), np.full(3, 1 / 3), *rng.dirichlet(np.ones(3), size=50)]
    assert error(weights) <= min(map(error, others)) * (1 + 1e-6)


@pytest.mark.parametrize("shift", [0.0, -1000.0])
def test_weights_by_validation(shift):
    """No mixture of the members errs less on the stretch that none has seen."""
    u, y, _ = output_error(150)
    y = y + shift
    model = fit(
        u,
        y,
        n_estimators=3,
        hidden_layer_sizes=5,
        selection="validation",
        weighting="validation",
    )
    weights = model.estimator_weights_
    assert weights.sum() == pytest.approx(1.0) and (weights >= 0).all()
    paths = [m.predict(u, y_init=y[:2])[120:] for m in model.estimators_]

    assert_least_error(weights, paths, y[120:])


@pytest.mark.parametrize("first", [0, 60])
def test_weights_by_validation_with_gaps(first):
    """Missing values before the stretch do not decide on the weights."""
    u, y, _ = output_error(150)
    options = dict(
        n_estimators=3,
        # far from the end of a fit the members differ, and a mixture helps
        horizon_schedule=(1,),
        max_cycles=1,
        selection="validation",
        weighting="validation",
    )
    y[first : first + 4], u[first + 10] = np.nan, np.nan
    model = fit(u, y, **options)
    start = first + 13
    paths = [
        m.predict(u[start:], y_init=y[start : start + 2])[120 - start :]
        for m in model.estimators_
    ]
    assert model.estimator_weights_.max() < 0.99
    assert_least_error(model.estimator_weights_, paths, y[120:])


def test_nothing_to_weigh_by():
    """No free run reaches a validation stretch: the weights are equal."""
    u, y, _ = output_error(100)
    u[82::3] = np.nan
    model = fit(
        u,
        y,
        n_estimators=2,
        selection="validation",
        weighting="validation",
        validation_fraction=0.1,
    )
    assert_allclose(model.estimator_weights_, [0.5, 0.5])


def destabilise(model, member):
    network = fitted_network(model, member).network
    wild = network._replace(theta=5.0 * network.theta)
    replace_fitted(model, member, network=wild)


def test_members_that_diverge_on_new_data(committee):
    u, y, _ = output_error(100, seed=3)
    model = pickle.loads(pickle.dumps(committee))
    destabilise(model, 1)
    with pytest.warns(RuntimeWarning, match="diverged"):
        lost = np.isnan(model.estimators_[1].predict(u, y_init=y[:2]))
    assert lost.any()
    # two of three go on, without a warning
    mean, std = model.predict(u, y_init=y[:2], return_std=True)
    others = [model.estimators_[k].predict(u, y_init=y[:2]) for k in (0, 2)]
    assert_allclose(mean[lost], np.mean(others, axis=0)[lost], rtol=1e-12)
    assert np.isfinite(std).all()
    assert rms(mean - y) < 0.5 * y.std()
    destabilise(model, 0)
    with pytest.warns(RuntimeWarning, match="predicted rows diverged"):
        mean, std = model.predict(u, y_init=y[:2], return_std=True)
    assert np.isnan(mean[-1]) and np.isnan(std[-1])
    assert_array_equal(mean[:2], y[:2])
    assert model.score(u, y, horizon=None) == -np.inf


def test_committee_one_step_ahead():
    """Committees do not need focus="simulation"."""
    u, y, _ = output_error(150)
    model = fit(u, y, focus="prediction", n_estimators=3)
    members = [m.predict(u, y) for m in model.estimators_]
    assert_allclose(model.predict(u, y), np.median(members, axis=0), rtol=1e-12)


def test_committee_of_several_outputs_and_sessions():
    U, Y = two_by_two(120)
    sessions = np.repeat([0, 1], 60)
    model = fit(U, Y, 1, 1, sessions=sessions, n_estimators=3, max_cycles=5)
    for arguments in (dict(y=Y), dict(y=Y, horizon=None), dict(y=Y, horizon=3), {}):
        mean, std = model.predict(U, sessions=sessions, return_std=True, **arguments)
        members = [
            m.predict(U, sessions=sessions, **arguments) for m in model.estimators_
        ]
        assert_allclose(mean, np.median(members, axis=0), rtol=1e-12)
        assert mean.shape == std.shape == Y.shape


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_displays_accept_it(n_estimators):
    plt = pytest.importorskip("matplotlib.pyplot")
    from skbayesnn import displays

    u, y, _ = output_error(120)
    model = fit(u, y, n_estimators=n_estimators, max_cycles=5)
    simulation = displays.SimulationDisplay.from_estimator(model, u, y)
    relevance = displays.LagRelevanceDisplay.from_estimator(model)
    others = [
        displays.ConvergenceDisplay.from_estimator(model),
        displays.SparsityDisplay.from_estimator(model),
        displays.ResidualAnalysisDisplay.from_estimator(model, u, y),
    ]
    for display in (simulation, relevance, *others):
        assert display.figure_.axes
    plt.close("all")


def test_verbose_prints_the_horizon(capsys):
    u, y, _ = output_error(60)
    fit(u, y, verbose=True, max_cycles=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cycle 1: objective")
    assert lines[-1].startswith("horizon inf, cycle 2: objective")


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_large_outputs_without_scaling_do_not_count_as_diverged(focus):
    """The limit follows the record, not the unit."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(200, 1))
    y = np.full(200, 5000.0)
    for t in range(1, 200):
        y[t] = 1000.0 + 0.8 * y[t - 1] + 100.0 * u[t - 1, 0]
    model = SparseBayesNARXRegressor(
        1, 1, focus=focus, hidden_layer_sizes=(), normalize=False, reg_lambda=0.0
    ).fit(u, y)
    simulated = model.predict(u, y_init=y[:1])
    assert np.abs(simulated - y).max() < 1.0
    far = u.copy()
    far[100] = 1e9
    with pytest.warns(RuntimeWarning, match="diverged"):
        assert np.isnan(model.predict(far, y_init=y[:1])[-1])


def test_the_score_is_of_what_the_model_is_for():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(150, 1))
    y = np.zeros(150)
    for t in range(1, 150):
        y[t] = 0.9 * y[t - 1] + np.tanh(u[t - 1, 0]) + 0.1 * rng.normal()
    for focus, horizon in (("prediction", 1), ("simulation", None)):
        model = SparseBayesNARXRegressor(
            1, 1, focus=focus, hidden_layer_sizes=2, max_cycles=5, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(u, y)
        assert model.score(u, y) == model.score(u, y, horizon=horizon)
    assert model.score(u, y, horizon=1) > model.score(u, y)
