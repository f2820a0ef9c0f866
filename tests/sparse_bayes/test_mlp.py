"""The static core: results, uncertainty, parameters, bad input and bad days."""

import pickle

import joblib
import numpy as np
import pytest
from fitted_models import fitted_network
from grids import first_by_default, mostly_pandas
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import SparseBayesMLPRegressor
from skbayesnn.sparse_bayes.prediction import posterior

NOISE = 0.05

# the subject is not whether the fit has come to its end
UNFINISHED = pytest.mark.filterwarnings("ignore:The objective was still falling")


def sine_data(n_samples=200, seed=0):
    """One relevant input of four."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n_samples, 4))
    return X, np.sin(2 * X[:, 0]) + NOISE * rng.standard_normal(n_samples)


def two_outputs(n_samples=150, seed=0):
    X, y = sine_data(n_samples, seed)
    rng = np.random.default_rng(seed + 100)
    return X, np.column_stack([y, 40 + 10 * (X[:, 1] + 0.1 * rng.normal(size=len(X)))])


@pytest.fixture(scope="module")
def fitted():
    X, y = sine_data()
    return SparseBayesMLPRegressor(random_state=0).fit(X, y), X, y


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", "student_t"])
@pytest.mark.parametrize("seed", range(3))
def test_a_clean_output_beside_a_noisy_one(noise, seed):
    """It is learned beyond its own noise, and both have bands of their own width."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(500, 2))
    clean = np.column_stack([1e3 * np.sin(2 * X[:, 0]), 1e-3 * X[:, 0] * X[:, 1]])
    scale, share = clean.std(axis=0), np.array([0.005, 0.3])
    y = clean + share * scale * rng.standard_normal(clean.shape)
    model = SparseBayesMLPRegressor(noise=noise, random_state=seed).fit(
        X[:250], y[:250]
    )
    assert_allclose(np.sqrt(model.noise_variance_) / scale, share, rtol=0.3)
    mean, std = model.predict(X[250:], return_std=True)
    assert ((mean - clean[250:]).std(axis=0) < share * scale).all()
    inside = (np.abs(y[250:] - mean) < 1.96 * std).mean(axis=0)
    assert ((inside > 0.9) & (inside < 0.99)).all()


@UNFINISHED
def test_a_warm_start_keeps_the_noise_of_each_output():
    X, y = two_outputs()
    model = SparseBayesMLPRegressor(warm_start=True, random_state=0).fit(X, y)
    learned = model.noise_variance_
    model.set_params(max_cycles=1).fit(X, y)
    assert_allclose(model.noise_variance_, learned, rtol=0.01)


def test_draws_have_the_correlation_of_the_errors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 1))
    common, own = rng.standard_normal((400, 1)), rng.standard_normal((400, 3))
    errors = np.array([1.0, -1.0, 0.0]) * common + 0.5 * own
    model = SparseBayesMLPRegressor(random_state=0).fit(X, X + 0.3 * errors)
    draws = model.sample_y(X[:50], n_samples=400, random_state=0)
    around = draws - draws.mean(axis=-1, keepdims=True)
    found = np.corrcoef(np.moveaxis(around, 1, 0).reshape(3, -1))
    assert_allclose(found, np.corrcoef(errors.T), atol=0.05)
    _, std = model.predict(X[:50], return_std=True)
    assert_allclose(draws.std(axis=-1), std, rtol=0.2)


def assert_same_model(first, second):
    for a, b in zip(
        [*first.coefs_, *first.intercepts_],
        [*second.coefs_, *second.intercepts_],
        strict=True,
    ):
        assert_array_equal(a, b)


