"""The dynamic model that chooses its kind: what it chooses, mixes and refuses."""

import pickle

import joblib
import numpy as np
import pytest
from grids import first_by_default, mostly_pandas
from numpy.testing import assert_allclose, assert_array_equal
from search_cases import (
    FAST_DYNAMIC,
    OF_LAGS,
    OF_STATES,
    choose,
    dynamic,
    errors_by_stretch,
    quietly,
    record,
    start_seeds,
    with_gaps,
)
from sklearn.exceptions import NotFittedError

from skbayesnn import (
    DynamicSystemRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
    _persistence,
)
from skbayesnn.datasets import make_coupled_drives
from skbayesnn.exceptions import DivergenceWarning
from skbayesnn.metrics import simulation_scorer
from skbayesnn.sparse_bayes import dynamic_system
from skbayesnn.sparse_bayes.prediction.ensemble import forecast
from skbayesnn.sparse_bayes.queries import make_query
from skbayesnn.sparse_bayes.search import candidate_scores, runner

pytestmark = pytest.mark.usefixtures("quick_states")

CV = FAST_DYNAMIC["cv"]


def dead_time(n_rows=150):
    """A nonlinear system with a dead time of ten rows: ten states, one lag."""
    rng = np.random.default_rng(0)
    u, y = rng.uniform(-1.0, 1.0, (n_rows, 1)), np.zeros(n_rows)
    for t in range(11, n_rows):
        y[t] = 0.5 * y[t - 1] + np.tanh(3.0 * u[t - 10, 0])
    return u, y + 0.02 * rng.standard_normal(n_rows)


def linear(n_rows=150):
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((n_rows, 1)), np.zeros(n_rows)
    for t in range(2, n_rows):
        y[t] = 1.2 * y[t - 1] - 0.5 * y[t - 2] + u[t - 1, 0]
        y[t] += 0.1 * rng.standard_normal()
    return u, y


def magnitude():
    """A speed that is measured without its sign."""
    return make_coupled_drives(150, return_X_y=True, random_state=0)


@pytest.mark.parametrize(
    ("system", "options", "kind"),
    [
        pytest.param(
            magnitude,
            dict(lags=(4,), n_states=(3,), hidden_layer_sizes=4),
            "states",
            marks=pytest.mark.slow,
        ),
        (dead_time, dict(lags=(10,)), "network"),
        pytest.param(linear, dict(), "linear", marks=pytest.mark.slow),
    ],
    ids=["hidden states", "lags", "linear"],
)
def test_the_kind_that_the_system_asks_for(system, options, kind):
    options = dict(cv=3, max_cycles=10, n_estimators=1) | options
    model = quietly(dynamic(**options), *system())
    assert model.kinds_ == [kind]
    results = model.cv_results_
    least = {
        name: results["mean_test_error"][results["model"] == name].min()
        for name in ("linear", "network", "states")
    }
    assert least[kind] == min(least.values()) or kind == "linear"
    assert results["model"][results["kept"]] == [kind]


@pytest.fixture(scope="module")
def data():
    return record(150)


@pytest.fixture(scope="module")
def mixed(data):
    with pytest.MonkeyPatch.context() as patch:
        choose(patch, OF_LAGS, OF_STATES)
        return quietly(dynamic(max_cycles=15, n_estimators=3), *data)


def test_what_is_mixed(mixed):
    assert mixed.kinds_ == ["network", "states"]
    # the best gets the third network
    of_lags, of_states = mixed.estimators_[:2], mixed.estimators_[2:]
    assert [m.input_lags for m in of_lags] == [2, 2]
    assert [m.n_states for m in of_states] == [2]
    assert_allclose(mixed.estimator_weights_, 1 / 3)
    assert mixed.max_lag_ == 8
    assert "of lags 0 to 2" in mixed.summary_
    assert "mixed with networks of hidden states" in mixed.summary_
    assert list(mixed.cv_results_["n_states"][2:4]) == [0, 2]


