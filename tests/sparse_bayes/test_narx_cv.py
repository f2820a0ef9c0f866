"""The dynamic model that chooses lags and strength of the prior by itself."""

import itertools
import pickle
import re
import statistics

import numpy as np
import pandas as pd
import pytest
import sklearn
from fitted_models import n_observations
from grids import each_value_once, mostly_pandas
from numpy.testing import assert_allclose, assert_array_equal
from search_cases import (
    CV,
    LAGS,
    SHARED,
    STRENGTHS,
    assert_same_ensemble,
    errors_by_stretch,
    estimator,
    integrator,
    quietly,
    record,
    start_seeds,
    tanks,
)
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import SparseBayesNARXRegressor, SparseBayesNARXRegressorCV
from skbayesnn._clock import Clock
from skbayesnn.metrics import simulation_scorer
from skbayesnn.sparse_bayes.search import candidate_scores, samples, searched_ensemble
from skbayesnn.sparse_bayes.search.candidates import Candidate
from skbayesnn.sparse_bayes.search.results import COLUMNS


@pytest.fixture(scope="module")
def fitted():
    return quietly(estimator(), *tanks())


def test_the_score_is_of_the_focus_of_the_fit(fitted):
    model = pickle.loads(pickle.dumps(fitted))
    expected = model.score(*tanks(), horizon=None)
    assert model.set_params(focus="prediction").score(*tanks()) == expected


