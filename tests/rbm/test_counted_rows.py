"""Weights of rows: a row of weight k is k rows."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import BOUND, CLASSES, digits, small
from sklearn.exceptions import DataConversionWarning

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.training import given_rows
from skbayesnn.rbm.training.given_rows import counted_rows, warn_if_no_counts
from skbayesnn.rbm.training.job import split_rows
from skbayesnn.rbm.training.rows import Rows

NAMES = ("components_", "intercept_hidden_", "intercept_visible_")


def weighted():
    X = digits()
    return X, np.random.default_rng(0).integers(0, 4, size=len(X))


def assert_same_model(one, other):
    for name in NAMES:
        assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kind", CLASSES)
def test_weights_are_copies(kind, container):
    X, weights = weighted()
    copies = small(kind).fit(container(np.repeat(X, weights, axis=0)))
    model = small(kind).fit(container(X), sample_weight=weights)
    assert_same_model(model, copies)
    assert_same_model(
        small(kind).fit(X, sample_weight=np.ones(len(X))), small(kind).fit(X)
    )
    later = model.partial_fit(container(X), sample_weight=weights.astype(float))
    assert_same_model(later, copies.partial_fit(np.repeat(X, weights, axis=0)))


@pytest.mark.parametrize(
    "model",
    [
        ContrastiveDivergenceRBM(6, max_updates=60, batch_size=50, random_state=0),
        pytest.param(
            FrankWolfeRBM(
                n_chains=50,
                fine_tune=ContrastiveDivergenceRBM(max_updates=30, batch_size=50),
                random_state=0,
            ),
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.MixingWarning")
def test_automatic_training_counts_copies(model):
    X, weights = weighted()
    # they were drawn at random
    with pytest.warns(DataConversionWarning, match="count equal observations"):
        one = model.fit(X, sample_weight=weights)
    components, history = one.components_.copy(), one.history_
    other = model.fit(np.repeat(X, weights, axis=0))
    assert_array_equal(components, other.components_)
    assert_array_equal(history["log_likelihood"], other.history_["log_likelihood"])


@pytest.mark.parametrize("factor, together", [(1.0, False), (7.3, True)])
def test_only_counted_observations_are_held_out_one_by_one(factor, together):
    """Copies of a row that only matters more would tell what is held out."""
    _, weights = weighted()
    rows = Rows(digits(), 0.5)
    copies = counted_rows(rows, factor * weights, 0).in_canonical_order()
    train, held_out = split_rows(copies, 0.2, 0)
    assert len(train) + len(held_out) == len(copies)
    assert 0 <= len(held_out) - 0.2 * len(copies) < 1 + together * factor * 3
    both = np.intersect1d(train.index, held_out.index)
    assert bool(len(both)) != together
    # the order of the rows changes nothing
    order = np.random.default_rng(2).permutation(len(rows))
    moved = Rows(digits()[order], 0.5).repeated(np.full(len(rows), 2), together)
    whole = rows.repeated(np.full(len(rows), 2), together)
    for one, other in zip(
        split_rows(whole.in_canonical_order(), 0.2, 0),
        split_rows(moved.in_canonical_order(), 0.2, 0),
        strict=True,
    ):
        assert_array_equal(one.take(slice(None)), other.take(slice(None)))


@pytest.mark.parametrize(
    "kind, warns",
    [
        ("counts", False),
        ("weights", True),
        ("equal", True),
        ("few copies", False),
        ("fractions", False),
        ("most states", False),
    ],
)
def test_integers_that_tell_nothing_of_the_rows_may_be_no_counts(kind, warns):
    """Weights of a survey had made the test rows a nat less likely, without a word."""
    rng = np.random.default_rng(0)
    n_features = 4 if kind == "most states" else 12
    rates = rng.uniform(0.05, 0.4, n_features)
    drawn = rng.random((2000, n_features)) < rates
    X, times = np.unique(drawn, axis=0, return_counts=True)
    if kind in ("weights", "fractions", "most states"):
        times = rng.integers(1, 9, len(X))
    if kind == "fractions":
        times = times + 0.5
    if kind == "equal":
        times = np.full(len(X), 5)
    if kind == "few copies":
        times = np.where(rng.random(len(X)) < 0.2, 2, 1)
    rows = counted_rows(Rows(X, 0.5), times.astype(float), 0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warn_if_no_counts(rows)
    assert [one.category for one in heard] == [DataConversionWarning] * warns
    if kind == "weights":
        # what is advised is right
        factor = float(
            re.search(r"multiply them by (\S+)\. ", str(heard[0].message))[1]
        )
        check_weights_of_another_kind(X, factor * times)
    if kind == "equal":
        assert "leave them out" in str(heard[0].message)


def check_weights_of_another_kind(X, weights):
    """No row gets lost, and all copies of one are held out together."""
    assert 7 < weights.mean() < 16
    rows = counted_rows(Rows(X, 0.5), weights, 0)
    assert rows.together
    times = np.bincount(rows.index, minlength=len(X))
    assert times.min() > 0 or weights.min() < 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_no_counts(rows)


@pytest.mark.parametrize("unit", [1, 2, 10])
@pytest.mark.parametrize("largest", [4, 8, 40, 3000])
def test_integers_become_weights_of_another_kind(unit, largest):
    rng = np.random.default_rng(largest)
    X = rng.random((400, 12)) < 0.3
    times = unit * rng.integers(1, largest, len(X))
    advice = given_rows._as_fractions(times)
    factor = float(re.search(r"multiply them by (\S+)\. ", advice)[1])
    check_weights_of_another_kind(X, factor * times)


@pytest.mark.parametrize("grows", [True, False])
def test_a_fine_tuner_that_holds_rows_out_warns_too(grows):
    X, weights = weighted()
    tuner = ContrastiveDivergenceRBM(2, max_iter=1, early_stopping=True)
    growing = FrankWolfeRBM(1, n_chains=20, n_corrective_steps=1, fine_tune=tuner)
    model = growing if grows else tuner
    with pytest.warns(DataConversionWarning, match="count equal observations"):
        model.fit(X, sample_weight=weights)


def test_fractions_are_right_on_average():
    rows = Rows(digits(), 0.5)
    weights = np.random.default_rng(1).uniform(0.0, 3.0, size=len(rows))
    counts = np.zeros(len(rows))
    n_draws = 300
    for seed in range(n_draws):
        taken = counted_rows(rows, weights, seed)
        assert abs(len(taken) - weights.sum()) < 1.0
        times = np.bincount(taken.index, minlength=len(rows))
        assert (np.abs(times - weights) < 1.0).all()
        counts += times
    # of a number that is rounded at random, the variance is at most a quarter
    assert_allclose(counts / n_draws, weights, atol=BOUND * 0.5 / np.sqrt(n_draws))


def test_a_weight_moves_the_model():
    X, _ = weighted()
    weights = np.where(X[:, 20] > 0.5, 9.0, 1.0)
    model = small(ContrastiveDivergenceRBM).set_params(max_iter=30, n_components=2)
    plain = model.fit(X).sample(400, random_state=0)[:, 20].mean()
    heavy = (
        model.fit(X, sample_weight=weights).sample(400, random_state=0)[:, 20].mean()
    )
    assert heavy > plain + 0.1


@pytest.mark.parametrize(
    "weights, problem",
    [
        (0.0, "zero"),
        (-1.0, "Negative values"),
        (np.nan, "NaN"),
        (1e9, r"must sum to 1 to 1e.*by a factor of at most 0\.000333\."),
        (1e-9, r"Multiply it by 1e\+10, for a mean of 10\. A row gets a whole"),
    ],
)
@pytest.mark.parametrize("kind", CLASSES)
def test_weights_that_count_nothing_are_refused(kind, weights, problem, tmp_path):
    X, _ = weighted()
    model = small(kind).set_params(checkpoint=tmp_path / "fit.npz")
    with pytest.raises(ValueError, match=problem):
        model.fit(X, sample_weight=np.full(len(X), weights))
    with pytest.raises(ValueError, match="sample_weight.*shape"):
        model.fit(X, sample_weight=np.ones(len(X) + 1))


@pytest.mark.parametrize("kind", CLASSES)
def test_weights_that_leave_out_most_rows_are_told_of(kind):
    """As those that sum to one; but not those that are 0."""
    X, _ = weighted()
    n_rows = len(X)
    with pytest.warns(DataConversionWarning, match="training sees 2 of them") as told:
        small(kind).fit(X, sample_weight=np.full(n_rows, 2.0 / n_rows))
    factor = 10 * n_rows / 2
    assert f"Multiply it by {factor:.3g}, for a mean of 10" in str(told[0].message)
    assert told[0].filename == __file__
    small(kind).fit(X, sample_weight=np.arange(n_rows) < n_rows // 3)


def test_a_checkpoint_belongs_to_its_weights(tmp_path):
    X, weights = weighted()
    model = small(ContrastiveDivergenceRBM).set_params(checkpoint=tmp_path / "fit.npz")
    model.fit(X, sample_weight=weights)
    model.fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, sample_weight=weights + 1)


@pytest.mark.parametrize("kind", CLASSES)
def test_missing_values_point_to_impute(kind):
    X = digits().astype(float)
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN.*impute\(X\)"):
        small(kind).fit(X)
    complete = ~np.isnan(X).any(axis=1)
    assert np.isfinite(small(kind).fit(X[complete]).impute(X, n_steps=4)).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kind", CLASSES)
def test_the_order_of_the_rows_does_not_matter(kind, container):
    X, _ = weighted()
    order = np.random.default_rng(1).permutation(len(X))
    assert_same_model(
        small(kind).fit(container(X)), small(kind).fit(container(X[order]))
    )


def test_equal_rows_of_any_kind_have_the_same_order():
    X, _ = weighted()
    expected = Rows(X, 0.5).in_canonical_order().take(slice(None))
    for values, threshold in [(X.astype(bool), 0.5), (X.astype(np.float64), None)]:
        for container in (np.asarray, sp.csr_array):
            rows = Rows(container(values), threshold).in_canonical_order()
            assert_array_equal(rows.take(slice(None)), expected)
    # only the order has changed
    assert_array_equal(np.unique(expected, axis=0), np.unique(X, axis=0))
