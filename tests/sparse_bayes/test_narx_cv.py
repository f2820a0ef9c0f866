"""The dynamic model that chooses lags and strength of the prior by itself."""

import pickle
import statistics

import numpy as np
import pytest
import sklearn
from fitted_models import n_observations
from numpy.testing import assert_allclose, assert_array_equal
from search_cases import (
    CV,
    LAGS,
    SHARED,
    STRENGTHS,
    assert_same_ensemble,
    estimator,
    quietly,
    record,
    tanks,
)
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import SparseBayesNARXRegressor, SparseBayesNARXRegressorCV
from skbayesnn.metrics import simulation_scorer
from skbayesnn.sparse_bayes.learning.selection import not_clearly_worse, stretches


@pytest.fixture(scope="module")
def fitted():
    return quietly(estimator(), *tanks())


def test_defaults_on_a_small_record():
    """All but the candidates and the cycles, which would take long."""
    u, y = tanks(300)
    model = SparseBayesNARXRegressorCV(
        (3, 6, 100), (3.0, 30.0), max_cycles=8, random_state=0
    )
    quietly(model, u, y)
    assert_array_equal(model.cv_results_["lags"], [3, 6])
    assert model.cv_results_["test_error"].shape == (2, 8)
    assert len(model.estimators_) == 6
    assert model.score(u, y, horizon=None) > 0.9


def test_results(fitted):
    results = fitted.cv_results_
    names = ["reg_lambda", "lag", "test_error", "kept", "lags", "objective"]
    assert list(results) == names
    assert all(isinstance(values, np.ndarray) for values in results.values())
    assert_array_equal(results["reg_lambda"], STRENGTHS)
    assert_array_equal(results["lags"], LAGS)
    assert results["test_error"].shape == (2, CV)
    assert results["objective"].shape == (2, 2)
    chosen = np.array(LAGS)[results["objective"].argmin(axis=1)]
    assert_array_equal(results["lag"], chosen)
    kept = not_clearly_worse(results["test_error"])
    assert_array_equal(results["kept"], kept)


def plain(model, lag, strength):
    """The model that the search fits for one candidate."""
    shared = {name: getattr(model, name) for name in SHARED}
    seed = model.estimators_[0].random_state
    return SparseBayesNARXRegressor(
        lag,
        lag,
        reg_lambda=strength,
        random_state=seed,
        selection="evidence",
        **shared,
    )


def test_objective_is_that_of_plain_fits(fitted):
    u, y = tanks()
    for k, strength in enumerate(STRENGTHS):
        for j, lag in enumerate(LAGS):
            model = quietly(plain(fitted, lag, strength), u, y)
            found = model.history_["objective_pruned"][-1] / (len(y) - lag)
            expected = fitted.cv_results_["objective"][k, j]
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        dict(focus="simulation"),
        dict(focus="prediction"),
        dict(focus="prediction", n_restarts=2),
        dict(initial_conditions="estimated"),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_sessions", [1, 2])