def test_predictions_of_the_mixture(mixed, data):
    """The median of the members, whatever their kind."""
    u, y = data
    sessions = np.repeat([0, 1], 75)
    for arguments in (
        dict(y_init=y[:8]),
        dict(y=y),
        dict(y=y, horizon=4),
        dict(y=y, horizon=None, sessions=sessions),
    ):
        found = mixed.predict(u, **arguments)
        if "sessions" in arguments:
            # all members start behind the rows that the longest needs
            parts = [slice(75), slice(75, 150)]
            runs = [
                np.concatenate([m.predict(u[p], y_init=y[p][:8]) for p in parts])
                for m in mixed.estimators_
            ]
            rows = np.arange(150) % 75 >= 8
        else:
            runs = [m.predict(u, **arguments) for m in mixed.estimators_]
            rows = np.arange(150) >= 8
        assert_allclose(found[rows], np.median(runs, axis=0)[rows])
    run, std = mixed.predict(u, y_init=y[:8], return_std=True)
    assert_array_equal(run[:8], y[:8])
    assert (std[:8] == 0.0).all() and (std[8:] > 0.0).all()
    assert mixed.score(u, y) > 0.8
    error = np.sqrt(np.mean((run - y)[8:] ** 2))
    assert simulation_scorer(mixed, u, y) == pytest.approx(-error)


@pytest.mark.parametrize("n_known", [0, 1, 2])
def test_a_short_start_of_a_mixture(mixed, data, n_known):
    u, y = data
    start = dict(y_init=y[:n_known]) if n_known else {}
    path, std = mixed.predict(u, return_std=True, **start)
    assert path.shape == std.shape == (150,)
    assert np.isfinite(path).all() and np.isfinite(std).all()
    assert_array_equal(path[:n_known], y[:n_known])
    # it forgets where it came from
    late = mixed.predict(u, y_init=y[:8])
    assert_allclose(path[60:], late[60:], atol=0.1 * y.std())


def test_other_calls_of_a_mixture(mixed, data, tmp_path):
    u, y = data
    drawn = mixed.sample_y(u, y_init=y[:8], n_samples=6, random_state=1)
    assert drawn.shape == (150, 6) and np.isfinite(drawn).all()
    forecast = mixed.forecast(4, u[:4], n_paths=2)
    assert forecast.y_pred.shape == (4,) and forecast.paths.shape == (4, 2)
    # hidden states are told by all rows, not by the window of the lags alone
    known = mixed.predict(u[:4], X_init=u, y_init=y)
    assert_allclose(forecast.y_pred, known, rtol=1e-9)
    record = np.concatenate([u, u[:4]]), np.append(y, np.full(4, np.nan))
    for model in mixed.estimators_:
        alone = model.forecast(X_future=u[:4], X_past=u, y_past=y)
        ahead = model.predict(*record, horizon=4, return_std=True)
        assert_allclose([alone.y_pred[3], alone.y_std[3]], [one[153] for one in ahead])
    expected = mixed.predict(u[8:9], y_init=y[:8], X_init=u[:8])
    assert mixed.stream(u[:8], y[:8]).step(u[8]) == pytest.approx(expected[0])
    first, state = mixed.predict(u[:50], y_init=y[:8], return_state=True)
    rest = mixed.predict(u[50:], state=state)
    assert_allclose([*first, *rest], mixed.predict(u, y_init=y[:8]))
    space = mixed.to_state_space()
    simulated = space.simulate(u[8:], space.initial_state(u[:8], y[:8]))
    assert_allclose(simulated[:, 0], mixed.predict(u, y_init=y[:8])[8:])
    assert mixed.to_c(tmp_path / "model.c").exists()