def test_learns_function_noise_and_relevance(fitted):
    model, _, _ = fitted
    X, y = sine_data(1000, seed=1)
    rmse = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    assert rmse < 1.2 * NOISE
    # the estimate of a standard deviation from 200 samples spreads by 5 %
    assert np.sqrt(model.noise_variance_) == pytest.approx(NOISE, rel=0.2)
    assert model.feature_relevance_[0] > 20 * model.feature_relevance_[1:].max()


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param("element", marks=pytest.mark.slow),
        "row",
        "column",
        pytest.param(("row", "column"), marks=pytest.mark.slow),
    ],
)
def test_fitted_attributes_have_full_shape(groups):
    X, y = sine_data()
    model = SparseBayesMLPRegressor((7, 5), groups=groups, random_state=0).fit(X, y)
    shapes = [(4, 7), (7, 5), (5, 1)]
    for values in (model.coefs_, model.masks_, model.prior_variance_):
        assert [v.shape for v in values] == shapes
    assert [b.shape for b in model.intercepts_] == [(7,), (5,), (1,)]
    n_kept = sum(mask.sum() for mask in model.masks_)
    assert n_kept == model.history_["n_active_weights"][-1] < 4 * 7 + 7 * 5 + 5
    for coef, mask, variance in zip(
        model.coefs_, model.masks_, model.prior_variance_, strict=True
    ):
        assert mask.dtype == bool
        assert not coef[~mask].any() and not variance[~mask].any()
        assert (np.abs(coef[mask]) >= model.kappa_weight).all()
        assert (variance[mask] >= model.kappa_variance).all()
    covariance = model.posterior_covariance_
    assert_allclose(covariance, covariance.T, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10
    lengths = {len(column) for column in model.history_.values()}
    assert lengths == {model.n_cycles_}
    assert model.n_iter_ == model.history_["n_iter"].sum() >= model.n_cycles_


def test_objective_falls_in_every_cycle(fitted):
    model, _, _ = fitted
    history = model.history_
    assert (history["objective"] <= history["objective_start"] + 1e-6).all()
    assert history["objective"][-1] < history["objective"][0]


@UNFINISHED
@pytest.mark.parametrize("solver", first_by_default(["lbfgs", "adam"]))
def test_solvers_reach_the_same_quality(solver):
    X, y = sine_data()
    model = SparseBayesMLPRegressor(
        8, solver=solver, max_iter=100, max_cycles=30, tol=1e-2
    )
    model = model.set_params(random_state=0).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 1.5 * NOISE


@UNFINISHED
@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
@pytest.mark.parametrize("normalize", [True, False])
def test_to_mlp_regressor_predicts_the_same(activation, normalize):
    X, Y = two_outputs()
    model = SparseBayesMLPRegressor(
        (6, 4), activation, normalize=normalize, max_cycles=5, tol=1.0, random_state=0
    )
    model.fit(X, Y)
    other = model.to_mlp_regressor()
    assert_allclose(other.predict(X), model.predict(X), rtol=1e-9, atol=1e-9)
    model.fit(X, Y[:, 0])
    assert_allclose(
        model.to_mlp_regressor().predict(X), model.predict(X), rtol=1e-9, atol=1e-9
    )


@UNFINISHED
def test_to_mlp_regressor_is_that_of_the_fit():
    """Parameters that are set afterwards are those of the next one."""
    X, Y = two_outputs()
    model = SparseBayesMLPRegressor((6, 4), max_cycles=2, tol=1.0, random_state=0)
    model.fit(X, Y).set_params(activation="relu", hidden_layer_sizes=7)
    other = model.to_mlp_regressor()
    assert other.hidden_layer_sizes == (6, 4) and other.activation == "tanh"
    assert_allclose(other.predict(X), model.predict(X), rtol=1e-9, atol=1e-9)


def test_linear_model_agrees_with_least_squares_and_its_errors():
    """Without hidden layer and prior this is ordinary least squares."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=300)
    model = SparseBayesMLPRegressor((), reg_lambda=0.0).fit(X, y)
    reference = LinearRegression().fit(X, y)
    assert_allclose(model.predict(X), reference.predict(X), rtol=1e-6)
    residual = y - reference.predict(X)
    noise = residual @ residual / len(y)
    assert model.noise_variance_ == pytest.approx(noise, rel=1e-3)
    # the prior variance of 1 (weights) and 100 (bias) is flat beside this likelihood
    design = np.column_stack([X, np.ones(len(X))])
    spread = np.einsum("ij,jk,ik->i", design, np.linalg.inv(design.T @ design), design)
    _, std = model.predict(X, return_std=True)
    assert_allclose(std, np.sqrt(noise * (1 + spread)), rtol=1e-3)


def test_std_agrees_with_draws_of_a_linear_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, -2.0] + 0.5 * rng.normal(size=40)
    model = SparseBayesMLPRegressor(()).fit(X, y)
    far = 5 * X[:10]
    mean, std = model.predict(far, return_std=True)
    n_draws = 4000
    draws = model.sample_y(far, n_draws, random_state=1)
    assert draws.shape == (10, n_draws)
    assert_allclose(draws.mean(axis=1), mean, atol=5 * std.max() / np.sqrt(n_draws))
    # the standard error of a standard deviation is std / sqrt(2 n)
    assert_allclose(draws.std(axis=1), std, rtol=5 / np.sqrt(2 * n_draws))
    assert_array_equal(draws, model.sample_y(far, n_draws, random_state=1))


@pytest.mark.parametrize("n_outputs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_outside_the_range_of_the_data_nothing_is_known(n_outputs):
    """By the square of the distance, and the distance itself less a tenth."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 3))
    X[[0, 1], 0] = -1.0, 1.0
    y = np.sin(2.0 * X[:, :1]) * np.arange(1, n_outputs + 1)
    y = y + 0.1 * rng.standard_normal(y.shape)
    model = SparseBayesMLPRegressor(8, random_state=0).fit(X, y)
    assert_array_equal(model.feature_relevance_ > 0.0, [True, False, False])
    far = np.zeros((5, 3))
    far[:, 0] = 0.9, 1.0, 1.1, -1.4, 9.0
    distance = np.array([0.0, 0.0, 0.05, 0.2, 4.0])
    unknown = np.maximum(distance**2, distance - 0.1)[:, None] * y.std(axis=0)
    mean, std = model.predict(far, return_std=True)
    plain = posterior.std(model._fitted, far)
    assert_allclose(std, np.hypot(plain, unknown), rtol=1e-12)
    assert (std[-1] > 10.0 * plain[-1]).all()
    # what was pruned has no effect there either
    far[:, 1:] = 1e3
    assert_array_equal(model.predict(far, return_std=True)[1], std)
    draws = model.sample_y(far, 4000)
    assert_allclose(draws.mean(axis=2), mean, atol=5.0 * std.max() / np.sqrt(4000))
    assert_allclose(draws.std(axis=2), std, rtol=5.0 / np.sqrt(2 * 4000))


@pytest.mark.parametrize("n_sets", first_by_default([4, 20]))
def test_intervals_cover(n_sets):
    """Nominal 95 % intervals of new observations, over several data sets."""
    covered = []
    for seed in range(n_sets):
        X, y = sine_data(seed=seed)
        model = SparseBayesMLPRegressor(10, random_state=seed, tol=1e-3).fit(X, y)
        X, y = sine_data(seed=seed + 1000)
        mean, std = model.predict(X, return_std=True)
        covered.append(np.mean(np.abs(y - mean) < 1.96 * std))
    assert 0.92 < np.mean(covered) < 0.98


def test_several_outputs():
    X, Y = two_outputs()
    model = SparseBayesMLPRegressor(10, random_state=0).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape
    assert model.noise_variance_.shape == (2,)
    assert model.history_["rmse"].shape == (model.n_cycles_, 2)
    assert model.sample_y(X, 3).shape == (len(X), 2, 3)
    assert model.score(X, Y) > 0.98
    assert (model.feature_relevance_[:2] > 0.1).all()


def test_given_noise_is_kept_in_units_of_y():
    X, Y = two_outputs()
    noise = [0.05**2, 1.0]
    model = SparseBayesMLPRegressor(10, noise_variance=noise, random_state=0).fit(X, Y)
    assert_allclose(model.noise_variance_, noise)
    # a common factor of y and its noise changes nothing
    scaled = clone(model).set_params(noise_variance=np.multiply(noise, 100))
    scaled.fit(X, 10 * Y)
    assert_allclose(scaled.predict(X), 10 * model.predict(X), rtol=1e-6)
    change = len(X) * 2 * np.log(10)
    assert scaled.log_marginal_likelihood_ == pytest.approx(
        model.log_marginal_likelihood_ - change, rel=1e-6
    )


def test_regularisation_strength_and_kinds():
    X, y = sine_data()

    def n_weights(**parameters):
        model = SparseBayesMLPRegressor(10, random_state=0, tol=1e-3, **parameters)
        return model.fit(X, y).history_["n_active_weights"][-1]

    assert n_weights(reg_lambda=0.0, max_cycles=300, noise_variance=0.01) == 4 * 10 + 10
    assert n_weights(reg_lambda=[8.0, 2.0]) <= n_weights(reg_lambda=0.5) < 50
    assert n_weights(reweight=False, groups="element") < 50
    assert n_weights(kappa_weight=0.1) < 50


@pytest.mark.slow
@UNFINISHED
def test_curvature_forms_agree_where_they_must():
    """More weights than samples: the dual form of the same full curvature."""
    X, y = sine_data(60)
    full = SparseBayesMLPRegressor(20, curvature="full", random_state=0)
    auto = clone(full).set_params(curvature="auto")
    assert_same_model(full.fit(X, y), auto.fit(X, y))
    diag = clone(full).set_params(curvature="diag").fit(X, y)
    assert diag.posterior_covariance_.ndim == 1
    X, y = sine_data(200)
    assert diag.fit(X, y).score(X, y) > 0.98


def test_pruning_makes_cycles_cheaper():
    """A pruned unit leaves the arrays: the Jacobians of later cycles are smaller."""
    X, y = sine_data()
    model = SparseBayesMLPRegressor(30, groups="column", reg_lambda=4.0, tol=1e-3)
    model.set_params(random_state=0).fit(X, y)
    n_units = int(model.masks_[1].any(axis=1).sum())
    assert n_units == model.history_["n_active_units"][-1] < 30
    n_inputs = int(model.masks_[0].any(axis=1).sum())
    assert len(fitted_network(model).network.theta) == (n_inputs + 2) * n_units + 1


@UNFINISHED
def test_same_result_for_any_n_jobs(fitted):
    _, X, y = fitted
    model = SparseBayesMLPRegressor(6, n_restarts=3, max_cycles=10, tol=1e-2)
    model = model.set_params(random_state=3)
    alone = clone(model).fit(X, y)
    together = clone(model).set_params(n_jobs=2).fit(X, y)
    again = clone(model).fit(X, y)
    assert_same_model(alone, together)
    assert_same_model(alone, again)


def test_restarts_keep_the_lowest_objective():
    X, y = sine_data(80)
    best = SparseBayesMLPRegressor(5, n_restarts=4, random_state=0).fit(X, y)
    one = SparseBayesMLPRegressor(5, n_restarts=1, random_state=0).fit(X, y)
    last = best.history_["objective_pruned"][-1]
    assert last <= one.history_["objective_pruned"][-1]


def test_warm_start_goes_on():
    X, y = sine_data()
    model = SparseBayesMLPRegressor(10, warm_start=True, max_cycles=4, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_cycles=4"):
        first = model.fit(X, y).history_["objective"][-1]
    model.set_params(max_cycles=200).fit(X, y)
    assert model.history_["objective"][0] < first + 1e-6
    with pytest.raises(ValueError, match=r"warm_start=True.*\(4, 10, 1\)"):
        model.set_params(hidden_layer_sizes=9).fit(X, y)
    with pytest.raises(ValueError, match="warm_start=True.*'row'"):
        model.set_params(hidden_layer_sizes=10, groups="row").fit(X, y)
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("warm_start", [False, True])
def test_interrupt(warm_start, interrupt_after):
    """Ctrl-C keeps the last finished cycle with warm_start, else the old fit."""
    X, y = sine_data()
    model = SparseBayesMLPRegressor(10, warm_start=warm_start, random_state=0)
    interrupt_after(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    if warm_start:
        assert model.n_cycles_ == 3
        assert np.isfinite(model.predict(X)).all()
    else:
        assert not [name for name in vars(model) if name.endswith("_")]


def test_failed_refit_keeps_the_old_fit(fitted):
    X, y = sine_data()
    model = clone(fitted[0]).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((10, 2), np.nan), np.ones(10))
    assert model.n_features_in_ == 4
    assert_array_equal(model.predict(X), before)


def test_constant_input_is_pruned_and_constant_output_warned():
    X, y = sine_data()
    X[:, 1] = 7.0
    model = SparseBayesMLPRegressor(5, random_state=0).fit(X, y)
    assert model.feature_relevance_[1] == 0.0
    assert not model.masks_[0][1].any()
    with pytest.warns(UserWarning, match="y is constant"):
        model.fit(X, np.full(len(X), 3.0))
    mean, std = model.predict(X, return_std=True)
    assert_array_equal(mean, 3.0)
    assert (std < 1e-3).all()
    assert not model.feature_relevance_.any()


def test_all_inputs_constant_predicts_the_mean():
    y = np.random.default_rng(0).normal(size=50)
    model = SparseBayesMLPRegressor(5).fit(np.ones((50, 2)), y)
    assert_allclose(model.predict(np.ones((3, 2))), y.mean(), atol=1e-3)


BAD_PARAMETERS = {
    "hidden_layer_sizes": [(0,), (3, -1), 0, (2.5,), "ten"],
    "activation": ["sine", None],
    "groups": ["block", ("row", "block"), (), ("row", "row")],
    "reg_lambda": [-1.0, [1.0], [1.0, -1.0], [1.0, np.nan], np.inf, [[1.0, 1.0]]],
    "kappa_variance": [-1e-9],
    "kappa_weight": [-1e-9, "small"],
    "noise_variance": [0.0, -1.0, [1.0, 1.0], "none", [np.nan]],
    "curvature": ["exact"],
    "solver": ["sgd"],
    "max_cycles": [0, 2.5],
    "max_iter": [0, "many"],
    "tol": [-1.0],
    "n_restarts": [0],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_PARAMETERS.items() for value in values],
    ids=str,
)
def test_bad_parameters_are_named(name, value):
    X, y = sine_data(20)
    with pytest.raises(ValueError, match=name):
        SparseBayesMLPRegressor(**{name: value}).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.where(X > 0, np.inf, X), y), "infinity"),
        (lambda X, y: (X * 1e300, y), "X contains a value too large.*found"),
        (lambda X, y: (X, y * 1e300), "y contains a value too large.*found"),
        (lambda X, y: (X, np.where(y > 0, np.nan, y)), "NaN"),
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (X[:1], y[:1]), "1 sample"),
        (lambda X, y: (X[:, 0], y), "2D array"),
    ],
)
def test_bad_data_is_named(change, message):
    X, y = change(*sine_data(20))
    with pytest.raises(ValueError, match=message):
        SparseBayesMLPRegressor().fit(X, y)