def lagging(n_rows, seed):
    """A curved valve acts on a level after 14 rows; a disturbance acts at once."""
    rng = np.random.default_rng(seed)
    steps = np.repeat(rng.uniform(-1.0, 1.0, n_rows // 6 + 6), 6)
    valve, heat = steps[14 : 14 + n_rows], rng.standard_normal(n_rows)
    level = np.zeros(n_rows)
    for t in range(1, n_rows):
        effect = np.exp(steps[t - 1]) - 1.0 + 0.3 * heat[t - 1]
        level[t] = 0.8 * level[t - 1] + 0.2 * effect
    level += 0.01 * rng.standard_normal(n_rows)
    return pd.DataFrame({"valve": valve, "heat": heat}), level


@pytest.mark.slow
def test_lags_of_the_search_begin_behind_a_dead_time():
    settings = dict(hidden_layer_sizes=3, n_estimators=2, max_cycles=15, random_state=0)

    def search(lags):
        model = SparseBayesNARXRegressorCV(lags, (6.0,), **settings)
        return quietly(model, *lagging(400, 0))

    late, at_once = search("auto"), search((5,))
    results = late.cv_results_
    (time,) = set(results["dead_time"][results["kept"]].tolist())
    assert time <= 15 < time + 5
    assert f"behind a dead time of {time} rows" in late.summary_
    for member in late.estimators_:
        lags = member.input_lags_
        assert lags["valve"][0] in (time, time + 1) and lags["heat"][0] in (0, 1)
        assert len(lags["valve"]) == len(lags["heat"])
    # lags that were asked for begin at once
    assert not at_once.cv_results_["dead_time"].any()
    u, level = lagging(300, 1)
    errors = [
        np.sqrt(np.mean((model.predict(u, y_init=level[:40]) - level)[40:] ** 2))
        for model in (late, at_once)
    ]
    assert errors[0] < 0.2 * errors[1]


@pytest.mark.slow
def test_defaults_on_a_small_record():
    """All but the candidates and the cycles, which would take long."""
    u, y = tanks(300)
    model = SparseBayesNARXRegressorCV(
        (3, 6, 100), (3.0,), max_cycles=8, random_state=0
    )
    quietly(model, u, y)
    assert set(model.cv_results_["lag"][2:]) == {3, 6}
    assert errors_by_stretch(model.cv_results_).shape[1] == 8
    assert model.estimator_weights_.sum() == pytest.approx(1.0)
    assert model.score(u, y, horizon=None) > 0.9


def test_results(fitted):
    results = fitted.cv_results_
    names = ["model", "fitted_to", "lag", "reg_lambda", "include_current_input"]
    errors = [f"split{k}_test_error" for k in range(CV)]
    errors += ["mean_test_error", "drift", "n_folds"]
    assert list(results) == [*names, "output", "dead_time", *errors, "kept"]
    assert not results["dead_time"].any()
    n_rows = len(results["model"])
    assert pd.DataFrame(results).shape == (n_rows, len(results))
    assert list(results["model"][:2]) == ["mean", "last value"]
    assert set(results["model"][2:]) == {"linear", "network"}
    errors = errors_by_stretch(results)
    assert errors.shape == (n_rows, CV)
    assert_array_equal(results["n_folds"], np.isfinite(errors).sum(axis=1))
    for row, mean in zip(errors, results["mean_test_error"], strict=True):
        expected = statistics.geometric_mean(row[np.isfinite(row)])
        assert mean == pytest.approx(expected, rel=1e-12)
    # every candidate stands there once
    keys = list(zip(*(results[n] for n in names[:4]), strict=True))[2:]
    assert len(set(keys)) == len(keys)
    # all lags, the linear ones on all folds
    linear = results["model"] == "linear"
    assert_array_equal(np.sort(results["lag"][linear]), LAGS)
    assert (results["n_folds"][linear] == CV).all()
    networks = results["fitted_to"] == "simulation"
    grid = zip(results["lag"][networks], results["reg_lambda"][networks], strict=True)
    assert set(grid) == {(lag, s) for lag in LAGS for s in STRENGTHS}


def test_the_choice_has_the_least_error(fitted):
    results = fitted.cv_results_
    full = results["n_folds"] == CV
    full[:2] = False
    least = results["mean_test_error"][full].min()
    kept = results["kept"]
    assert results["mean_test_error"][2] == least and kept[2]
    assert (results["mean_test_error"][kept] <= 1.4 * least).all()
    assert len(set(results["model"][kept])) == 1
    first = fitted.estimators_[0]
    assert first.reg_lambda == results["reg_lambda"][2] == fitted.reg_lambda_
    assert first.input_lags == results["lag"][2]
    for number in (least, results["mean_test_error"][0]):
        assert f"{number:.3g}" in fitted.summary_


def plain(model, candidate, seed):
    """The model that the search fits for one row of its results."""
    shared = {name: getattr(model, name) for name in SHARED}
    kind, fitted_to, lag, strength, current_input, output, dead_time = candidate
    assert dead_time == 0
    shared["focus"] = str(fitted_to)
    if kind == "linear":
        shared["hidden_layer_sizes"] = ()
        # it is there after fewer
        shared["max_cycles"] = 5
    return SparseBayesNARXRegressor(
        int(lag),
        int(lag),
        include_current_input=bool(current_input),
        output=str(output),
        reg_lambda=float(strength),
        random_state=seed,
        selection="evidence",
        **shared,
    )


@pytest.mark.parametrize(
    "options",
    [
        dict(focus="simulation"),
        pytest.param(dict(focus="prediction"), marks=pytest.mark.slow),
        pytest.param(dict(focus="prediction", n_restarts=2), marks=pytest.mark.slow),
        pytest.param(dict(initial_conditions="estimated"), marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_sessions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_errors_of_the_folds(options, n_sessions, monkeypatch):
    """Recomputed by fits that never get to see the outputs of a stretch."""
    monkeypatch.setattr(candidate_scores, "SETTLED", np.inf)
    u, y = record(120)
    number = np.arange(120) * n_sessions // 120
    length = 120 // n_sessions
    fold = np.tile(np.arange(length) * CV // length, n_sessions)
    cv = quietly(estimator(**options), u, y, sessions=number)
    results = cv.cv_results_
    columns = [results[name][2:] for name in COLUMNS]
    seeds = start_seeds(4)
    horizon = 1 if cv.focus == "prediction" else None
    for row, candidate in enumerate(zip(*columns, strict=True), start=2):
        for held_out in np.flatnonzero(np.isfinite(errors_by_stretch(results)[row])):
            seen = np.where(fold == held_out, np.nan, y)
            model = plain(cv, candidate, seeds[held_out])
            quietly(model, u, seen, sessions=number)
            path = model.predict(u, y, horizon=horizon, sessions=number)
            behind = np.arange(120) % length
            scored = (fold == held_out) & (behind >= model.max_lag_)
            expected = np.sqrt(np.mean((path - y)[scored] ** 2)) / np.std(y)
            found = errors_by_stretch(results)[row, held_out]
            assert found == pytest.approx(min(expected, 3.0), rel=1e-6)


@pytest.mark.parametrize(
    *each_value_once(focus=["prediction", "simulation"], n_sessions=[1, 2])
)
def test_references(focus, n_sessions):
    u, y = record(120)
    y[[3, 50]] = np.nan
    number = np.arange(120) * n_sessions // 120
    length = 120 // n_sessions
    # as many measured rows in each; a missing one is with the one before
    fold = []
    for known in np.split(np.isfinite(y), n_sessions):
        count = np.cumsum(known)
        fold.append((count - 1) * CV // count[-1])
    fold = np.concatenate(fold)
    model = estimator((2,), (3.0,), focus=focus)
    results = quietly(model, u, y, sessions=number).cv_results_
    for held_out in range(CV):
        outside = y[fold != held_out]
        mean = np.nanmean(outside)
        last = np.full(120, np.nan)
        for t in range(120):
            start = t - t % length
            known = [
                k
                for k in range(start, t)
                if np.isfinite(y[k])
                # a free run through the beginning of a session knows its first output
                and (focus == "prediction" or fold[k] != held_out or k == start)
            ]
            last[t] = y[known[-1]] if known else np.nan
        for row, reference in enumerate((np.full(120, mean), last)):
            error = (y - reference)[fold == held_out]
            found = errors_by_stretch(results)[row, held_out]
            expected = np.sqrt(np.nanmean(error**2) / np.nanvar(y))
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("sessions", "expected"),
    # two windows a stretch: 60 rows in 3 stretches hold lags up to 9
    [
        ([60], [5, 9]),
        ([50], [5]),
        ([30, 24], [5]),
        pytest.param([60, 20, 90], [5, 9, 10], marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_lags_too_long_for_a_stretch_are_left_out(sessions, expected):
    n = sum(sessions)
    u, y = record(n)
    ids = np.repeat(np.arange(len(sessions)), sessions)
    model = estimator((10, 9, 5), (30.0,), n_estimators=1, max_cycles=1)
    quietly(model, u, y, sessions=ids)
    assert sorted(set(model.cv_results_["lag"][2:])) == expected


def test_no_lag_is_short_enough():
    u, y = record(35)
    with pytest.raises(
        ValueError,
        match=r"cv=3.* lag of 5 needs 3 stretches of 12 measured rows.*n_samples=35",
    ):
        estimator((10, 5)).fit(u, y)
    u, y = record(36)
    assert quietly(estimator((10, 5)), u, y).max_lag_ == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(lags=()), "lags"),
        (dict(lags=(0, 2)), "lags"),
        (dict(lags=[[2], [3]]), "lags must be 'auto' or a sequence of integers from 1"),
        (dict(lags=[[2], [3, 4]]), "lags must be"),
        (dict(lags=(1.5,)), "lags"),
        (dict(lags=3), "lags"),
        (dict(reg_lambdas=()), "reg_lambdas"),
        (dict(reg_lambdas=(-1.0,)), "reg_lambdas"),
        (dict(reg_lambdas=(1.0, np.nan)), "reg_lambdas"),
        (dict(reg_lambdas=(np.inf,)), "reg_lambdas"),
        (dict(reg_lambdas=(1.0, 1e101)), "reg_lambdas .* 1e.100"),
        (dict(reg_lambdas=("strong",)), "reg_lambdas"),
        (dict(cv=1), "cv"),
        (dict(lags="all"), "lags"),
        (dict(reg_lambdas="all"), "reg_lambdas"),
        (dict(max_time=0), "max_time"),
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


@pytest.mark.slow
def test_a_strength_given_twice_counts_once():
    u, y = record(60)
    twice = quietly(estimator((2,), (30.0, 3.0, 30.0)), u, y)
    assert_same_ensemble(twice, quietly(estimator((2,), (3.0, 30.0)), u, y))


def test_constant_output():
    """It is said once, not for each fit; and not that rows were shuffled."""
    u, _ = record(120)
    with pytest.warns(UserWarning, match="y is constant") as told:
        model = quietly(estimator(), u, np.full(120, 2.0))
    assert len(told) == 1
    assert_allclose(model.predict(u), 2.0)
    errors = errors_by_stretch(model.cv_results_)[2:]
    assert_array_equal(errors[np.isfinite(errors)], 0.0)


def test_ensemble(fitted):
    u, y = tanks()
    results = fitted.cv_results_
    kept = {
        (lag, strength)
        for lag, strength, is_kept in zip(
            results["lag"], results["reg_lambda"], results["kept"], strict=True
        )
        if is_kept
    }
    assert len(fitted.estimators_) == 2
    assert_allclose(fitted.estimator_weights_, 0.5)
    for member in fitted.estimators_:
        assert member.input_lags == member.output_lags
        assert (member.output_lags, member.reg_lambda) in kept
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


@pytest.mark.slow
def test_several_outputs():
    rng = np.random.default_rng(0)
    U, Y = rng.standard_normal((150, 2)), np.zeros((150, 2))
    for t in range(1, 150):
        Y[t, 0] = 0.5 * Y[t - 1, 0] + 0.3 * Y[t - 1, 1] + U[t, 0]
        Y[t, 1] = 0.4 * Y[t - 1, 1] + np.tanh(U[t - 1, 1])
    Y = [100, 0] + [10, 1] * Y
    # without noise, the saturation of one row looks like a wrong output
    model = quietly(estimator((1, 2), max_cycles=15, outliers="keep"), U, Y)
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
    model = quietly(estimator((2,), (3.0,)), u, y, sessions=sessions)
    joined = quietly(estimator((2,), (3.0,)), u, y)
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
    errors = errors_by_stretch(model.cv_results_)[2:]
    assert (errors[np.isfinite(errors)] < 3.0).all()
    assert model.score(u, y) > 0.8


@mostly_pandas()
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


def test_parameters_reach_the_members(monkeypatch):
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
    chosen = [Candidate("network", "prediction", 2, 3.0, False)]
    monkeypatch.setattr(searched_ensemble, "close_to_best", lambda table: chosen)
    model = quietly(estimator((2,), (3.0,), **given), u, y)
    for member in model.estimators_:
        assert given.items() <= member.get_params().items()
    assert estimator(**given).get_params().items() >= given.items()


@pytest.mark.parametrize(
    "random_state", [pytest.param(0, marks=pytest.mark.slow), "generator"]
)
def test_reproducible_for_any_n_jobs(random_state):
    u, y = record(60)

    def search(**options):
        seed = np.random.RandomState(3) if random_state == "generator" else 0
        model = estimator((1, 2), (3.0,), max_cycles=3, **options)
        return quietly(model.set_params(random_state=seed), u, y)

    alone = search()
    assert_same_ensemble(alone, search())
    assert_same_ensemble(alone, search(n_jobs=2))
    other = quietly(estimator((1, 2), random_state=1, max_cycles=3), u, y)
    assert errors_by_stretch(other.cv_results_)[2:].tolist() != (
        errors_by_stretch(alone.cv_results_)[2:].tolist()
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
    model = quietly(
        estimator((1, 2), (3.0,), n_estimators=4, verbose=True, max_cycles=2), u, y
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == model.summary_
    # the linear models, which take no time, have one line
    first, *fits = lines[:-1]
    assert re.match(r"\d+ fits of linear models, on \d stretches: the best is ", first)
    is_network = model.cv_results_["model"] == "network"
    n_scored = model.cv_results_["n_folds"][is_network].sum()
    scored = [line for line in fits if ": error" in line]
    assert len(scored) == n_scored
    assert all(re.search(r", stretch \d: error ", line) for line in scored)
    members = [line for line in fits if "whole record: fitted" in line]
    assert len(fits) == n_scored + len(members)
    assert len(members) >= len(model.estimators_)
    assert fits[0].startswith("network of lags 0 to 1") and "more fits" in fits[0]
    # where nothing is left to do, nothing is said of it
    assert not any(" 0 more" in line for line in lines)
    quietly(estimator((1,), max_cycles=2), u, y)
    assert not capsys.readouterr().out


def test_max_time_ends_with_the_best_so_far():
    u, y = record(400)
    hurried = estimator("auto", "auto", max_time=1e-3, max_cycles=20)
    quietly(hurried, u, y)
    # one fit is always made, and one member
    assert hurried.cv_results_["n_folds"][2:].tolist() == [1]
    assert len(hurried.estimators_) == 1
    assert np.isfinite(hurried.predict(u, y_init=y[:2])).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n_asked", "n"), [(8, 2), (6, 1)])
def test_networks_are_kept_though_the_time_is_over(monkeypatch, n_asked, n):
    """Before they were tried on as many stretches as the linear models."""
    u, y = record(400)
    model = estimator((2,), (3.0,), cv=4, hidden_layer_sizes=4, max_cycles=20)
    assert "the time was over" not in quietly(model, u, y).summary_
    asked = itertools.count()
    # it is asked before each fit, but the first of a round, and between rounds
    monkeypatch.setattr(Clock, "over", lambda *_: next(asked) >= n_asked)
    quietly(model, u, y)
    results = model.cv_results_
    assert results["model"][results["kept"]].tolist() == ["network"]
    assert results["n_folds"][results["model"] == "linear"].tolist() == [4]
    assert results["n_folds"][2] == n
    words = "1 stretch" if n == 1 else f"{n} stretches"
    assert model.summary_.endswith(f"by {words}, as the time for the search was over")
    # those of the linear models on the same stretches
    tried = np.isfinite(errors_by_stretch(results)[2])
    linear = errors_by_stretch(results)[results["model"] == "linear"][:, tried]
    least = np.exp(np.log(linear).mean(axis=1)).min()
    assert f"linear ARX {least:.3g}" in model.summary_


def test_time_is_over_with_two_processes(monkeypatch):
    """What has begun is finished, without a warning, and nothing begins behind it."""
    asked = itertools.count()
    monkeypatch.setattr(Clock, "over", lambda *_: next(asked) >= 5)
    u, y = record(400)
    model = quietly(estimator("auto", "auto", n_jobs=2), u, y)
    # the first one begins without asking
    assert model.cv_results_["n_folds"][2:].sum() == 6
    assert np.isfinite(model.predict(u, y_init=y[:2])).all()


def echo(n_rows, delay):
    """A first-order lag, whose input acts at once and again later, with white noise."""
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((n_rows, 1)), np.zeros(n_rows)
    for t in range(delay, n_rows):
        y[t] = 0.7 * y[t - 1] + 1.2 * u[t - 1, 0] + u[t - delay, 0]
    return u, y + 0.05 * rng.standard_normal(n_rows)


@pytest.mark.slow
def test_lags_grow_as_far_as_inputs_act():
    """No lag of the grid reaches that far: the grid goes on."""
    u, y = echo(900, 36)
    model = estimator("auto", (20.0,), cv=2, n_estimators=1, max_cycles=3)
    quietly(model, u, y)
    linear = model.cv_results_["model"] == "linear"
    assert model.cv_results_["lag"][linear].max() > 36
    assert model.max_lag_ >= 36
    assert model.score(u, y, horizon=None) > 0.9
    # given ones stay as they are
    quietly(model.set_params(lags=(5,)), u, y)
    assert set(model.cv_results_["lag"][2:]) == {5}


def test_a_linear_system_gets_a_linear_model():
    """Where no network is better, the simplest ARX model of those that are best."""
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((300, 1)), np.zeros(300)
    for t in range(2, 300):
        noise = 0.2 * rng.standard_normal()
        y[t] = 1.2 * y[t - 1] - 0.5 * y[t - 2] + u[t - 1, 0] + noise
    model = quietly(estimator((2, 4, 8), (20.0,), max_cycles=10), u, y)
    (member,) = model.estimators_
    assert member.hidden_layer_sizes == () and member.reg_lambda == 0.0
    lag = model.max_lag_
    now = np.arange(lag, 300)
    past = [u[now - k, 0] for k in range(lag + 1)]
    past += [y[now - k] for k in range(1, lag + 1)]
    Z = np.column_stack([*past, np.ones(len(now))])
    expected = Z @ np.linalg.lstsq(Z, y[lag:], rcond=None)[0]
    assert_allclose(model.predict(u, y)[lag:], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("routing", [pytest.param(False, marks=pytest.mark.slow), True])
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


@pytest.mark.slow
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


@mostly_pandas()
def test_a_long_record_of_a_data_frame(monkeypatch, frames):
    """Members that are fitted to a part of it know the names of the inputs."""
    for name in ("NETWORK_ROWS", "LINEAR_ROWS", "MEMBER_ROWS"):
        monkeypatch.setattr(samples, name, 120)
    u, y = record(240)
    frame = frames.DataFrame({"valve": u[:, 0]})
    model = quietly(estimator((2,), (3.0,)), frame, y)
    assert n_observations(model.estimators_[0]) == 120 - CV * 2
    assert model.lag_relevance_["valve(t-1)"] > 0.0
    assert model.score(frame, y, horizon=None) > 0.8


@pytest.mark.slow
def test_current_input_of_a_system_that_answers_at_once():
    def searched(X, y):
        model = estimator((2,), (3.0,), include_current_input="auto")
        return quietly(model, X, y)

    u, y = record(80)
    # many inputs that do nothing make a regressor that is not needed harmful
    u = np.hstack([u, np.random.default_rng(1).standard_normal((80, 8))])
    for used, target in [(False, y), (True, y + 0.5 * u[:, 0])]:
        model = searched(u, target)
        results = model.cv_results_
        assert (results["include_current_input"][2:] == used).all()
        assert f"of lags {int(not used)} to 2" in model.summary_
        assert all(m.include_current_input == used for m in model.estimators_)
        assert ("x0(t)" in model.lag_relevance_) == used
    assert not searched(None, y).cv_results_["include_current_input"].any()


@pytest.mark.slow
def test_differences_and_heavy_tails_are_passed_on():
    model = estimator((1, 2), (1.0,), output="difference", noise="student_t")
    u, y = integrator(200)
    quietly(model, u, y)
    assert {member.output for member in model.estimators_} == {"difference"}
    assert {member.noise for member in model.estimators_} == {"student_t"}
    new_u, new_y = integrator(400, seed=1)
    start = model.max_lag_
    error = model.predict(new_u, y_init=new_y[:start]) - new_y
    assert np.sqrt(np.mean(error**2)) < 0.1 * new_y.std()