@pytest.mark.slow
def test_networks_of_hidden_states_alone(data, monkeypatch, tmp_path):
    """With two numbers of states, and with one."""
    u, y = data
    choose(monkeypatch, OF_STATES, OF_STATES._replace(n_states=3))
    model = quietly(dynamic(n_states=(2, 3), n_estimators=2), u, y)
    assert model.kinds_ == ["states"]
    assert [member.n_states for member in model.estimators_] == [2, 3]
    # four rows for each state tell the states of a stream
    start, whole = dict(y_init=y[:12]), model.predict(u, y_init=y[:12])
    stream = model.stream(u[:12], y[:12])
    assert_allclose([stream.step(row) for row in u[12:20]], whole[12:20])
    first, state = model.predict(u[:50], return_state=True, **start)
    assert_allclose([*first, *model.predict(u[50:], state=state)], whole)
    assert model.sample_y(u, n_samples=3, random_state=0, **start).shape == (150, 3)
    space = model.to_state_space()
    simulated = space.simulate(u[12:], space.initial_state(u[:12], y[:12]))
    assert_allclose(simulated[:, 0], whole[12:])
    assert model.to_c(tmp_path / "two.c").exists()

    choose(monkeypatch, OF_STATES)
    model = quietly(dynamic(n_estimators=2), u, y)
    assert model.to_c(tmp_path / "one.c").exists()


def test_models_of_lags_are_those_of_the_search_for_lags(data):
    """Hidden states change nothing where they are not chosen."""
    u, y = data
    options = {k: v for k, v in FAST_DYNAMIC.items() if k != "n_states"}
    lags = {"lags": (2,), "reg_lambdas": (3.0,)}
    expected = quietly(SparseBayesNARXRegressorCV(**options | lags), u, y)
    model = quietly(dynamic(kinds=["linear", "network"]), u, y)
    added = model.cv_results_.keys() - expected.cv_results_.keys()
    assert added == {"n_states", "n_units", "activation", "max_cycles"}
    for name, values in expected.cv_results_.items():
        assert_array_equal(model.cv_results_[name], values)
    for arguments in (dict(y=y), dict(y=y, horizon=4), dict(y_init=y[:2])):
        for found, one in zip(
            model.predict(u, return_std=True, **arguments),
            expected.predict(u, return_std=True, **arguments),
            strict=True,
        ):
            assert_array_equal(found, one)
    assert model.to_state_space().step_response(3) is not None


def test_linear_models_alone_and_networks_alone(data):
    model = quietly(dynamic(kinds="linear"), *data)
    assert set(model.cv_results_["model"][2:]) == {"linear"}
    assert model.kinds_ == ["linear"]
    model = quietly(dynamic(kinds=("states",), n_estimators=1), *data)
    assert set(model.cv_results_["model"][2:]) == {"states"}
    assert model.to_state_space() is not None
    model = quietly(dynamic(kinds=("network",), n_estimators=1), *data)
    assert set(model.cv_results_["model"][2:]) == {"network"}