def test_errors_of_the_folds(options, n_sessions):
    """Recomputed by fits that never get to see the outputs of a stretch."""
    u, y = record(120)
    number = np.arange(120) * n_sessions // 120
    length = 120 // n_sessions
    fold = np.tile(np.arange(length) * CV // length, n_sessions)
    cv = quietly(estimator(**options), u, y, sessions=number)
    for k, strength in enumerate(STRENGTHS):
        lag = int(cv.cv_results_["lag"][k])
        for held_out in range(CV):
            seen = np.where(fold == held_out, np.nan, y)
            model = quietly(plain(cv, lag, strength), u, seen, sessions=number)
            horizon = 1 if model.focus == "prediction" else None
            path = model.predict(u, y, horizon=horizon, sessions=number)
            scored = (fold == held_out) & (np.arange(120) % length >= lag)
            # the outputs' variance where the fit has all it needs
            windows = np.array(
                [
                    t % length >= lag and np.isfinite(seen[t - lag : t + 1]).all()
                    for t in range(120)
                ]
            )
            expected = np.mean((path - y)[scored] ** 2) / np.var(y[windows])
            found = cv.cv_results_["test_error"][k, held_out]
            assert found == pytest.approx(expected, rel=1e-6)


def naive_close(errors):
    means = [statistics.fmean(row) for row in errors]
    best = means.index(min(means))
    close = []
    for k, row in enumerate(errors):
        worse = [a - b for a, b in zip(row, errors[best], strict=True)]
        bound = 2.0 * statistics.stdev(worse) / len(worse) ** 0.5
        close.append(k >= best and statistics.fmean(worse) <= bound)
    return close


@pytest.mark.parametrize("n_folds", [2, 8])
@pytest.mark.parametrize("seed", range(5))
def test_not_clearly_worse(seed, n_folds):
    """The best, and of the stronger ones those that are not worse for sure."""
    rng = np.random.default_rng(seed)
    errors = 1.0 + 0.2 * rng.standard_normal((8, n_folds))
    errors += np.linspace(0.0, 0.5, 8)[rng.permutation(8), None]
    kept = not_clearly_worse(errors)
    assert_array_equal(kept, naive_close(errors.tolist()))
    best = errors.mean(axis=1).argmin()
    assert kept[best] and not kept[:best].any()


def test_equal_candidates_stay():
    assert not_clearly_worse(np.ones((3, 4))).all()
    assert not_clearly_worse(np.arange(4.0)[None]).all()


@pytest.mark.parametrize("lengths", [[7], [4, 9, 6], [3, 3]])
@pytest.mark.parametrize("n_stretches", [2, 3])
def test_stretches(lengths, n_stretches):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    found = np.split(stretches(starts, n_stretches), starts[1:-1])
    for number, length in zip(found, lengths, strict=True):
        assert len(number) == length
        assert (np.diff(number) >= 0).all()
        counts = np.bincount(number, minlength=n_stretches)
        assert len(counts) == n_stretches and np.ptp(counts) <= 1


@pytest.mark.parametrize(
    ("sessions", "expected"),
    # two windows a stretch: 60 rows in 3 stretches hold lags up to 9
    [([60], [5, 9]), ([60, 90], [5, 9]), ([84, 66], [5, 9, 10]), ([40, 110], [5])],
    ids=str,
)
def test_lags_too_long_for_a_stretch_are_left_out(sessions, expected):
    n = sum(sessions)
    u, y = record(n)
    ids = np.repeat(np.arange(len(sessions)), sessions)
    model = estimator((10, 9, 5), (30.0,), n_estimators=1, max_cycles=1)
    quietly(model, u, y, sessions=ids)
    assert_array_equal(model.cv_results_["lags"], expected)


def test_no_lag_is_short_enough():
    u, y = record(35)
    with pytest.raises(ValueError, match=r"cv=3 .*lag of 5 .*36 rows.*n_samples=35"):
        estimator((10, 5)).fit(u, y)
    u, y = record(36)
    assert quietly(estimator((10, 5)), u, y).max_lag_ == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(lags=()), "lags"),
        (dict(lags=(0, 2)), "lags"),
        (dict(lags=(2, 2)), "lags"),
        (dict(lags=(1.5,)), "lags"),
        (dict(lags=3), "lags"),
        (dict(reg_lambdas=()), "reg_lambdas"),
        (dict(reg_lambdas=(-1.0,)), "reg_lambdas"),
        (dict(reg_lambdas=(1.0, np.nan)), "reg_lambdas"),
        (dict(reg_lambdas=(np.inf,)), "reg_lambdas"),
        (dict(reg_lambdas=("strong",)), "reg_lambdas"),
        (dict(cv=1), "cv"),
        (dict(n_estimators=0), "n_estimators"),
        (dict(focus="both"), "focus"),
        (dict(horizon_schedule=(2, 1)), "horizon_schedule"),
        (dict(hidden_layer_sizes=(0,)), "hidden_layer_sizes"),
    ],
    ids=str,
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(*record(60))


def test_a_strength_given_twice_counts_once():
    u, y = record(60)
    twice = quietly(estimator((2,), (30.0, 3.0, 30.0)), u, y)
    assert_same_ensemble(twice, quietly(estimator((2,), (3.0, 30.0)), u, y))


def test_constant_output():
    u, _ = record(60)
    with pytest.warns(UserWarning, match="y is constant"):
        model = quietly(estimator(), u, np.full(60, 2.0))
    assert_allclose(model.predict(u), 2.0)
    assert_array_equal(model.cv_results_["test_error"], 0.0)


def test_ensemble(fitted):
    u, y = tanks()
    kept = fitted.cv_results_["kept"]
    errors = fitted.cv_results_["test_error"].mean(axis=1)
    assert len(fitted.estimators_) == 2
    assert_allclose(fitted.estimator_weights_, 0.5)
    best = fitted.estimators_[0]
    assert fitted.reg_lambda_ == best.reg_lambda == STRENGTHS[errors.argmin()]
    assert {m.reg_lambda for m in fitted.estimators_} == set(np.array(STRENGTHS)[kept])
    for member in fitted.estimators_:
        lag = fitted.cv_results_["lag"][STRENGTHS.index(member.reg_lambda)]
        assert member.input_lags == member.output_lags == lag
    assert fitted.max_lag_ == max(m.max_lag_ for m in fitted.estimators_)
    for arguments in (dict(y=y), dict(y_init=y[:10]), dict(y=y, horizon=5)):
        members = [m.predict(u, **arguments) for m in fitted.estimators_]
        found = fitted.predict(u, **arguments)
        rows = slice(fitted.max_lag_, None)
        assert_allclose(found[rows], np.mean(members, axis=0)[rows], rtol=1e-10)


