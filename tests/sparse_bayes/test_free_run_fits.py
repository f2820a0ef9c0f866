"""Networks that are learned on the free run: every kind of record and setting."""

import functools
import pickle
import warnings

import naive
import numpy as np
import pytest
from fitted_models import (
    fitted_network,
    lags_of,
    n_observations,
    replace_fitted,
)
from free_run_cases import (
    NOISE,
    fit,
    inside_range,
    missing,
    output_error,
    rms,
    two_by_two,
)
from grids import each_value_once, first_by_default, without_by_default
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.sparse_bayes.prediction import posterior
from skbayesnn.sparse_bayes.records.initial_outputs import estimate_initial
from skbayesnn.sparse_bayes.records.layout import (
    outputs_before,
    typical_step,
    with_unknown_start,
)


@pytest.mark.parametrize("seed", first_by_default(range(4)))
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


@pytest.mark.parametrize("seed", first_by_default(range(4)))
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


OF_OUTPUTS = dict(output_lags={"y0": 1, "y1": np.array([2, 4])})


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
        "lags by signal": (
            U,
            Y,
            dict(input_lags={"x0": [0, 3], "x1": 1}, **OF_OUTPUTS),
        ),
        "differences": (u, y, dict(output="difference")),
        "differences, sessions": (u, y, dict(output="difference", sessions=half)),
        "differences, two by two, gaps": (
            missing(U, 60),
            missing(Y, 90),
            dict(output="difference", output_lags=[1, 3]),
        ),
        "differences, not normalized": (
            u,
            y,
            dict(output="difference", normalize=False),
        ),
        "heavy tails": (u, y, dict(noise="student_t")),
        "heavy tails, two by two, gaps": (
            missing(U, 60),
            missing(Y, 90),
            dict(noise="student_t", noise_variance=[0.25, 2.5e-5]),
        ),
        "heavy tails, lbfgs, diag": (
            u,
            y,
            dict(noise="student_t", solver="lbfgs", max_iter=10, curvature="diag"),
        ),
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


# The default tests leave these out: others have each of their options, too.
COVERED = (
    "differences",
    "heavy tails",
    "two by two",
    "two by two, gaps",
    "inputs further back",
    "lbfgs",
    "diag",
    "given noise",
)
CASES = without_by_default(COVERED, records())


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
    if lags.difference:
        # a difference reaches one row further back
        regressors.append((U.shape[1], lags.max_lag))
    # not only equal ids: one session is a run of them
    run = np.cumsum(np.r_[False, sessions[1:] != sessions[:-1]])
    return naive.stretches(U, Y, regressors, run)[0]


@pytest.mark.parametrize("case", CASES)
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


@pytest.mark.parametrize("case", CASES)
def test_history(fits, case):
    history = fits(case)[0].history_
    horizon = history["horizon"]
    assert (np.diff(horizon[np.isfinite(horizon)]) >= 0).all()
    assert horizon[-1] == np.inf
    start, end = history["objective_start"], history["objective"]
    assert (end <= start + 1e-9 * np.abs(start)).all()
    assert history["n_diverged_starts"] == 0
    assert fits(case)[0].n_cycles_ == len(horizon) == len(history["rmse"])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MissingInputWarning")
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


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("seed", first_by_default(range(3)))
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
    # one step ahead needs lag 4 only; a free run, every row since the longest lag
    model = SparseBayesNARXRegressor([6], [4], reg_lambda=1.0, tol=1e-1).fit(u, gappy)
    with pytest.raises(ValueError, match="y holds no 4 measured rows in turn"):
        model.set_params(focus="simulation").fit(u, gappy)
    # of outputs: inputs may be read from farther back
    model.set_params(output_lags=[1]).fit(u, gappy)


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


@pytest.mark.parametrize(*each_value_once(n_sessions=[1, 3], gap=[0, 1, 4]))
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


@pytest.mark.parametrize("seed", first_by_default(range(4)))
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


@functools.cache
def of_a_slow_system(n_estimators):
    options = dict(hidden_layer_sizes=2, max_cycles=30, n_estimators=n_estimators)
    return fit(*slow_system(300, 0, noise=0.01), 5, 5, **options)


@pytest.mark.filterwarnings(
    "ignore:The run of output:skbayesnn.exceptions.ExtrapolationWarning"
)
@pytest.mark.parametrize(*each_value_once(n_known=[1, 2, 4], n_estimators=[1, 3]))
def test_start_from_fewer_rows_than_the_longest_lag(n_estimators, n_known):
    model = of_a_slow_system(n_estimators)
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


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MissingInputWarning")
def test_short_start_with_a_missing_input():
    """As behind any missing input, nothing can be said from there on."""
    u, y, _ = output_error(150)
    model = fit(u, y, 4, 4)
    free = model.predict(missing(u, 0)[:20], y_init=y[:2])
    assert_array_equal(free[:2], y[:2])
    assert np.isnan(free[2:]).any()


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
    mean, std = model.predict(u[:60], y_init=y[:2], return_std=True)
    expected = np.sqrt(variance + model.noise_variance_)
    # beyond the range of the training record there is more
    inside = inside_range(mean, y, model.max_lag_)
    inside[:2] = False
    assert np.count_nonzero(inside) > 50
    assert_allclose(std[inside], expected[inside], rtol=1e-4)
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


@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_std_of_a_free_run_covers(seed):
    u, y, _ = output_error(400, seed)
    model = fit(u, y, hidden_layer_sizes=4, max_cycles=100)
    new_u, new_y, x = output_error(400, seed + 100)
    mean, std = model.predict(new_u, y_init=x[:2], return_std=True)
    inside = np.abs(mean - new_y)[2:] < 1.96 * std[2:]
    # 400 rows tell a share of 95 % to one percent; a prior at temperature 4 is wider
    assert inside.mean() > 0.90