def test_every_kind_is_scored_on_the_same_stretches(monkeypatch):
    """Errors of hidden states, recomputed by fits that do not see a stretch."""
    monkeypatch.setattr(candidate_scores, "SETTLED", np.inf)
    u, y = record(120)
    number = np.arange(120) // 60
    fold = np.tile(np.arange(60) * CV // 60, 2)
    model = quietly(dynamic(), u, y, sessions=number)
    results = model.cv_results_
    of_states = np.flatnonzero(results["activation"] == "tanh")[0]
    of_lags = np.flatnonzero(results["model"] == "network")[0]
    errors = errors_by_stretch(results)[of_states]
    assert_array_equal(
        np.isfinite(errors), np.isfinite(errors_by_stretch(results)[of_lags])
    )
    seeds = start_seeds(CV)
    for left_out in range(CV):
        plain = SparseBayesStateSpaceRegressor(
            *(2,),
            hidden_layer_sizes=2,
            reg_lambda=3.0,
            n_restarts=dynamic_system.STATES_STARTS,
            activation="tanh",
            max_cycles=3,
            random_state=seeds[left_out],
        )
        quietly(plain, u, np.where(fold == left_out, np.nan, y), sessions=number)
        paths = [
            plain.predict(u[number == one], y_init=y[number == one][:8])
            for one in (0, 1)
        ]
        scored = (fold == left_out) & (np.arange(120) % 60 >= 8)
        error = np.sqrt(np.mean((np.concatenate(paths) - y)[scored] ** 2)) / y.std()
        assert errors[left_out] == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize(
    "candidates", first_by_default([(OF_STATES,), (OF_LAGS, OF_STATES)]), ids=len
)
def test_the_bands_are_calibrated_where_fits_did_not_look(
    usual_starts, monkeypatch, data, candidates
):
    u, y = data
    choose(monkeypatch, *candidates)
    model = quietly(dynamic(), u, y)
    factor = model.band_factor_
    assert factor.shape == (1,) and factor[0] != 1.0
    _, std = model.predict(u, y_init=y[:8], return_std=True)
    bands = model._model.bands._replace(factor=np.ones(1))
    model._model = model._model._replace(bands=bands)
    _, plain = model.predict(u, y_init=y[:8], return_std=True)
    query = make_query(model, u, None, None, y[:8], None, None)
    run = forecast(
        model._model.ensemble, query.record, query.n_known, np.inf, return_std=True
    )
    assert (run.least[8:] > 0.0).all()
    expected = np.maximum(factor * plain, run.least[:, 0])
    assert_allclose(std, expected, rtol=1e-6)
    # the draws are as wide
    model._model = model._model._replace(bands=bands._replace(factor=factor))
    drawn = model.sample_y(u, n_samples=4000, y_init=y[:8], random_state=0)
    assert_allclose(drawn[8:].std(axis=1), std[8:], rtol=0.15)


def assert_same(one, other, u, y):
    for name, values in one.cv_results_.items():
        assert_array_equal(values, other.cv_results_[name])
    assert one.kinds_ == other.kinds_
    for first, second in zip(
        one.predict(u, y_init=y[:8], return_std=True),
        other.predict(u, y_init=y[:8], return_std=True),
        strict=True,
    ):
        assert_array_equal(first, second)


def test_the_same_seed_gives_the_same_model(monkeypatch, data):
    u, y = data
    choose(monkeypatch, OF_STATES, OF_LAGS)
    first = quietly(dynamic(), u, y)
    with joblib.parallel_config("threading", n_jobs=2):
        assert_same(quietly(dynamic(n_jobs=2), u, y), first, u, y)
    assert_same(pickle.loads(pickle.dumps(first)), first, u, y)


@pytest.mark.slow
@pytest.mark.parametrize("is_final", [False, True])
def test_a_killed_search_loses_one_fit(monkeypatch, tmp_path, data, is_final):
    """Behind the first fit of hidden states without a stretch, or to all rows."""
    u, y = data
    choose(monkeypatch, OF_STATES, OF_LAGS)
    monkeypatch.setattr(_persistence, "INTERVAL", 0.0)
    tasks, fit = [], runner.fit_or_score
    # so many that fits of hidden states go on
    options = {"max_cycles": 20}

    def counted(task, *arguments):
        if len(tasks) == limit:
            raise KeyboardInterrupt
        tasks.append(task)
        return fit(task, *arguments)

    monkeypatch.setattr(runner, "fit_or_score", counted)
    limit = None
    expected = quietly(dynamic(**options), u, y)
    everything = list(tasks)
    kinds = [(task.candidate.model, task.fold is None) for task in everything]
    assert ("states", True) in kinds and ("states", False) in kinds
    assert any(task.goes_on_from is not None for task in everything)
    path, limit = tmp_path / "search", kinds.index(("states", is_final)) + 1
    tasks.clear()
    with pytest.raises(KeyboardInterrupt):
        quietly(dynamic(checkpoint=path, **options), u, y)
    done, limit = limit, None
    tasks.clear()
    model = quietly(dynamic(checkpoint=path, **options), u, y)
    assert tasks == everything[done:]
    assert_same(model, expected, u, y)


def test_a_failed_refit_keeps_the_model(mixed, data):
    u, y = data
    model = pickle.loads(pickle.dumps(mixed))
    before = model.predict(u)
    for bad in (dict(cv=1), dict(n_states=0), dict(kinds="lags")):
        parameters = {name: getattr(model, name) for name in bad}
        with pytest.raises(ValueError, match=f"{next(iter(bad))}"):
            model.set_params(**bad).fit(u, y)
        model.set_params(**parameters)
        assert_array_equal(model.predict(u), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(kinds=()), "kinds must be 'auto' or hold some of linear, network"),
        (dict(kinds=["narx"]), "kinds must be"),
        (dict(n_states="many"), "n_states"),
        (dict(n_states=()), "n_states must be"),
        (dict(n_states=(2.5,)), "n_states must be"),
        (dict(n_states=(10**6,)), "n_states must be .* 1 to 1000"),
        (dict(max_time=0), "max_time"),
        (dict(cv=1), "cv"),
        (dict(hidden_layer_sizes=(0,)), "hidden_layer_sizes"),
    ],
    ids=str,
)
def test_bad_parameters(options, message, data):
    with pytest.raises(ValueError, match=message):
        dynamic(**options).fit(*data)


