"""The dynamic regressor: predictions of records, sessions, gaps, bad input."""

import pickle

import numpy as np
import pytest
import sklearn
from fitted_models import fitted_network
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.exceptions import DivergenceWarning, SamplingWarning
from skbayesnn.metrics import one_step_scorer, simulation_rmse, simulation_scorer
from skbayesnn.sparse_bayes.prediction import posterior

NOISE = 0.02


def linear_system(n_samples=300, seed=0, noise=NOISE, n_inputs=1):
    """y(t) = 1.2 y(t-1) - 0.5 y(t-2) + 0.8 u(t-1) + noise."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_samples, n_inputs))
    y = np.zeros(n_samples)
    for t in range(2, n_samples):
        y[t] = 1.2 * y[t - 1] - 0.5 * y[t - 2] + 0.8 * u[t - 1, 0]
        y[t] += noise * rng.normal()
    return u, y


def nonlinear_system(n_samples=400, seed=0, noise=NOISE):
    """y(t) = 0.6 y(t-1) - 0.1 y(t-2) + tanh(u(t-1)) + noise."""
    rng = np.random.default_rng(seed)
    u = 1.5 * rng.normal(size=(n_samples, 1))
    y = np.zeros(n_samples)
    for t in range(2, n_samples):
        y[t] = 0.6 * y[t - 1] - 0.1 * y[t - 2] + np.tanh(u[t - 1, 0])
        y[t] += noise * rng.normal()
    return u, y


@pytest.fixture(scope="module")
def fitted():
    u, y = nonlinear_system()
    return SparseBayesNARXRegressor(3, 3, random_state=0).fit(u, y)


@pytest.fixture(scope="module")
def linear():
    u, y = linear_system()
    return SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), reg_lambda=1.0).fit(
        u, y
    )


def test_one_step_error_is_the_noise(fitted):
    u, y = nonlinear_system(seed=1)
    error = (fitted.predict(u, y) - y)[3:]
    assert np.sqrt(np.mean(error**2)) < 1.2 * NOISE


def test_outputs_that_no_lag_reads_may_be_missing():
    """Where the lags of inputs reach further: six rows were asked for, all measured."""
    u, y = nonlinear_system()
    model = SparseBayesNARXRegressor(6, 2, random_state=0).fit(u, y)
    u, y = nonlinear_system(seed=1)
    holes = np.where(np.arange(len(y)) % 4 == 0, np.nan, y)
    # rows 5 and 6 are measured, behind which a run can begin
    free = model.predict(u, holes, horizon=None)
    assert np.isfinite(free[7:]).all()
    expected = model.predict(u[1:], y_init=y[1:7])
    assert_array_equal(free[7:], expected[6:])
    known = np.where(np.arange(6) < 4, np.nan, y[:6])
    found = model.predict(u, y_init=known)
    assert_array_equal(found[6:], model.predict(u, y_init=y[:6])[6:])
    known[4] = np.nan
    with pytest.raises(ValueError, match="got NaN in row 4"):
        model.predict(u, y_init=known)


def test_the_relevant_lags_are_found(fitted):
    relevance = fitted.lag_relevance_
    assert list(relevance) == list(fitted.get_lagged_feature_names_out())
    assert list(relevance)[:2] == ["x0(t)", "x0(t-1)"]
    assert max(relevance, key=relevance.get) == "x0(t-1)"
    relevant = {"x0(t-1)", "y(t-1)"}
    others = max(value for name, value in relevance.items() if name not in relevant)
    assert all(relevance[name] > 2 * others for name in relevant)
    assert_allclose(list(relevance.values()), fitted.feature_relevance_)


def test_linear_system_is_recovered(linear):
    """Without hidden layer the coefficients are those of the system."""
    coefs, _ = posterior.unscaled_layers(fitted_network(linear))
    # regressors u(t), u(t-1), u(t-2), y(t-1), y(t-2)
    assert_allclose(coefs[0][:, 0], [0, 0.8, 0, 1.2, -0.5], atol=0.01)
    assert np.sqrt(linear.noise_variance_) == pytest.approx(NOISE, rel=0.15)


def test_noise_free_simulation_reproduces_its_data():
    u, y = linear_system(noise=0.0)
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), noise_variance=1e-8)
    model.fit(u, y)
    u, y = linear_system(seed=1, noise=0.0)
    assert_allclose(model.predict(u, y_init=y[:2]), y, atol=1e-3)


def test_free_run_std_of_a_linear_system(linear):
    """The spread of simulations with the true noise matches the predicted std."""
    u, _ = linear_system(60, seed=5)
    y_init = np.zeros(2)
    mean, std = linear.predict(u, y_init=y_init, return_std=True)
    assert_array_equal(std[:2], 0.0)
    rng = np.random.default_rng(0)
    n_runs = 2000
    runs = np.zeros((n_runs, 60))
    for t in range(2, 60):
        runs[:, t] = 1.2 * runs[:, t - 1] - 0.5 * runs[:, t - 2] + 0.8 * u[t - 1, 0]
        runs[:, t] += NOISE * rng.normal(size=n_runs)
    # 300 samples leave the noise uncertain by 4 % and the coefficients a little
    assert_allclose(std[3:], runs.std(axis=0)[3:], rtol=0.2)
    assert (np.abs(mean - runs.mean(axis=0)) <= 4 * std).all()


@pytest.mark.parametrize("return_std", [False, True])
def test_horizons(fitted, return_std):
    """One step is horizon 1; a horizon beyond the record is the free run."""
    u, y = nonlinear_system(60, seed=2)

    def predict(**arguments):
        result = fitted.predict(u, return_std=return_std, **arguments)
        return np.array(result if return_std else [result])

    assert_allclose(predict(y=y, horizon=1), predict(y=y), rtol=1e-12)
    free = predict(y_init=y[:3])
    assert_allclose(predict(y=y, horizon=100), free, rtol=1e-9, atol=1e-12)
    assert_allclose(predict(y=y, horizon=None), free, rtol=1e-12)
    two = predict(y=y, horizon=2)
    for t in (10, 59):
        window = slice(t - 4, t - 1)
        short = fitted.predict(
            u[t - 1 : t + 1],
            y_init=y[window],
            X_init=u[window],
            return_std=return_std,
        )
        assert_allclose(two[:, t], np.array(short if return_std else [short])[:, -1])


def test_horizon_one_agrees_with_the_recursion(fitted):
    """The vectorised pass and the row-by-row one are the same network."""
    u, y = nonlinear_system(50, seed=3)
    mean, std = fitted.predict(u, y, return_std=True)
    for t in (3, 20, 49):
        start = slice(t - 3, t)
        one, one_std = fitted.predict(
            u[t : t + 1], y_init=y[start], X_init=u[start], return_std=True
        )
        assert_allclose([one[0], one_std[0]], [mean[t], std[t]], rtol=1e-9)


def test_rows_of_the_initialisation(fitted):
    u, y = nonlinear_system(50, seed=3)
    for rows in (3, 7):
        simulated = fitted.predict(u, y_init=y[:rows])
        assert_array_equal(simulated[:rows], y[:rows])
    assert_array_equal(fitted.predict(u, y)[:3], y[:3])
    before = fitted.predict(u[7:], y_init=y[:7], X_init=u[:7])
    assert_allclose(before, simulated[7:], rtol=1e-12)


def test_start_from_the_training_mean(fitted):
    u, y = nonlinear_system()
    free = fitted.predict(u)
    mean_u, mean_y = np.tile(u.mean(axis=0), (3, 1)), np.full(3, y.mean())
    assert_allclose(free, fitted.predict(u, y_init=mean_y, X_init=mean_u), rtol=1e-9)
    # a stable system forgets where it started
    assert_allclose(free[50:], fitted.predict(u, y_init=y[:3])[50:], atol=1e-6)


def test_autoregression():
    """An oscillation without input: predicted from its own past, forecast beyond."""
    t = np.arange(200)
    y = np.sin(0.3 * t) + 0.01 * np.random.default_rng(0).normal(size=200)
    model = SparseBayesNARXRegressor(output_lags=2, hidden_layer_sizes=(), reg_lambda=1)
    model.fit(None, y)
    assert model.n_features_in_ == 0
    assert list(model.lag_relevance_) == ["y(t-1)", "y(t-2)"]
    assert np.std((model.predict(None, y) - y)[2:]) < 0.05
    forecast = model.predict(np.empty((20, 0)), y_init=y[-2:], X_init=np.empty((2, 0)))
    assert_allclose(forecast, np.sin(0.3 * (200 + np.arange(20))), atol=0.2)
    with pytest.raises(ValueError, match=r"X must not be None.*\(n_rows, 0\)"):
        model.predict(None, y_init=y[:2])


@pytest.mark.parametrize("record", first_by_default(range(4)))
def test_a_linear_model_does_not_depend_on_the_seed(record):
    """From zero weights least squares reach one optimum; two of five lags are true."""
    rng = np.random.default_rng(record)
    u, y = rng.standard_normal((300, 1)), np.zeros(300)
    for t in range(2, 300):
        noise = 0.02 * rng.standard_normal()
        y[t] = 0.995 * y[t - 1] - 0.25 * y[t - 2] + u[t - 1, 0] + noise
    model = SparseBayesNARXRegressor(5, 5, hidden_layer_sizes=())
    models = [clone(model).set_params(random_state=k).fit(u, y) for k in range(8)]
    for other in models[1:]:
        assert_array_equal(other.coefs_[0], models[0].coefs_[0])
        assert_array_equal(other.history_["objective"], models[0].history_["objective"])
    kept = {name for name, value in models[0].lag_relevance_.items() if value > 0.0}
    assert kept >= {"x0(t-1)", "y(t-1)", "y(t-2)"}
    # four standard errors of a standard deviation from 295 rows
    assert np.sqrt(models[0].noise_variance_) == pytest.approx(0.02, rel=0.17)


def test_several_inputs_and_outputs():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(400, 2))
    Y = np.zeros((400, 2))
    for t in range(1, 400):
        Y[t, 0] = 0.5 * Y[t - 1, 0] + 0.3 * Y[t - 1, 1] + u[t, 0]
        Y[t, 1] = 0.4 * Y[t - 1, 1] + np.tanh(u[t, 1])
    Y = 100 + 10 * Y + 0.1 * rng.normal(size=Y.shape)
    model = SparseBayesNARXRegressor(1, 1, random_state=0).fit(u, Y)
    assert "y1(t-1)" in model.lag_relevance_
    for arguments in ({"y": Y}, {"y": Y, "horizon": 3}, {"y_init": Y[:4]}):
        mean, std = model.predict(u, **arguments, return_std=True)
        assert mean.shape == std.shape == Y.shape
        assert_allclose(mean, model.predict(u, **arguments), rtol=1e-12)
    assert model.score(u, Y, horizon=None) > 0.99


def test_sessions_are_not_joined():
    records = [nonlinear_system(100, seed=seed) for seed in (0, 1, 2)]
    u = np.concatenate([u for u, _ in records])
    y = np.concatenate([y + 5 * k for k, (_, y) in enumerate(records)])
    sessions = np.repeat(["a", "b", "c"], 100)
    model = SparseBayesNARXRegressor(2, 2, random_state=0).fit(u, y, sessions=sessions)
    together = model.predict(u, y, sessions=sessions, horizon=None)
    for name in "abc":
        rows = sessions == name
        alone = model.predict(u[rows], y[rows], horizon=None)
        assert_allclose(together[rows], alone, rtol=1e-12)
        assert_array_equal(together[rows][:2], y[rows][:2])
    # without y every session starts anew from the training mean
    free = model.predict(u, sessions=sessions)
    assert_allclose(free[100:200], model.predict(u[100:200]), rtol=1e-12)


def test_gaps_drop_only_the_windows_that_touch_them(fitted):
    u, y = nonlinear_system(80, seed=4)
    complete = fitted.predict(u, y)
    gap_y, gap_u = y.copy(), u.copy()
    gap_y[30] = np.nan
    gap_u[50] = np.nan
    predicted = fitted.predict(gap_u, gap_y)
    missing = np.zeros(80, dtype=bool)
    missing[31:34] = True  # lags 1 to 3 of y
    missing[50:54] = True  # lags 0 to 3 of u
    assert_array_equal(np.isnan(predicted), missing)
    assert_allclose(predicted[~missing], complete[~missing], rtol=1e-12)


def test_fit_leaves_gaps_out():
    u, y = nonlinear_system(300)
    y[100:110] = np.nan
    u[200] = np.nan
    model = SparseBayesNARXRegressor(2, 2, n_restarts=2, random_state=0).fit(u, y)
    assert model.score(u, y) > 0.99
    clean = np.r_[0:98, 112:198, 203:300]
    sessions = np.r_[np.zeros(98), np.ones(86), np.full(97, 2)]
    assert np.isfinite(model.predict(u[clean], y[clean], sessions=sessions)).all()


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MissingInputWarning")
def test_missing_input_ends_a_free_run(fitted):
    u, y = nonlinear_system(60, seed=4)
    u[40] = np.nan
    free = fitted.predict(u, y_init=y[:3])
    assert np.isfinite(free[:40]).all()
    assert np.isnan(free[43:]).all()


def test_divergence_is_a_warning_and_nan():
    """An unstable linear model leaves every plausible range."""
    rng = np.random.default_rng(0)
    y = np.zeros(60)
    y[0] = 1e-3
    for t in range(1, 60):
        y[t] = 1.3 * y[t - 1]
    y += 1e-9 * rng.normal(size=60)
    model = SparseBayesNARXRegressor(output_lags=1, hidden_layer_sizes=())
    model.fit(None, y)
    with pytest.warns(DivergenceWarning, match="70 predicted rows diverged|diverged"):
        free = model.predict(np.empty((200, 0)), y_init=y[:1])
    first = np.flatnonzero(np.isnan(free))[0]
    assert np.isfinite(free[:first]).all() and np.isnan(free[first:]).all()
    assert np.abs(free[:first] - y.mean()).max() <= 100 * y.std()
    with pytest.warns(DivergenceWarning, match="diverged"):
        free, std = model.predict(np.empty((200, 0)), y_init=y[:1], return_std=True)
    assert_array_equal(np.isnan(std), np.isnan(free))


def test_score_leaves_the_initialisation_out(fitted):
    u, y = nonlinear_system(80, seed=6)
    shifted = y.copy()
    shifted[:3] += 100.0
    one_step = fitted.predict(u, y)
    expected = 1 - np.sum((y - one_step)[3:] ** 2) / np.sum((y[3:] - y[3:].mean()) ** 2)
    assert fitted.score(u, y) == pytest.approx(expected)
    assert fitted.score(u, y, horizon=None) < fitted.score(u, y)
    weight = np.arange(80) < 40
    half = fitted.score(u[:40], y[:40])
    assert fitted.score(u, y, sample_weight=weight) == pytest.approx(half)
    assert one_step_scorer(fitted, u, y) == pytest.approx(expected)
    free = fitted.predict(u, y_init=y[:3])
    rmse = simulation_rmse(y, free, n_initialization=3)
    assert simulation_scorer(fitted, u, y) == pytest.approx(-rmse)


@pytest.mark.parametrize("routing", [False, True])
def test_everything_is_reachable_through_a_pipeline(routing):
    u, y = nonlinear_system(200)
    sessions = np.repeat([0, 1], 100)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = SparseBayesNARXRegressor(2, 2, random_state=0, tol=1e-2)
        if routing:
            model.set_fit_request(sessions=True)
            model.set_score_request(sessions=True, horizon=True)
            model.set_predict_request(
                horizon=True, y_init=True, X_init=True, sessions=True, return_std=True
            )
            pipeline = make_pipeline(StandardScaler(), model)
            pipeline.fit(u, y, sessions=sessions)
            score = pipeline.score(u, y, sessions=sessions, horizon=None)
        else:
            pipeline = make_pipeline(StandardScaler(), model)
            pipeline.fit(u, y, sparsebayesnarxregressor__sessions=sessions)
            score = pipeline.score(u, y)
        assert score > 0.9
        free, std = pipeline.predict(u, y_init=y[:2], return_std=True)
        ahead = pipeline.predict(u, y=y, horizon=3)
        fitted, scaled = pipeline[-1], pipeline[0].transform(u)
        assert_allclose(free, fitted.predict(scaled, y_init=y[:2]))
        assert_allclose(ahead, fitted.predict(scaled, y, horizon=3))
        assert simulation_scorer(pipeline, u, y) < 0
        assert one_step_scorer(pipeline, u, y) > 0.9
    assert std.shape == y.shape


@pytest.mark.parametrize(
    "scoring", first_by_default([None, simulation_scorer, one_step_scorer])
)
def test_grid_search_over_the_strength_and_the_thresholds(scoring):
    u, y = nonlinear_system(200)
    grid = [
        {"reg_lambda": [1.0, 8.0]},
        {"kappa_variance": [1e-4], "kappa_weight": [1e-3, 1e-2]},
    ]
    search = GridSearchCV(
        SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=4, tol=1e-2, random_state=0),
        grid,
        scoring=scoring,
        cv=TimeSeriesSplit(3),
    )
    search.fit(u, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(u, y) > 0.95


def test_cross_validation_slices_sessions():
    u, y = nonlinear_system(200)
    sessions = np.repeat(np.arange(8), 25)
    search = GridSearchCV(
        SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=4, tol=1e-2, random_state=0),
        {"reg_lambda": [1.0, 4.0]},
        cv=GroupKFold(4),
    )
    with sklearn.config_context(enable_metadata_routing=True):
        search.estimator.set_fit_request(sessions=True)
        search.estimator.set_score_request(sessions=True)
        search.fit(u, y, sessions=sessions, groups=sessions)
    assert search.best_score_ > 0.95


def test_same_result_for_any_n_jobs_and_restarts_simulate_better():
    tanks = make_cascaded_tanks(400, random_state=0)
    model = SparseBayesNARXRegressor(
        3, 3, n_restarts=3, hidden_layer_sizes=5, tol=1e-2, random_state=0
    )
    alone = clone(model).fit(tanks.data, tanks.target)
    together = clone(model).set_params(n_jobs=2).fit(tanks.data, tanks.target)
    for a, b in zip(alone.coefs_, together.coefs_, strict=True):
        assert_array_equal(a, b)
    single = clone(model).set_params(n_restarts=1).fit(tanks.data, tanks.target)
    scores = [simulation_scorer(m, tanks.data, tanks.target) for m in (alone, single)]
    assert scores[0] >= scores[1]


def test_interrupt_with_warm_start_leaves_a_usable_model(interrupt_after):
    u, y = nonlinear_system(100)
    model = SparseBayesNARXRegressor(2, 2, warm_start=True, random_state=0)
    interrupt_after(2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(u, y)
    assert model.n_cycles_ == 2
    assert np.isfinite(model.predict(u, y)).all()
    assert len(model.lag_relevance_) == 5


def test_current_input_and_explicit_lags():
    u, y = linear_system(150)
    model = SparseBayesNARXRegressor(
        [1, 4], [2], include_current_input=False, hidden_layer_sizes=()
    )
    model.fit(u, y)
    assert list(model.lag_relevance_) == ["x0(t-1)", "x0(t-4)", "y(t-2)"]
    assert model.max_lag_ == 4


def test_names_from_data_frames():
    pandas = pytest.importorskip("pandas")
    u, y = linear_system(100, n_inputs=2)
    frame = pandas.DataFrame(u, columns=["pump", "valve"])
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=()).fit(frame, y)
    names = ["pump(t)", "pump(t-1)", "valve(t)", "valve(t-1)", "y(t-1)"]
    assert list(model.lag_relevance_) == names
    assert model.get_lagged_feature_names_out(["a", "b"])[0] == "a(t)"
    with pytest.raises(ValueError, match="input_features must hold 2 names"):
        model.get_lagged_feature_names_out(["a"])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["valve", "pump"]], y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_give_the_same_model(library):
    frames = pytest.importorskip(library)
    u, y = linear_system(100)
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=3, random_state=0)
    plain = clone(model).fit(u, y)
    framed = clone(model).fit(frames.DataFrame({"u": u[:, 0]}), frames.Series(y))
    for a, b in zip(plain.coefs_, framed.coefs_, strict=True):
        assert_array_equal(a, b)


def test_float32_input():
    u, y = nonlinear_system(200)
    model = SparseBayesNARXRegressor(2, 2, random_state=0)
    model.fit(u.astype(np.float32), y.astype(np.float32))
    assert model.score(u.astype(np.float32), y.astype(np.float32)) > 0.99


def test_constant_input_column():
    u, y = linear_system(100, n_inputs=2)
    u[:, 1] = 3.0
    with pytest.warns(UserWarning, match="Input x1 is constant"):
        model = SparseBayesNARXRegressor(2, 2, random_state=0).fit(u, y)
    assert model.lag_relevance_["x1(t)"] == model.lag_relevance_["x1(t-2)"] == 0.0
    assert not model.masks_[0][3:6].any()


def test_constant_output():
    u, _ = linear_system(50)
    with pytest.warns(UserWarning, match="y is constant"):
        model = SparseBayesNARXRegressor().fit(u, np.full(50, 2.0))
    assert_allclose(model.predict(u), 2.0)


def test_pickle(fitted):
    u, y = nonlinear_system(50, seed=7)
    copy = pickle.loads(pickle.dumps(fitted))
    for arguments in ({"y": y}, {"y_init": y[:3]}):
        assert_array_equal(
            copy.predict(u, **arguments, return_std=True),
            fitted.predict(u, **arguments, return_std=True),
        )


def test_arrays_are_never_written(fitted):
    u, y = nonlinear_system(60)
    copies = u.copy(), y.copy()
    u.flags.writeable = y.flags.writeable = False
    clone(fitted).set_params(tol=1e-1).fit(u, y)
    fitted.predict(u, y, horizon=2, return_std=True)
    fitted.predict(u, y_init=y[:3], return_std=True)
    assert_array_equal(u, copies[0])
    assert_array_equal(y, copies[1])


def bad_records():
    u, y = linear_system(30)
    nan_column = np.column_stack([u[:, 0], np.full(30, np.nan)])
    gappy = np.where(np.arange(30) % 3, y, np.nan)
    infinite = np.where(u > 1, np.inf, u)
    return {
        "too few samples": (u[:3], y[:3], {}, "longest lag, 3.*n_samples=3"),
        "all NaN column": (nan_column, y, {}, r"X must hold.*columns \[1\]"),
        "all NaN output": (u, np.full(30, np.nan), {}, "y must hold"),
        "infinite input": (infinite, y, {}, "X contains infinity"),
        "infinite output": (u, np.where(y > 0, np.inf, y), {}, "y contains infinity"),
        "1e300": (u * 1e300, y, {}, "X contains a value too large"),
        "1e300 output": (u, y * 1e300, {}, "y contains a value too large"),
        "lengths": (u[:-1], y, {}, r"X and y.*29 and 30\.$"),
        "signals as rows": (np.tile(u.T, (2, 1)), y, {}, r"2 and 30\. .* pass X\.T\.$"),
        "no y": (u, None, {}, "requires y"),
        "no window": (u, gappy, {}, "0 complete windows of 4 rows"),
        "sessions": (u, y, {"sessions": np.zeros(29)}, r"sessions.*\(30,\).*\(29,\)"),
        "short session": (
            u,
            y,
            {"sessions": np.arange(30) // 3},
            "session at least must be longer than .* 3; found 10 sessions of at most 3",
        ),
    }


def test_fragments_of_a_record_limit_nothing():
    """Nothing is learned of sessions that are not longer than the lags, and it is said.

    As of fragments between missing rows.
    """
    u, y = linear_system(300)
    sessions = np.r_[np.zeros(200), [1, 2, 2], np.full(97, 3)]
    model = SparseBayesNARXRegressor(hidden_layer_sizes=(), random_state=0)
    said = "2 of 4 .* the longest lag, 2, .* 3 of 300 rows, the rows 200 to 200, 201 to"
    with pytest.warns(SamplingWarning, match=said) as told:
        model.fit(u, y, sessions=sessions)
    assert [warning.filename for warning in told] == [__file__]
    alone = np.isin(sessions, [1, 2])
    others = clone(model).fit(u[~alone], y[~alone], sessions=sessions[~alone])
    assert model.max_lag_ == others.max_lag_ == 2
    assert_array_equal(model.predict(u, y), others.predict(u, y))


@pytest.mark.parametrize("case", bad_records())
def test_bad_records_are_named(case):
    X, y, arguments, message = bad_records()[case]
    with pytest.raises(ValueError, match=message):
        SparseBayesNARXRegressor(3, 3).fit(X, y, **arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"input_lags": -1}, "input_lags"),
        ({"input_lags": [0, 0]}, "input_lags"),
        ({"output_lags": [0]}, "output_lags.*at least 1"),
        ({"output_lags": [1.5]}, "output_lags"),
        ({"output_lags": "two"}, "output_lags"),
        (
            {"input_lags": 0, "output_lags": 0, "include_current_input": False},
            "no regressor",
        ),
        ({"reg_lambda": -1.0}, "reg_lambda"),
        ({"groups": "block"}, "groups"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        SparseBayesNARXRegressor(**parameters).fit(*linear_system(30))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda u, y: {"y_init": y[:0]}, "y_init must hold at least one row"),
        (
            lambda u, y: {"y_init": y[:2], "X_init": u[:2]},
            "y_init must have beside X_init at least max_lag_=3 rows; got 2",
        ),
        (lambda u, y: {"y_init": np.r_[y, y]}, "y_init.*at most the 30 rows.*got 60"),
        (lambda u, y: {"y_init": [0, np.nan, 0]}, "y_init.*NaN"),
        (lambda u, y: {"y_init": np.ones((3, 2))}, "y_init must hold 1 outputs"),
        (lambda u, y: {"y_init": y[:4], "X_init": u[:3]}, "X_init and y_init.*3 and 4"),
        (lambda u, y: {"X_init": u[:3]}, "X_init needs y_init"),
        (lambda u, y: {"y": y, "y_init": y[:3]}, "pass y, or y_init"),
        (lambda u, y: {"y": y[:-1]}, "X and y.*30 and 29"),
        (lambda u, y: {"y": y, "horizon": 0}, "horizon.*got 0"),
        (lambda u, y: {"y": y, "horizon": 1.5}, "horizon"),
        (lambda u, y: {"y": y, "sessions": [1]}, r"sessions.*\(30,\)"),
        (
            lambda u, y: {"y_init": y[:3], "sessions": np.repeat([0, 1], 15)},
            "y_init starts one session",
        ),
    ],
)
def test_bad_predictions_are_named(fitted, arguments, message):
    u, y = nonlinear_system(30)
    with pytest.raises(ValueError, match=message):
        fitted.predict(u, **arguments(u, y))


def test_failed_refit_keeps_the_old_fit(fitted):
    u, y = nonlinear_system(60)
    model = clone(fitted).fit(u, y)
    before = model.predict(u, y)
    with pytest.raises(ValueError, match="longest lag"):
        model.fit(np.arange(8.0).reshape(2, 4), np.ones(2))
    assert model.n_features_in_ == 1
    assert_array_equal(model.predict(u, y), before)


def test_nothing_to_score(fitted):
    u, y = nonlinear_system(30)
    with pytest.raises(ValueError, match="no row to score"):
        fitted.score(u[:3], y[:3])


def dead_times(n_samples=300, seed=0):
    """The valve acts after three rows, the pump at once; the third input does not."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=(n_samples, 3)), np.zeros(n_samples)
    for t in range(3, n_samples):
        y[t] = 0.5 * y[t - 1] + u[t - 3, 0] + np.tanh(u[t, 1])
        y[t] += NOISE * rng.normal()
    return pd.DataFrame(u, columns=["valve", "pump", "idle"]), y