def test_autoregression():
    t = np.arange(150)
    y = np.sin(0.4 * t) + 0.05 * np.random.default_rng(0).standard_normal(150)
    model = quietly(estimator((1, 3)), None, y)
    assert model.n_features_in_ == 0
    assert set(model.lag_relevance_) <= {"y(t-1)", "y(t-2)", "y(t-3)"}
    assert model.score(None, y) > 0.9
    assert model.predict(np.empty((20, 0)), y_init=y[:5]).shape == (20,)


def test_several_outputs():
    rng = np.random.default_rng(0)
    U, Y = rng.standard_normal((150, 2)), np.zeros((150, 2))
    for t in range(1, 150):
        Y[t, 0] = 0.5 * Y[t - 1, 0] + 0.3 * Y[t - 1, 1] + U[t, 0]
        Y[t, 1] = 0.4 * Y[t - 1, 1] + np.tanh(U[t - 1, 1])
    Y = [100, 0] + [10, 1] * Y
    model = quietly(estimator((1, 2), max_cycles=30), U, Y)
    assert model.n_outputs_ == 2 and len(model.estimators_[0].noise_variance_) == 2
    mean, std = model.predict(U, y_init=Y[:2], return_std=True)
    assert mean.shape == std.shape == Y.shape
    assert model.score(U, Y, horizon=None) > 0.9
    # one column of two dimensions stays one
    one = quietly(estimator((1,), (3.0,), n_estimators=1), U, Y[:, :1])
    assert one.predict(U, Y[:, :1]).shape == (150, 1)


def test_sessions():
    u, y = record(160)
    sessions = np.repeat([0, 1], 80)
    y = y + 3.0 * sessions
    model = quietly(estimator(), u, y, sessions=sessions)
    joined = quietly(estimator(), u, y)
    coefs, joined_coefs = (m.estimators_[0].coefs_[0] for m in (model, joined))
    assert np.abs(coefs - joined_coefs).max() > 0
    for arguments in (dict(), dict(horizon=3), dict(horizon=None)):
        together = model.predict(u, y, sessions=sessions, **arguments)
        for number in (0, 1):
            rows = sessions == number
            alone = model.predict(u[rows], y[rows], **arguments)
            assert_allclose(together[rows], alone, rtol=1e-12)
    lost = [n_observations(m) + 2 * m.max_lag_ for m in model.estimators_]
    assert lost == [160] * len(lost)


def test_missing_values():
    u, y = record(160)
    u[[50, 51]], y[[20, 100, 130]] = np.nan, np.nan
    model = quietly(estimator(), u, y)
    assert np.isfinite(model.cv_results_["test_error"]).all()
    assert (model.cv_results_["test_error"] < 10.0).all()
    assert model.score(u, y) > 0.8


def test_data_frames(frames):
    u, y = record(60)
    frame, series = frames.DataFrame({"valve": u[:, 0]}), frames.Series(y)
    model = quietly(estimator((2,), (3.0,)), frame, series)
    assert list(model.feature_names_in_) == ["valve"]
    first = model.estimators_[0]
    assert first.get_lagged_feature_names_out()[0] == "valve(t)"
    assert list(model.lag_relevance_)[0] == "valve(t)"
    plain = quietly(estimator((2,), (3.0,)), u, y)
    assert_same_ensemble(model, plain)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(
            frame.rename({"valve": "pump"})
            if frames.__name__ == "polars"
            else frame.rename(columns={"valve": "pump"}),
            series,
        )
    # names are forgotten with the data that had them
    quietly(model, u, y)
    assert not hasattr(model, "feature_names_in_")
    assert list(model.lag_relevance_)[0] == "x0(t)"


def test_refit_forgets_what_the_new_model_lacks():
    u, y = record(60)
    model = quietly(estimator((2,), (3.0,)), u, y)
    assert model.estimators_[0].skip_coef_.shape == (5, 1)
    quietly(model.set_params(skip_connection=False), u, y)
    assert not hasattr(model.estimators_[0], "skip_coef_")
    assert set(vars(model)) == set(
        vars(quietly(estimator((2,), (3.0,), skip_connection=False), u, y))
    )


def test_parameters_reach_the_members():
    u, y = record(60)
    given = dict(
        n_restarts=2,
        include_current_input=False,
        focus="prediction",
        hidden_layer_sizes=(2, 2),
        skip_connection=False,
        activation="relu",
        groups="element",
        kappa_variance=1e-5,
        kappa_weight=1e-2,
        max_cycles=3,
        horizon_schedule=(1, 4),
        initial_conditions="estimated",
    )
    model = quietly(estimator((2,), (3.0,), **given), u, y)
    for member in model.estimators_:
        assert given.items() <= member.get_params().items()
    assert estimator(**given).get_params().items() >= given.items()