def sampled(y, interval):
    """Outputs of every so many rows, as a laboratory measures them."""
    return np.where(np.arange(len(y)) % interval == 0, y, np.nan)


@pytest.mark.parametrize("n_outputs", first_by_default([1, 2]))
def test_samples_of_a_laboratory_are_left_to_hidden_states(n_outputs):
    """No row follows another one; of several outputs one may be complete."""
    u, y = magnitude()
    rare = sampled(y, 3)
    Y = rare if n_outputs == 1 else np.column_stack([rare, y])
    options = dict(n_states=(3,), hidden_layer_sizes=4, cv=3, max_cycles=5)
    options["n_estimators"] = 1
    model = quietly(dynamic(**options), u, Y)
    assert model.kinds_ == ["states"]
    assert not {"linear", "network"} & set(model.cv_results_["model"])
    # the errors of the stretches are those of a run
    names, errors = (model.cv_results_[k] for k in ("model", "mean_test_error"))
    assert errors[names == "states"].min() < 0.9 * errors[names == "mean"].min()
    for kinds in "linear", ("linear", "network"):
        with pytest.raises(ValueError, match="too few complete windows of 3 rows"):
            quietly(dynamic(kinds=kinds), u, Y)
    with pytest.raises(ValueError, match="SparseBayesStateSpaceRegressor"):
        SparseBayesNARXRegressorCV(cv=3).fit(u, Y)


def test_a_hole_is_no_stretch(data):
    """Where nothing is measured, all candidates would fail alike."""
    u, y = data
    hole = np.where((np.arange(150) >= 60) & (np.arange(150) < 120), np.nan, y)
    model = quietly(dynamic(cv=4, kinds=("linear", "network")), u, hole)
    results = model.cv_results_
    errors = errors_by_stretch(results)[results["model"] == "linear"]
    assert np.isfinite(errors).all() and (errors < 2.0).all()


def states_alone(data, **options):
    """The held-out errors of hidden states, and fits that do not see a stretch."""
    u, y = data
    model = quietly(dynamic(kinds="states", n_estimators=1, **options), u, y)
    # as many measured rows in each; another one is with the one before
    count = np.cumsum(np.isfinite(u[:, 0] + y))
    fold = (count - 1) * CV // count[-1]
    errors = errors_by_stretch(model.cv_results_)[
        model.cv_results_["activation"] == "tanh"
    ]
    for number, seed in enumerate(start_seeds(CV)):
        plain = SparseBayesStateSpaceRegressor(
            *(2,),
            hidden_layer_sizes=2,
            reg_lambda=3.0,
            n_restarts=dynamic_system.STATES_STARTS,
            activation="tanh",
            max_cycles=3,
            random_state=seed,
        )
        hidden = fold == number
        quietly(plain, u, np.where(hidden, np.nan, y))
        yield errors[0, number], plain, hidden


