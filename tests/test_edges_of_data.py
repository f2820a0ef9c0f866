"""Data at the edges: what is refused or warned of, and never ignored silently."""

import datetime
import re
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator

from skbayesnn import (
    ContrastiveDivergenceRBM,
    DynamicSystemRegressor,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    metrics,
)
from skbayesnn.exceptions import DivergenceWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.tanh(X[:, 0]) + 0.1 * RNG.normal(size=40)
V = RNG.random((40, 6)) < 0.4


def perceptron(**options):
    options = dict(tol=10.0, random_state=0) | options
    return SparseBayesMLPRegressor(3, **options)


def lagged(**options):
    return SparseBayesNARXRegressor(
        1, 1, hidden_layer_sizes=2, tol=10.0, random_state=0, **options
    )


def machine(**options):
    return ContrastiveDivergenceRBM(3, max_iter=1, random_state=0, **options)


# Scales


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("make", [perceptron, lagged])
@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e-151])
def test_scales_that_underflow_are_refused(make, scale, normalize):
    model = make(normalize=normalize)
    for name, data in {
        "X": (X * scale, Y),
        "X .* column 1": (X * [1.0, scale], Y),
        "y": (X, Y * scale),
    }.items():
        with pytest.raises(ValueError, match=f"^{name.split()[0]} varies too little"):
            model.fit(*data)


@pytest.mark.parametrize("make", [perceptron, lagged])
def test_the_smallest_scales_are_learned(make):
    scale = 1e-149
    plain, small = make().fit(X, Y), make().fit(X * scale, Y * scale)
    arguments = ((X, Y), (X * scale, Y * scale))
    if make is perceptron:
        arguments = ((X,), (X * scale,))
    for expected, found in zip(
        plain.predict(*arguments[0], return_std=True),
        small.predict(*arguments[1], return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(found / scale, expected, rtol=1e-6, atol=1e-9)
    assert np.isfinite(small.log_marginal_likelihood_)


@pytest.mark.parametrize("make", [perceptron, lagged])
@pytest.mark.parametrize("name, scale", [("y", 1e-6), ("y", 1e6), ("X", 1e-6)])
def test_data_that_the_priors_do_not_expect_are_warned_of(make, name, scale):
    data = (X, Y * scale) if name == "y" else (X * scale, Y)
    with pytest.warns(UserWarning, match=f"^{name} has a standard deviation") as record:
        make(normalize=False).fit(*data)
    assert {warning.filename for warning in record} == {__file__}
    make(normalize=False).fit(X, Y)
    make().fit(*data)


# Masked arrays and missing values


def masked(array, place):
    array = np.ma.masked_array(array, mask=np.zeros(np.shape(array), dtype=bool))
    array[place] = np.ma.masked
    return array


MASKED_X, MASKED_Y, MASKED_V = masked(X, (3, 1)), masked(Y, 3), masked(V * 1.0, (3, 1))


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: perceptron().fit(MASKED_X, Y), "X"),
        (lambda: perceptron().fit(X, MASKED_Y), "y"),
        (lambda: perceptron().fit(X, Y).predict(MASKED_X), "X"),
        (lambda: perceptron().fit(X, Y).sample_y(MASKED_X), "X"),
        (lambda: lagged().fit(MASKED_X, Y), "X"),
        (lambda: lagged().fit(X, MASKED_Y), "y"),
        (lambda: lagged().fit(X, Y, sessions=masked(np.zeros(40), 3)), "sessions"),
        (lambda: lagged().fit(X, Y).predict(MASKED_X, Y), "X"),
        (lambda: lagged().fit(X, Y).predict(X, MASKED_Y), "y"),
        (lambda: lagged().fit(X, Y).predict(X, y_init=MASKED_Y[:5]), "y_init"),
        (lambda: lagged().fit(X, Y).stream(MASKED_X[:5], Y[:5]), "X_init"),
        (lambda: machine().fit(MASKED_V), "X"),
        (lambda: machine().partial_fit(MASKED_V), "X"),
        (lambda: machine().fit(V).transform(MASKED_V), "X"),
        (lambda: machine().fit(V).impute(MASKED_V), "X"),
        (lambda: machine().fit(V).sample(clamp=MASKED_V[3]), "clamp"),
        (lambda: machine().fit(V).inverse_transform(masked(V[:, :3], (3, 1))), "H"),
        (lambda: metrics.fit_index(Y, MASKED_Y), "y_pred"),
        (lambda: metrics.residual_analysis(Y, MASKED_X), "X"),
    ],
)
def test_a_mask_is_not_ignored(call, name):
    with pytest.raises(ValueError, match=f"^{name} is a masked array.*filled"):
        call()


def test_a_mask_that_hides_nothing_is_no_harm():
    some = np.ma.masked_array(X), np.ma.masked_array(Y)
    expected = perceptron().fit(X, Y).predict(X)
    np.testing.assert_array_equal(perceptron().fit(*some).predict(some[0]), expected)


def searching():
    return DynamicSystemRegressor(kinds=("linear",), random_state=0)


