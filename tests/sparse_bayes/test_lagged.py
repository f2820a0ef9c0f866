"""What lagged models and ensembles predict, whoever fitted them."""

import io
import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from fitted_models import (
    ensemble_of,
    fitted_network,
    n_observations,
    replace_fitted,
    set_weights,
)
from free_run_cases import FAST, assert_same_fit, fit, output_error, rms, two_by_two
from numpy.testing import assert_allclose, assert_array_equal
from search_cases import record
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.exceptions import DivergenceWarning
from skbayesnn.metrics import simulation_scorer
from skbayesnn.sparse_bayes.records.layout import (
    outputs_before,
)


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
        model = SparseBayesNARXRegressor(2, 2, **FAST, n_estimators=2, random_state=0)
        key = "sessions" if routing else "sparsebayesnarxregressor__sessions"
        if routing:
            model.set_fit_request(sessions=True)
            model.set_predict_request(
                y=True, horizon=True, y_init=True, return_std=True
            )
        pipeline = make_pipeline(StandardScaler(), model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            pipeline.fit(u, y, **{key: sessions})
        # two sessions lose two rows each
        assert n_observations(pipeline[-1]) == 116
        free, std = pipeline.predict(u, y_init=y[:1], return_std=True)
        assert free[0] == y[0] and (std[1:] > 0).all()
        assert simulation_scorer(pipeline, u, y) > -0.5 * y.std()


@pytest.fixture(scope="module")
def ensemble():
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
def test_prediction_of_a_ensemble(ensemble, weights, start):
    u, y, _ = output_error(60, seed=7)
    arguments = {
        "one step": dict(y=y),
        "ahead": dict(y=y, horizon=4),
        "free": dict(y_init=y[:2]),
        "short": dict(y_init=y[:1]),
        "mean": {},
    }[start]
    model = pickle.loads(pickle.dumps(ensemble))
    if weights:
        set_weights(model, np.array(weights))
    weights = model.estimator_weights_
    mean, std = model.predict(u, **arguments, return_std=True)
    if start == "short":
        # all start from the same estimate, that of the first
        first, step = ensemble_of(model).members[0], model._model.step_variance
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


def test_ensemble(ensemble):
    u, y, _ = output_error(200)
    assert len(ensemble.estimators_) == 3
    assert ensemble.estimator_weights_.sum() == pytest.approx(1.0)
    for member in ensemble.estimators_:
        assert not hasattr(member, "estimators_") and member.n_estimators == 1
        assert member.score(u, y) > 0.9
    assert ensemble.score(u, y) > 0.9 and ensemble.score(u, y, horizon=None) > 0.9
    squares = [m.feature_relevance_**2 for m in ensemble.estimators_]
    expected = np.sqrt(np.mean(squares, axis=0))
    assert_allclose(ensemble.feature_relevance_, expected)
    names = ensemble.get_lagged_feature_names_out()
    assert list(ensemble.lag_relevance_) == list(names)
    assert_allclose(list(ensemble.lag_relevance_.values()), expected)
    # the rest describes the first
    assert_same_fit(ensemble, ensemble.estimators_[0])


def test_refit_with_one_network_removes_the_ensemble():
    u, y, _ = output_error(100)
    model = fit(u, y, n_estimators=2)
    assert len(model.estimators_) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(n_estimators=1).fit(u, y)
    assert not hasattr(model, "estimators_")
    assert not hasattr(model, "estimator_weights_")
    assert_same_fit(model, fit(u, y))


def destabilise(model, member):
    network = fitted_network(model, member).network
    wild = network._replace(theta=5.0 * network.theta)
    replace_fitted(model, member, network=wild)


def test_members_that_diverge_on_new_data(ensemble):
    u, y, _ = output_error(100, seed=3)
    model = pickle.loads(pickle.dumps(ensemble))
    destabilise(model, 1)
    with pytest.warns(DivergenceWarning, match="diverged"):
        lost = np.isnan(model.estimators_[1].predict(u, y_init=y[:2]))
    assert lost.any()
    # two of three go on, without a warning
    mean, std = model.predict(u, y_init=y[:2], return_std=True)
    others = [model.estimators_[k].predict(u, y_init=y[:2]) for k in (0, 2)]
    assert_allclose(mean[lost], np.mean(others, axis=0)[lost], rtol=1e-12)
    assert np.isfinite(std).all()
    assert rms(mean - y) < 0.5 * y.std()
    destabilise(model, 0)
    with pytest.warns(DivergenceWarning, match="predicted rows diverged"):
        mean, std = model.predict(u, y_init=y[:2], return_std=True)
    assert np.isnan(mean[-1]) and np.isnan(std[-1])
    assert_array_equal(mean[:2], y[:2])
    assert model.score(u, y, horizon=None) == -np.inf


def test_ensemble_one_step_ahead():
    """Ensembles do not need focus="simulation"."""
    u, y, _ = output_error(150)
    model = fit(u, y, focus="prediction", n_estimators=3)
    members = [m.predict(u, y) for m in model.estimators_]
    assert_allclose(model.predict(u, y), np.median(members, axis=0), rtol=1e-12)


def test_ensemble_of_several_outputs_and_sessions():
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


@pytest.mark.parametrize("n_estimators", [1, pytest.param(3, marks=pytest.mark.slow)])
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


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.ExtrapolationWarning")
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
    with pytest.warns(DivergenceWarning, match="diverged"):
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
        # of the fit, not of the next one
        model.set_params(focus={1: "simulation", None: "prediction"}[horizon])
        assert model.score(u, y) == model.score(u, y, horizon=horizon)
    assert model.score(u, y, horizon=1) > model.score(u, y)


@pytest.mark.parametrize("difference", [False, True])
def test_free_runs_begin_behind_missing_values(difference):
    """Of each session, at its first complete window; before, nothing is predicted."""
    u, y = record(150)
    output = "difference" if difference else "level"
    model = SparseBayesNARXRegressor(
        2, 2, hidden_layer_sizes=(), focus="simulation", output=output
    ).fit(u, y)
    sessions = np.repeat([0, 1, 2], 50)
    gaps = y.copy()
    gaps[[1, 51, 52, 120]] = np.nan
    path, std = model.predict(u, gaps, horizon=None, sessions=sessions, return_std=True)
    # the first complete window of each, and the same run as from there
    for start, stop, begin in ((0, 50, 2), (50, 100, 53), (100, 150, 100)):
        rows = slice(begin, stop)
        expected = model.predict(u[rows], y[rows], horizon=None, return_std=True)
        for found, of_part in zip((path, std), expected, strict=True):
            assert_allclose(found[rows], of_part, rtol=1e-12)
        assert_allclose(path[start:begin], gaps[start:begin])
    cut = np.array([0] * 2 + [1] * 48 + [2] * 3 + [3] * 47 + [4] * 50)
    assert model.score(u, gaps, sessions=sessions) == model.score(u, gaps, sessions=cut)
    drawn = model.sample_y(u, gaps, horizon=None, sessions=sessions, n_samples=2)
    assert np.isnan(drawn[[1, 51, 52]]).all() and np.isfinite(drawn[2:50]).all()


def test_nothing_to_score_names_both_reasons():
    u, y = record(150)
    model = SparseBayesNARXRegressor(
        2, 2, hidden_layer_sizes=(), focus="simulation"
    ).fit(u, y)
    y[::2] = np.nan
    with pytest.raises(ValueError, match="no row to score"):
        model.score(u, y)


def test_a_score_needs_outputs():
    u, y = record(80)
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=(), tol=1.0).fit(u, y)
    with pytest.raises(ValueError, match="y must hold the measured outputs .* None"):
        model.score(u, None)


def test_a_warm_start_with_another_focus():
    """The groups by default differ, which the user has not set."""
    u, y = record(80)
    model = SparseBayesNARXRegressor(1, 1, tol=1.0, random_state=0, warm_start=True)
    model.fit(u, y).set_params(focus="simulation")
    problem = r"Keep focus='prediction', set groups=\('row', 'column'\), or"
    with pytest.raises(ValueError, match=problem):
        model.fit(u, y)
    model.set_params(groups=("row", "column")).fit(u, y)
    assert model.score(u, y) == model.score(u, y, horizon=None)


def test_what_a_free_run_cannot_begin_with():
    u, y = record(80)
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=(), tol=1.0).fit(u, y)
    gap = y[:6].copy()
    gap[4] = np.nan
    refused = [
        ({"y_init": gap}, "got NaN in row 4.*Fill it in, or leave out"),
        ({"y_init": 0.5}, r"got 0\.5\. Pass \[0\.5\]"),
        ({"horizon": 5}, "horizon=5 counts steps from measured outputs.*as y"),
    ]
    for arguments, problem in refused:
        with pytest.raises(ValueError, match=problem):
            model.predict(u, **arguments)
    model.predict(u, horizon=1)
    model.predict(u, y_init=[0.5])