def test_too_large_for_the_solver_says_what_to_do():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 100)), rng.normal(size=5000)
    with pytest.raises(ValueError, match="solver='lm'.*4096.*lbfgs"):
        SparseBayesMLPRegressor((100,)).fit(X, y)
    with pytest.raises(ValueError, match="curvature='full'"):
        SparseBayesMLPRegressor((100,), solver="lbfgs", curvature="full").fit(X, y)


def test_inputs_are_never_written():
    X, Y = two_outputs()
    X, Y = np.asfortranarray(X), np.asfortranarray(Y)
    copies = X.copy(), Y.copy()
    X.flags.writeable = Y.flags.writeable = False
    model = SparseBayesMLPRegressor(5, tol=1e-2, random_state=0).fit(X, Y)
    model.predict(X, return_std=True)
    model.sample_y(X)
    assert_array_equal(X, copies[0])
    assert_array_equal(Y, copies[1])


def test_pickle_joblib_and_clone(fitted, tmp_path):
    model, X, _ = fitted
    expected = model.predict(X, return_std=True)
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        assert_array_equal(copy.predict(X, return_std=True), expected)
    assert clone(model).get_params() == model.get_params()


@mostly_pandas()
def test_data_frames_and_float32(fitted, frames):
    model, X, y = fitted
    names = ["a", "b", "c", "d"]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    named = clone(model).fit(frame, frames.Series(y))
    assert list(named.feature_names_in_) == names
    assert_same_model(named, model)
    assert_array_equal(named.predict(frame), model.predict(X))
    single = clone(model).fit(X.astype(np.float32), y.astype(np.float32))
    assert_allclose(single.predict(X.astype(np.float32)), model.predict(X), atol=0.05)