@pytest.mark.parametrize("make", [lagged, searching])
def test_inputs_that_are_constant_are_named_once(make):
    """Also where values are missing; a model without inputs has none."""
    constant = np.full(40, 3.0)
    constant[7] = np.nan
    frame = pd.DataFrame({"valve": X[:, 0], "off": constant, "zero": 0.0})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        make().fit(frame, Y)
    texts = [str(one.message) for one in found if "constant" in str(one.message)]
    (text,) = texts
    assert text.startswith("Inputs off, zero are constant in X")
    with pytest.warns(UserWarning, match="^Input x1 is constant in X"):
        make().fit(np.column_stack([X[:, 0], np.ones(40)]), Y)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*constant")
        lagged().fit(None, Y)
        lagged().fit(X, Y)


def test_missing_values_of_pandas_are_missing_values():
    y = np.where(np.arange(40) == 20, np.nan, Y)
    expected = lagged().fit(X, y).predict(X, y)
    column = pd.Series(y, dtype="Float64")
    np.testing.assert_array_equal(lagged().fit(X, column).predict(X, column), expected)
    assert np.isnan(expected[21])


@pytest.mark.parametrize(
    "sessions",
    [
        np.where(np.arange(40) == 7, np.nan, 1.0),
        np.array([None if row == 7 else "a" for row in range(40)], dtype=object),
        np.array([np.nan if row == 7 else 1 for row in range(40)], dtype=object),
        pd.array([None if row == 7 else 1 for row in range(40)], dtype="Int64"),
        pd.to_datetime(["NaT" if row == 7 else "2020-01-01" for row in range(40)]),
    ],
    ids=["float", "None", "object", "pandas", "time"],
)
def test_a_missing_session_is_named(sessions):
    with pytest.raises(ValueError, match="missing in 1 rows, the first .* row 7"):
        lagged().fit(X, Y, sessions=sessions)
    model = lagged().fit(X, Y, sessions=["a"] * 40)
    with pytest.raises(ValueError, match="missing in 1 rows, the first .* row 7"):
        model.predict(X, Y, sessions=sessions)


@pytest.mark.parametrize("options", [{}, {"n_estimators": 2}])
@pytest.mark.parametrize("horizon", [1, 3, None])
def test_of_a_missing_value_nothing_is_known(options, horizon):
    model = lagged(**options).fit(X, Y)
    y = Y.copy()
    y[0] = np.nan
    mean, std = model.predict(X, y, horizon=horizon, return_std=True)
    assert np.isnan(mean[0])
    np.testing.assert_array_equal(np.isnan(mean), np.isnan(std))
    mean, std = model.predict(X, Y, horizon=horizon, return_std=True)
    assert std[0] == 0.0 and np.isfinite(std).all()


# Arguments of methods


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "2", None])
def test_draws_are_counted(n_samples):
    models = (perceptron(), X), (lagged(), X)
    for model, inputs in models:
        with pytest.raises(ValueError, match=f"n_samples .*got {n_samples!r}"):
            model.fit(X, Y).sample_y(inputs, n_samples=n_samples)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_a_clamp_is_finite(value):
    with pytest.raises(ValueError, match="clamp must hold finite values"):
        machine().fit(V).sample(clamp=[value] + 5 * [np.nan])