@pytest.mark.slow
@pytest.mark.parametrize("focus", ["simulation", "prediction"])
def test_hidden_states_are_scored_across_missing_outputs(data, focus):
    """Free runs and filters begin anew behind missing inputs alone."""
    u, y = with_gaps(data)
    for found, plain, hidden in states_alone((u, y), focus=focus):
        path = plain.predict(u, y)
        if focus == "simulation":
            for part in slice(70), slice(71, 150):
                path[part] = plain.predict(u[part], y_init=y[part][:8])
            path[70] = np.nan
        scored = hidden & np.isfinite(u[:, 0] + y)
        for gap in (0, 71) if focus == "simulation" else (0, 31, 71):
            scored[gap : gap + 8] = False
        error = np.sqrt(np.mean((path - y)[scored] ** 2)) / np.nanstd(y)
        assert found == pytest.approx(error, rel=1e-9)


@pytest.mark.slow
def test_fits_until_the_end_are_scored_until_the_end(data):
    """And those of the ensemble end where the scored ones did."""
    u, y = data
    model = quietly(dynamic(kinds="states", max_cycles=18), u, y)
    results = model.cv_results_
    assert set(results["max_cycles"][2:]) == {15, 18}
    (row,) = np.flatnonzero(results["max_cycles"] == 18)
    plain = SparseBayesStateSpaceRegressor(
        *(2,),
        hidden_layer_sizes=2,
        reg_lambda=3.0,
        n_restarts=dynamic_system.STATES_STARTS,
        activation=str(results["activation"][row]),
        max_cycles=18,
        random_state=start_seeds(CV)[1],
    )
    quietly(plain, u, np.where(np.arange(150) < 75, y, np.nan))
    error = (plain.predict(u, y_init=y[:8]) - y)[75:]
    error = np.sqrt(np.mean(error**2)) / y.std()
    assert errors_by_stretch(results)[row, 1] == pytest.approx(error, rel=1e-9)
    chosen = results["max_cycles"][results["kept"]]
    assert {member.max_cycles for member in model.estimators_} == set(chosen.tolist())


@pytest.mark.parametrize(
    "focus", ["simulation", pytest.param("prediction", marks=pytest.mark.slow)]
)
def test_records_without_inputs(focus):
    """An oscillation: the fits begin with random states, and end in a cycle."""
    t = np.arange(150)
    rng = np.random.default_rng(0)
    y = np.cos(0.4 * t) + 0.02 * rng.standard_normal(150)
    model = quietly(dynamic(focus=focus, max_cycles=5, n_estimators=1), None, y)
    columns = (model.cv_results_[name] for name in ("model", "mean_test_error"))
    error = dict(zip(*columns, strict=True))
    assert error["states"] < 0.1 < error["mean"]
    options = dict(kinds="states", max_cycles=5, n_estimators=1)
    alone = quietly(dynamic(focus=focus, **options), None, y)
    assert alone.kinds_ == ["states"]
    score = alone.score(None, y)
    assert score > 0.98
    # of the fit, not of the next one
    alone.set_params(focus={"simulation": "prediction"}.get(focus, "simulation"))
    assert alone.score(None, y) == score
    path = alone.predict(np.zeros((150, 0)), y_init=y[:8])
    assert np.abs(path - y).mean() < 0.1


@pytest.mark.slow
def test_one_step_ahead_where_noise_enters_the_state():
    """Hidden states with a filter come close to lags, where a free run is no use."""
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((300, 1)), np.zeros(300)
    for t in range(1, 300):
        y[t] = 0.9 * y[t - 1] + u[t - 1, 0] + rng.standard_normal()
    model = quietly(dynamic(focus="prediction", max_cycles=10), u, y)
    results = model.cv_results_
    of_states = results["mean_test_error"][results["model"] == "states"][0]
    of_lags = results["mean_test_error"][results["model"] == "linear"][0]
    assert of_states < 1.2 * of_lags < 0.7 * results["mean_test_error"][0]
    assert model.predict(u, y).shape == (300,)