def test_grid_search_in_a_pipeline():
    X, y = sine_data()
    pipeline = make_pipeline(
        StandardScaler(), SparseBayesMLPRegressor(8, tol=1e-2, random_state=0)
    )
    step = "sparsebayesmlpregressor__"
    grid = {step + "reg_lambda": [1.0, 4.0], step + "kappa_weight": [1e-3]}
    search = GridSearchCV(pipeline, grid, cv=KFold(2)).fit(X, y)
    assert search.best_score_ > 0.9


def test_verbose_prints_a_line_a_cycle(capsys):
    X, y = sine_data(50)
    model = SparseBayesMLPRegressor(3, verbose=True, random_state=0).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_cycles_
    assert lines[0].startswith("cycle 1: objective")


@pytest.mark.parametrize(
    "y",
    [
        np.array([1.0, None, 2.0, 3.0] * 5, dtype=object),
        np.array(["1.0", "nan", "2.0", "3.0"] * 5),
        np.array([[1.0, 0.0], [None, 1.0], [2.0, 0.5], [3.0, 0.0]] * 5, dtype=object),
    ],
    ids=["None", "text", "two outputs"],
)
def test_missing_targets_are_refused(y):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        SparseBayesMLPRegressor(3).fit(X, y)


@pytest.mark.parametrize("scaled", ["X", "y"])
def test_scales_that_underflow_are_refused(scaled):
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(20, 2)), "y": rng.normal(size=20)}
    data[scaled] = data[scaled] * 1e-170
    with pytest.raises(ValueError, match=f"{scaled} varies too little .* Rescale"):
        SparseBayesMLPRegressor(3).fit(**data)
    # the smallest that can be squared
    data[scaled] = data[scaled] * 1e30
    model = SparseBayesMLPRegressor(3, max_cycles=3)
    with pytest.warns(ConvergenceWarning):
        model.fit(**data)
    assert np.isfinite(model.log_marginal_likelihood_)


def moved(name, X, y):
    """The data of a second fit, in other units or at another level."""
    return {
        "same": (X, y),
        "three times": (X, 3.0 * y),
        "ten times": (X, 10.0 * y),
        "far": (X, y + 1000.0),
        "tiny": (X, 1e-3 * y),
        "inputs": (1e3 * X, y),
        "constant": (np.where(np.arange(3) == 1, 0.5, X), y),
    }[name]


@UNFINISHED
@pytest.mark.parametrize("name", ["same", "three times", "constant"])
def test_a_warm_start_takes_data_like_those_before(name):
    X, y = resumed_data()
    model = SparseBayesMLPRegressor(3, warm_start=True, max_cycles=2, random_state=0)
    model.fit(X, y).fit(*moved(name, X, y))


@UNFINISHED
@pytest.mark.parametrize("name", ["ten times", "far", "tiny", "inputs"])
def test_a_warm_start_warns_of_data_that_have_moved(name):
    X, y = resumed_data()
    model = SparseBayesMLPRegressor(3, warm_start=True, max_cycles=2, random_state=0)
    model.fit(X, y)
    with pytest.warns(ConvergenceWarning, match="keeps the scaling of the previous"):
        model.fit(*moved(name, X, y))


def resumed_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(200)