def test_scikit_learn_has_no_predictions_with_one_column():
    flat, column = perceptron().fit(X, Y), perceptron().fit(X, Y[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = flat.to_mlp_regressor()
    assert other.predict(X).shape == flat.predict(X).shape
    with pytest.warns(UserWarning, match=re.escape("(n_samples,)")) as record:
        other = column.to_mlp_regressor()
    assert {warning.filename for warning in record} == {__file__}
    np.testing.assert_allclose(other.predict(X)[:, None], column.predict(X))


def test_a_growth_that_has_all_units_has_a_history():
    V = load_digits().data[:200] > 7  # in which a step always finds a unit

    def growing(n_components, **options):
        return FrankWolfeRBM(n_components, n_chains=100, random_state=0, **options)

    first = growing(3).fit(V)
    model = growing(3, init=FrozenEstimator(first), early_stopping=True).fit(V)
    history = model.history_
    assert model.n_iter_ == 1
    assert {name: len(values) for name, values in history.items()} == dict.fromkeys(
        history, 1
    )
    assert first.history_.keys() < history.keys()
    assert history["n_components"][0] == 3 and history["change"][0] == 0
    for name in ("free_energy", "gap", "seconds"):
        assert np.isfinite(history[name]).all()
    # and it goes on from there
    model.set_params(warm_start=True, n_components=4).fit(V)
    assert model.history_["n_components"].tolist() == [3, 4]


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_a_start_that_is_far_off_overflows_quietly(focus):
    model = lagged(focus=focus).fit(X, Y * 1e-140)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", DivergenceWarning)
        assert model.predict(X, y_init=[1e99])[0] == 1e99


# What the fuzz of `test_fuzz.py` found


@pytest.mark.parametrize("seed", [-1, "seed", 2**40, 1.5])
def test_a_random_state_of_a_method_is_named(seed):
    model = machine().fit(V)
    for call in (
        lambda: perceptron().fit(X, Y).sample_y(X, random_state=seed),
        lambda: lagged().fit(X, Y).sample_y(X, random_state=seed),
        lambda: model.gibbs(V, random_state=seed),
        lambda: model.sample(random_state=seed),
        lambda: model.impute(V, random_state=seed),
        lambda: model.log_partition(random_state=seed),
    ):
        with pytest.raises(ValueError, match=f"random_state must .*got {seed!r}"):
            call()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
@pytest.mark.parametrize("name", ["reg_lambda", "noise_variance", "tol"])
def test_parameters_of_any_precision(dtype, name):
    """A number of few digits is below a bound that it could not hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        perceptron(**{name: dtype(0.5)}).fit(X, Y)


@pytest.mark.parametrize(
    "model, name",
    [(machine, "batch_size"), (perceptron, "n_restarts"), (lagged, "n_estimators")],
)
def test_true_is_no_number(model, name):
    data = (V,) if model is machine else (X, Y)
    with pytest.raises(ValueError, match=f"'{name}' parameter .* Got True"):
        model(**{name: True}).fit(*data)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_infinities_of_both_signs_are_refused_without_a_warning(dtype):
    bad = X.astype(dtype)
    bad[3], bad[4] = np.inf, -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fit in (
            lambda: perceptron().fit(bad, Y),
            lambda: perceptron().fit(X, bad),
            lambda: lagged().fit(bad, Y),
            lambda: lagged().fit(X, bad),
            lambda: machine().fit(bad),
            lambda: machine(init=(bad.T, np.zeros(2), np.zeros(30))).fit(V.T),
            lambda: machine().fit(V).inverse_transform(bad),
            lambda: metrics.residual_analysis(bad),
        ):
            with pytest.raises(ValueError, match="infinity"):
                fit()


def test_missing_values_among_objects_are_told_by_their_name():
    y = Y.astype(object)
    y[3] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN"):
        perceptron().fit(X, y)


@pytest.mark.parametrize("value", [None, datetime.datetime(2020, 1, 1)])
@pytest.mark.parametrize("binarize", [0.5, None])
def test_objects_in_lists_are_no_states(value, binarize):
    rows = V.astype(float).tolist()
    rows[1][2] = value
    with pytest.raises(
        (ValueError, TypeError), match=r"X contains NaN|float\(\) argument"
    ):
        machine(binarize=binarize).fit(rows)


def test_a_unit_whose_weights_diverge_names_the_radius():
    model = FrankWolfeRBM(2, learning_rate=1e4, n_chains=4, random_state=0)
    with pytest.raises(ValueError, match="Reduce .*radius"):
        model.fit(np.random.default_rng(1).random((40, 3)) < 0.4)


@pytest.mark.parametrize("threshold", [1e300, -1e300])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8])
def test_a_threshold_beyond_the_type_of_the_states(threshold, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for rows in (V.astype(dtype), sp.csr_array(V.astype(np.float32))):
            model = machine(binarize=threshold)
            if threshold < 0 and sp.issparse(rows):
                # zeros, which a sparse matrix does not hold, would be ones
                continue
            all_0 = pytest.warns(DataConversionWarning, match="all were taken as 0")
            with all_0 if threshold > 0 else nullcontext():
                model.fit(rows)
            rates = 1 / (1 + np.exp(-model.base_intercept_))
            assert ((rates > 0.5) == (threshold < 0)).all()


def test_a_weight_decay_that_diverges_is_named():
    model = machine(weight_decay=1e4, batch_size=1)
    with pytest.raises(ValueError, match="weights diverged.* weight_decay"):
        model.fit(V)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda lazy: perceptron().fit(lazy, Y), "X"),
        (lambda lazy: lagged().fit(lazy, Y), "X"),
        (lambda lazy: lagged().fit(X, lazy), "y"),
        (lambda lazy: lagged().fit(X, Y).predict(lazy, Y), "X"),
        (lambda lazy: machine().fit(lazy), "X"),
        (lambda lazy: machine().fit(V).transform(lazy), "X"),
    ],
)
def test_a_frame_that_is_not_computed_yet(call, name):
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"a": X[:, 0]}).lazy()
    with pytest.raises(TypeError, match=rf"^{name} is a LazyFrame.*{name}.collect\(\)"):
        call(lazy)


def test_categories_beside_what_is_no_text():
    frame = pd.DataFrame({"size": pd.Categorical(["s", "m"] * 20), "on": [True] * 40})
    for model in (perceptron(), lagged()):
        with pytest.raises(ValueError, match="found the text 's' in column 'size'"):
            model.fit(frame, Y)


def test_validation_rows_of_which_there_are_none():
    with pytest.raises(ValueError, match="^X_val must hold at least one row; got none"):
        machine().fit(V, X_val=V[:0])


def test_one_value_for_all_has_no_threshold_between():
    with pytest.warns(DataConversionWarning, match="less than 2 if that means 1"):
        machine().fit(V).sample(clamp=np.full(V.shape[1], 2.0))