def test_limited_time(data):
    model = quietly(dynamic(max_time=1e-6), *data)
    # the first of the search, and of the members
    assert np.isfinite(errors_by_stretch(model.cv_results_)[2:]).sum() == 1
    assert len(model.estimators_) == 1


@pytest.mark.parametrize("kinds", [("network",), ("states",), ("network", "states")])
def test_limited_time_without_linear_models(kinds, data):
    model = quietly(dynamic(kinds=kinds, max_time=1e-6, max_cycles=5), *data)
    assert model.cv_results_["model"][2:].tolist() == [kinds[0]]
    assert np.isfinite(model.predict(data[0], y_init=data[1][:8])).all()


@mostly_pandas()
def test_frames_and_names(monkeypatch, frames, data):
    u, y = data
    choose(monkeypatch, OF_LAGS, OF_STATES)
    frame = frames.DataFrame({"valve": u[:, 0]})
    series = frames.Series(y) if frames.__name__ == "pandas" else frames.Series("y", y)
    model = quietly(dynamic(max_cycles=2), frame, series)
    assert list(model.feature_names_in_) == ["valve"]
    path = model.predict(frame, y_init=series[:8])
    assert isinstance(path, np.ndarray)
    plain = quietly(dynamic(max_cycles=2), u, y)
    assert_array_equal(path, plain.predict(u, y_init=y[:8]))
    model.set_output(predict=frames.__name__)
    found, std = model.predict(frame, y_init=series[:8], return_std=True)
    assert_array_equal(np.asarray(found)[:, 0], path)
    assert len(std) == 150


def test_several_outputs(monkeypatch):
    u, y = record(150)
    Y = np.column_stack([y, 100.0 * np.concatenate([[0.0], y[:-1]])])
    choose(monkeypatch, OF_LAGS, OF_STATES)
    model = quietly(dynamic(max_cycles=8), u, Y)
    mean, std = model.predict(u, y_init=Y[:8], return_std=True)
    assert mean.shape == std.shape == (150, 2)
    assert model.score(u, Y) > 0.7


def test_relevance_of_lags_where_no_member_has_states(mixed, data):
    assert not hasattr(mixed, "lag_relevance_")
    u, y = data
    model = quietly(dynamic(kinds=("linear", "network"), max_cycles=3), u, y)
    of_members = [member.lag_relevance_ for member in model.estimators_]
    relevance = model.lag_relevance_
    assert set(relevance) == set().union(*of_members)
    for name, value in relevance.items():
        squares = [one.get(name, 0.0) ** 2 for one in of_members]
        expected = np.sqrt(model.estimator_weights_ @ squares)
        assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore:Input x0 is outside")
def test_divergence_is_told(mixed, data):
    u = data[0].copy()
    u[20] = 1e9
    with pytest.warns(DivergenceWarning, match="predicted rows diverged"):
        path = mixed.predict(u)
    assert np.isfinite(path[:20]).all() and np.isnan(path[-1])
    assert mixed.score(u, data[1]) == -np.inf


def test_before_the_fit():
    model = dynamic()
    assert hasattr(model, "to_c")
    for call in ("predict", "forecast", "stream", "sample_y"):
        with pytest.raises(NotFittedError):
            getattr(model, call)(np.zeros((3, 1)))


@pytest.mark.slow
def test_lags_of_inputs_reach_over_missing_outputs():
    """Those longer than from one gap to the next had no complete window at all."""
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((600, 1)), np.zeros(600)
    for t in range(10, 600):
        y[t] = 0.7 * y[t - 1] + u[t - 10, 0] + 0.05 * rng.standard_normal()
    gaps = np.where(np.arange(600) % 7 == 0, np.nan, y)
    model = DynamicSystemRegressor(kinds=("linear",), random_state=0).fit(u, gaps)
    assert "x0(t-10)" in model.lag_relevance_
    assert "y(t-7)" not in model.lag_relevance_
    free = model.predict(u, y_init=y[: model.max_lag_])
    # the noise alone makes 0.07
    assert np.sqrt(np.mean((free - y) ** 2)) < 0.12