@pytest.mark.parametrize("random_state", [0, "generator"])
def test_reproducible_for_any_n_jobs(random_state):
    u, y = record(60)

    def search(**options):
        seed = np.random.RandomState(3) if random_state == "generator" else 0
        model = estimator((1, 2), (3.0, 30.0), max_cycles=3, **options)
        return quietly(model.set_params(random_state=seed), u, y)

    alone = search()
    assert_same_ensemble(alone, search())
    assert_same_ensemble(alone, search(n_jobs=2))
    other = quietly(estimator((1, 2), random_state=1, max_cycles=3), u, y)
    assert (
        np.abs(other.cv_results_["objective"] - alone.cv_results_["objective"]).max()
        > 0
    )


def test_copies_predict_the_same(fitted):
    u, y = tanks()
    copy = pickle.loads(pickle.dumps(fitted))
    for arguments in (dict(y=y), dict(y_init=y[:1]), dict(y_init=y[:10])):
        assert_array_equal(
            copy.predict(u, **arguments, return_std=True),
            fitted.predict(u, **arguments, return_std=True),
        )
    new = clone(fitted)
    assert new.get_params() == fitted.get_params()
    assert not [name for name in vars(new) if name.endswith("_")]


def test_arrays_are_never_written():
    u, y = record(60)
    u[50], y[40] = np.nan, np.nan
    sessions = np.repeat([0, 1], 30)
    copies = u.copy(), y.copy()
    for array in (u, y, sessions):
        array.flags.writeable = False
    quietly(estimator((2,)), u, y, sessions=sessions)
    assert_array_equal(u, copies[0])
    assert_array_equal(y, copies[1])


@pytest.mark.parametrize("failure", ["lengths", "interrupt"])
def test_old_fit_survives(fitted, interrupt_after, failure):
    u, y = tanks()
    model = pickle.loads(pickle.dumps(fitted))
    before, attributes = model.predict(u, y_init=y[:4]), dict(vars(model))
    if failure == "lengths":
        with pytest.raises(ValueError, match="n_samples=20"):
            model.set_params(lags=(30,)).fit(u[:20], y[:20])
        model.set_params(lags=LAGS)
    else:
        interrupt_after(40)
        with pytest.raises(KeyboardInterrupt):
            quietly(model, u[:100], y[:100])
    assert vars(model) == attributes
    assert_array_equal(model.predict(u, y_init=y[:4]), before)


def test_verbose_prints_a_line_a_fit(capsys):
    u, y = record(60)
    model = quietly(estimator((1, 2), n_estimators=4, verbose=True, max_cycles=2), u, y)
    lines = capsys.readouterr().out.splitlines()
    n_further = len(model.estimators_) - model.cv_results_["kept"].sum()
    assert len(lines) == 2 * 2 + 2 * CV + n_further
    assert sum(", fold 2: error" in line for line in lines) == 2
    objective = model.cv_results_["objective"][0, 0]
    assert lines[0].startswith(f"lags 1, reg_lambda 3: objective {objective:.4g}")
    quietly(estimator((1,), max_cycles=2), u, y)
    assert not capsys.readouterr().out


@pytest.mark.parametrize("routing", [False, True])
def test_in_a_pipeline(routing):
    u, y = record(120)
    sessions = np.repeat([0, 1], 60)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = estimator((2,))
        key = "sessions" if routing else "sparsebayesnarxregressorcv__sessions"
        if routing:
            model.set_fit_request(sessions=True)
            model.set_score_request(sessions=True, horizon=True)
            model.set_predict_request(y_init=True, horizon=True, return_std=True)
        pipeline = make_pipeline(StandardScaler(), model)
        quietly(pipeline, u, y, **{key: sessions})
        # two sessions lose two rows each
        assert n_observations(pipeline[-1].estimators_[0]) == 116
        if routing:
            assert pipeline.score(u, y, sessions=sessions, horizon=None) > 0.7
        free, std = pipeline.predict(u, y_init=y[:1], return_std=True)
        assert free[0] == y[0] and (std[1:] > 0).all()
        ahead = pipeline.predict(u, y=y, horizon=3)
        scaled = pipeline[0].transform(u)
        assert_allclose(ahead, pipeline[-1].predict(scaled, y, horizon=3))
        assert -simulation_scorer(pipeline, u, y) < 0.7 * y.std()


def test_grid_search_over_the_units():
    u, y = record(150)
    search = GridSearchCV(
        estimator((2,), cv=2),
        {"hidden_layer_sizes": [(), 2]},
        scoring=simulation_scorer,
        cv=TimeSeriesSplit(2),
    )
    quietly(search, u, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and (scores > -y.std()).all()
    # six cycles and, beside the right prior, one that is too strong
    assert search.best_estimator_.score(u, y) > 0.7