BY_NAME = {"valve": np.array([3]), "pump": 1, "idle": []}


@pytest.fixture(scope="module")
def by_name():
    model = SparseBayesNARXRegressor(BY_NAME, {"y": (1,)}, random_state=0)
    return model.fit(*dead_times())


def test_lags_by_name_reach_every_prediction(by_name):
    names = ["valve(t-3)", "pump(t)", "pump(t-1)", "y(t-1)"]
    assert list(by_name.lag_relevance_) == names
    assert by_name.max_lag_ == 3
    u, y = dead_times(200, seed=1)
    one_step = by_name.predict(u, y)
    assert np.sqrt(np.mean((one_step - y)[3:] ** 2)) < 1.5 * NOISE
    free = by_name.predict(u, y_init=y[:3])
    assert np.sqrt(np.mean((free - y)[3:] ** 2)) < 2.0 * NOISE
    stream = by_name.stream(u[:3], y[:3])
    assert_allclose(stream.run(u[3:]), free[3:], rtol=1e-9, atol=1e-12)
    head, state = by_name.predict(u[:50], y_init=y[:3], return_state=True)
    tail = by_name.predict(u[50:], state=state)
    assert_allclose(np.concatenate([head, tail]), free, rtol=1e-9, atol=1e-12)
    # the idle input is not looked at: it may be missing
    unknown = u.assign(idle=np.nan)
    assert_array_equal(by_name.predict(unknown, y), one_step)
    drawn = by_name.sample_y(u, y_init=y[:3], n_samples=300)
    _, std = by_name.predict(u, y_init=y[:3], return_std=True)
    assert_allclose(drawn.std(axis=1)[10:].mean(), std[10:].mean(), rtol=0.1)


def test_lags_by_name_are_a_parameter_like_others(by_name):
    copied = clone(by_name)
    assert copied.input_lags.keys() == BY_NAME.keys()
    copied.set_params(warm_start=True).fit(*dead_times())
    assert_allclose(copied.coefs_[0], by_name.coefs_[0])
    copied.set_params(input_lags=BY_NAME | {"idle": 1})
    with pytest.raises(ValueError, match="Keep input_lags"):
        copied.fit(*dead_times())
    restored = pickle.loads(pickle.dumps(by_name))
    u, y = dead_times(50, seed=1)
    assert_array_equal(
        restored.predict(u, y_init=y[:3]), by_name.predict(u, y_init=y[:3])
    )


def test_lags_by_name_need_the_names_of_this_record():
    u, y = dead_times(50)
    model = SparseBayesNARXRegressor(BY_NAME)
    with pytest.raises(ValueError, match="not there: 'valve', 'pump', 'idle'.*'x0'"):
        model.fit(u.to_numpy(), y)
    Y = np.column_stack([y, y])
    model = SparseBayesNARXRegressor(1, {"y": 1})
    with pytest.raises(ValueError, match="not there: 'y'.*'y0', 'y1'"):
        model.fit(u, Y)
