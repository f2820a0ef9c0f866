"""Chains, samples and imputation of fitted RBMs."""

import naive
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from grids import first_by_default
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import BOUND, small, toy_data, twin
from sklearn.exceptions import DataConversionWarning

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm import few_missing, listed_states


@pytest.fixture(params=[True, False], ids=["listed", "chains"])
def either_way(request, monkeypatch):
    """Samples of few hidden units by the list of their states, or by chains."""
    if not request.param:
        monkeypatch.setattr(listed_states, "can_list", lambda rbm: False)


mostly_listed = pytest.mark.parametrize(
    "either_way", first_by_default([True, False]), indirect=True
)


def test_gibbs(fitted):
    X = toy_data(50)
    assert_array_equal(fitted.gibbs(X, 0), X)
    states = fitted.gibbs(X, 3, random_state=0)
    assert states.shape == X.shape and states.dtype == bool
    assert not np.array_equal(states, X)
    assert_array_equal(fitted.gibbs(X, 3, random_state=0), states)
    assert not np.array_equal(fitted.gibbs(X, 3, random_state=1), states)
    # from where a generator stands
    generator = np.random.RandomState(0)
    assert_array_equal(fitted.gibbs(X, 3, random_state=generator), states)
    assert not np.array_equal(fitted.gibbs(X, 3, random_state=generator), states)


@pytest.mark.usefixtures("either_way")
def test_chains_and_samples_have_the_means_of_the_model(fitted):
    V, p = naive.rbm_distribution(twin(fitted))
    n = 4000
    spread = BOUND * np.sqrt(p @ V * (1 - p @ V) / n)
    sample = fitted.sample(n, n_steps=100, random_state=0)
    assert sample.shape == (n, 6) and sample.dtype == bool
    assert (np.abs(sample.mean(axis=0) - p @ V) < spread).all()
    assert_array_equal(sample, fitted.sample(n, n_steps=100, random_state=0))
    states = fitted.gibbs(np.zeros((n, 6)), 100, random_state=0)
    assert (np.abs(states.mean(axis=0) - p @ V) < spread).all()


@pytest.mark.usefixtures("either_way")
def test_clamped_samples_are_of_the_conditional_distribution(fitted):
    n = 4000
    clamp = np.array([1.0, np.nan, np.nan, np.nan, 0.0, np.nan])
    sample = fitted.sample(n, n_steps=100, clamp=clamp, random_state=0)
    assert sample[:, 0].all() and not sample[:, 4].any()
    V, p = naive.rbm_conditional(twin(fitted), ~np.isnan(clamp), clamp)
    free = np.isnan(clamp)
    mean = (p @ V)[free]
    spread = BOUND * np.sqrt(mean * (1 - mean) / n)
    assert (np.abs(sample.mean(axis=0)[free] - mean) < spread).all()


@pytest.mark.usefixtures("either_way")
@mostly_listed
def test_clamp_of_each_sample(fitted):
    n = 3000
    clamp = np.full((n, 6), np.nan)
    clamp[::2, 1] = 1.0
    clamp[1::2, 1:4] = 0.0
    sample = fitted.sample(n, n_steps=100, clamp=clamp, random_state=0)
    for rows in (slice(0, None, 2), slice(1, None, 2)):
        held = ~np.isnan(clamp[rows][0])
        assert_array_equal(sample[rows][:, held], clamp[rows][:, held])
        V, p = naive.rbm_conditional(twin(fitted), held, clamp[rows][0])
        mean = (p @ V)[~held]
        spread = BOUND * np.sqrt(mean * (1 - mean) / (n / 2))
        difference = sample[rows][:, ~held].mean(axis=0) - mean
        assert (np.abs(difference) < spread).all()


def test_samples_of_few_units_need_no_chain(two_groups, monkeypatch):
    """One step does not lead chains to the model; more samples have the same first."""
    model, V, p = two_groups
    n = 4000
    sample = model.sample(n, n_steps=1, random_state=0)
    spread = BOUND * np.sqrt(p @ V * (1 - p @ V) / n)
    assert (np.abs(sample.mean(axis=0) - p @ V) < spread).all()
    # states of pairs of features, which only dependent ones have
    together = (sample[:, :, None] & sample[:, None]).mean(axis=0)
    expected = np.einsum("n,ni,nj->ij", p, V, V)
    spread = BOUND * np.sqrt(np.clip(expected * (1 - expected), 0.0, None) / n)
    assert (np.abs(together - expected) < spread + 1e-12).all()
    assert_array_equal(sample[:7], model.sample(7, random_state=0))
    monkeypatch.setattr(listed_states, "_BLOCK", 30)
    assert_array_equal(sample[:50], model.sample(50, random_state=0))


@pytest.mark.parametrize(
    ("clamp", "message"),
    [
        (np.zeros(5), r"clamp.*\(6,\) or \(2, 6\).*got shape \(5,\)"),
        (np.zeros((3, 6)), r"clamp.*\(2, 6\).*got shape \(3, 6\)"),
        (np.zeros((2, 5)), r"clamp.*got shape \(2, 5\)"),
        (np.zeros((1, 2, 6)), r"clamp.*got shape \(1, 2, 6\)"),
        (1.0, r"clamp.*got shape \(\)"),
    ],
)
def test_bad_clamps_are_named(fitted, clamp, message):
    with pytest.raises(ValueError, match=message):
        fitted.sample(2, clamp=clamp)


@pytest.mark.parametrize("kind", ["frame", "row", "polars"])
def test_a_clamp_has_the_names_of_the_fit(kind):
    """The same frame with its columns reversed had held other features."""
    names = list("abcdef")
    frame = pd.DataFrame(toy_data(), columns=names)
    model = small(ContrastiveDivergenceRBM).fit(frame)
    clamp = pd.DataFrame([[1.0, 0.0] + [np.nan] * 4], columns=names)

    def drawn(clamp):
        if kind == "polars":
            polars = pytest.importorskip("polars")
            clamp = polars.DataFrame({name: clamp[name].to_numpy() for name in clamp})
        clamp = clamp.iloc[0] if kind == "row" else clamp
        return model.sample(9, n_steps=4, clamp=clamp, random_state=0)

    expected = model.sample(9, n_steps=4, clamp=clamp.to_numpy(), random_state=0)
    assert_array_equal(drawn(clamp), expected)
    with pytest.raises(ValueError, match=r"(?s)clamp: .*in the same order.*or pass an"):
        drawn(clamp[names[::-1]])
    with pytest.raises(ValueError, match=r"(?s)clamp: .*unseen at fit time.*- g"):
        drawn(clamp.rename(columns={"a": "g"}))
    # names that mean nothing here, as those of other methods
    clamp.columns = range(6)
    if kind != "polars":
        assert_array_equal(drawn(clamp), expected)


def test_a_model_without_names_takes_any_clamp(fitted):
    clamp = pd.DataFrame([[1.0, 0.0] + [np.nan] * 4], columns=list("fedcba"))
    V = fitted.sample(3, n_steps=4, clamp=clamp, random_state=0)
    assert_array_equal(V[:, :2], np.tile([True, False], (3, 1)))


def test_clamp_is_binarized_as_data_are():
    X = np.where(toy_data(), 255, 0)
    model = small(ContrastiveDivergenceRBM, binarize=127).fit(X)
    clamp = [200, 100, np.nan, np.nan, 255, 0]
    sample = model.sample(10, n_steps=5, clamp=clamp, random_state=0)
    assert_array_equal(sample[:, [0, 1, 4, 5]], np.tile([1, 0, 1, 0], (10, 1)))
    model = small(ContrastiveDivergenceRBM, binarize=None).fit(toy_data())
    with pytest.raises(ValueError, match="clamp must be 0, 1 or NaN"):
        model.sample(10, clamp=[0.5] + [np.nan] * 5)


@pytest.mark.parametrize("clamp", [{0: 1}, ["on"] * 6])
def test_what_a_clamp_is(fitted, clamp):
    with pytest.raises(ValueError, match="clamp must be an array of a number for each"):
        fitted.sample(2, clamp=clamp)


@pytest.mark.parametrize("kind", ["Int8", "boolean", "Float32"])
def test_a_clamp_may_be_of_nullable_columns(fitted, kind):
    """As the rows that `impute` takes."""
    clamp = pd.DataFrame([[1.0, 0.0] + [np.nan] * 4])
    V = fitted.sample(3, n_steps=4, clamp=clamp.astype(kind), random_state=0)
    expected = fitted.sample(3, n_steps=4, clamp=clamp.to_numpy(), random_state=0)
    assert_array_equal(V, expected)
    objects = clamp.astype(kind).astype(object)
    with pytest.raises(ValueError, match=r"clamp holds pandas\.NA among objects"):
        fitted.sample(3, clamp=objects)


def test_values_of_some_features_say_how_to_hold_them():
    names = list("abcdef")
    frame = pd.DataFrame(toy_data(), columns=names)
    rbm = small(ContrastiveDivergenceRBM).fit(frame)
    some = {"f": True, "a": False}
    with pytest.raises(ValueError, match=r"pass pd\.Series\(clamp\)\.reindex\(rbm\.f"):
        rbm.sample(2, clamp=some)
    clamp = pd.Series(some)
    with pytest.raises(ValueError, match=r"shape \(2,\)\. .* clamp\.reindex\("):
        rbm.sample(2, clamp=clamp)
    V = rbm.sample(9, n_steps=2, clamp=clamp.reindex(rbm.feature_names_in_))
    assert V[:, 5].all() and not V[:, 0].any()
    # numbers without names mean nothing here
    with pytest.raises(ValueError, match=r"got shape \(2,\)\.$"):
        rbm.sample(2, clamp=[1.0, 0.0])


def test_a_clamp_is_told_of_values_outside_its_range(fitted):
    with pytest.warns(DataConversionWarning, match="clamp has values outside.*2 to 2"):
        fitted.sample(2, n_steps=1, clamp=[2] + [np.nan] * 5)


def test_counts_are_checked(fitted):
    X = toy_data(3)
    for call, message in [
        (lambda: fitted.sample(0), "n_samples.*at least 1; got 0"),
        (lambda: fitted.sample(2.0), "n_samples must be an integer.*2.0"),
        (lambda: fitted.sample(n_steps=0), "n_steps.*at least 1; got 0"),
        (lambda: fitted.gibbs(X, -1), "n_steps.*at least 0; got -1"),
        (lambda: fitted.gibbs(X, 1.5), "n_steps must be an integer.*1.5"),
        (lambda: fitted.impute(X, n_steps=1), "n_steps.*at least 2; got 1"),
        (lambda: fitted.impute(X, strategy="mode"), "strategy.*'mean'.*'mode'"),
        (lambda: fitted.truncate(-1), "n_components.*at least 0; got -1"),
        (lambda: fitted.truncate(1.0), "n_components must be an integer.*1.0"),
        (lambda: fitted.inverse_transform(np.ones((2, 9))), "H must have.*9 columns"),
        (lambda: fitted.inverse_transform(np.ones(2)), "2D array"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def by_chains(monkeypatch):
    """Let no states be listed."""
    monkeypatch.setattr(
        few_missing, "rows_with_few", lambda units, m, n: ~m.any(axis=1)
    )
    monkeypatch.setattr(listed_states, "can_list", lambda rbm: False)
    monkeypatch.setattr(listed_states, "draws_of_rows", lambda *arguments: None)


@pytest.mark.parametrize("n_missing", [1, 3, 4])
@pytest.mark.parametrize("binarize", [0.5, None])
def test_a_few_missing_values_are_enumerated(n_missing, binarize, monkeypatch):
    """Of blocks of rows with the same number; probabilities that are given count."""
    monkeypatch.setattr(few_missing, "_BLOCK", 24)
    model = small(ContrastiveDivergenceRBM, binarize=binarize).fit(toy_data())
    X = toy_data(20).astype(float) if binarize else np.where(toy_data(20), 0.9, 0.2)
    rng = np.random.default_rng(n_missing)
    for row in X:
        row[rng.choice(6, n_missing, replace=False)] = np.nan
    # others beside them
    X[3], X[5] = np.nan, 1.0
    X[7, 1] = 1.0
    mean = model.impute(X, n_steps=16)
    for row, found in zip(np.delete(X, 3, 0), np.delete(mean, 3, 0), strict=True):
        V = np.where(np.isnan(row), naive.all_states(6), row)
        p = np.exp(naive.rbm_log_probability(twin(model), V))
        assert_allclose(found, p @ V / p.sum(), atol=2e-6)
    drawn = model.impute(X, n_steps=16, strategy="sample", random_state=1)
    known = ~np.isnan(X)
    assert_array_equal(drawn[known], X[known].astype(np.float32))
    assert np.isin(drawn[~known], (0.0, 1.0)).all()


@pytest.mark.parametrize("enumerated", [True, False])
def test_impute_is_the_conditional_expectation(fitted, enumerated, monkeypatch):
    """The same row many times: chains, or draws, of their own."""
    n = 1000
    if not enumerated:
        by_chains(monkeypatch)
    row = np.array([1.0, np.nan, np.nan, np.nan, 0.0, np.nan])
    held = ~np.isnan(row)
    V, p = naive.rbm_conditional(twin(fitted), held, row)
    X = np.tile(row, (n, 1))
    mean = fitted.impute(X, n_steps=40, random_state=0)
    assert mean.dtype == fitted.components_.dtype
    assert_array_equal(mean[:, held], X[:, held])
    error = mean.mean(axis=0) - p @ V
    spread = BOUND * mean.std(axis=0) / np.sqrt(n)
    # of float32 sums, beside the standard error
    assert (np.abs(error[~held]) < spread[~held] + 1e-5).all()
    sample = fitted.impute(X, strategy="sample", n_steps=40, random_state=0)
    assert_array_equal(sample[:, held], X[:, held])
    assert set(np.unique(sample)) == {0.0, 1.0}
    variance = (p @ V * (1 - p @ V))[~held]
    error = (sample.mean(axis=0) - p @ V)[~held]
    assert (np.abs(error) < BOUND * np.sqrt(variance / n)).all()
    # drawn together: the product of two of them as well
    joint = p @ (V[:, 1] * V[:, 2])
    error = (sample[:, 1] * sample[:, 2]).mean() - joint
    assert abs(error) < BOUND * np.sqrt(joint * (1 - joint) / n)


@pytest.mark.parametrize("bits", [0.0, 1.0])
def test_rows_that_lack_a_mode_do_not_decide(bits, monkeypatch):
    """Of two modes the rows have ones alone; what is given may be of the other."""
    monkeypatch.setattr(listed_states, "can_list", lambda rbm: False)
    model = ContrastiveDivergenceRBM(1, max_iter=1, random_state=0)
    model.fit(np.ones((50, 18)))
    model.components_[:] = 4.0
    model.intercept_hidden_[:], model.intercept_visible_[:] = -36.0, -2.0
    row = np.full(18, np.nan)
    row[:6] = bits
    V = np.hstack([np.full((2**12, 6), bits), naive.all_states(12)])
    p = np.exp(naive.rbm_log_probability(twin(model), V))
    expected = (p @ V / p.sum())[6:]
    assert_allclose(expected, np.full(12, bits), atol=0.15)
    assert_allclose(model.impute(row[None])[0, 6:], expected, atol=0.2)


def test_the_expectation_of_a_row_is_that_of_all_modes(monkeypatch):
    """What is given leaves two of them, between which no chain moves."""
    by_chains(monkeypatch)
    model = small(ContrastiveDivergenceRBM).fit(toy_data())
    model.components_[0], model.components_[1:] = 20.0, 0.0
    model.intercept_hidden_[:] = -60.0
    model.intercept_visible_[:] = -10.0
    V = naive.all_states(6)
    p = np.exp(naive.rbm_log_probability(twin(model), V))
    p /= p.sum()
    assert p[0] + p[-1] > 0.9 and min(p[0], p[-1]) > 0.1
    # as where hidden states of the training rows are of no use
    monkeypatch.setattr(model, "_jumps", lambda rbm: lambda chains, held: chains)
    mean = model.impute(np.full((300, 6), np.nan), random_state=0)
    # a single chain errs by the whole standard deviation
    assert np.sqrt(np.mean((mean - p @ V) ** 2)) < 0.6 * np.sqrt(p[0] * p[-1])
    assert_allclose(mean.mean(axis=0), p @ V, atol=0.1)


@pytest.mark.parametrize("strategy", ["mean", "sample"])
def test_impute_keeps_what_is_there(fitted, strategy):
    X = toy_data(20).astype(np.float64)
    assert_array_equal(fitted.impute(X, strategy=strategy), X)
    assert_array_equal(fitted.impute(X > 0.5, strategy=strategy), X)
    missing = X.copy()
    missing[::2, 3] = np.nan
    filled = fitted.impute(missing, strategy=strategy, n_steps=10, random_state=0)
    known = ~np.isnan(missing)
    assert_array_equal(filled[known], X[known])
    assert ((filled[~known] >= 0) & (filled[~known] <= 1)).all()
    again = fitted.impute(missing, strategy=strategy, n_steps=10, random_state=0)
    assert_array_equal(again, filled)
    assert np.isnan(missing[0, 3])


@pytest.mark.parametrize("way", ["few missing", "listed", "chains"])
def test_draws_differ_and_expectations_do_not(way, monkeypatch):
    """Imputations that are all the same have no variance between them."""
    if way == "chains":
        by_chains(monkeypatch)
    model = small(ContrastiveDivergenceRBM).fit(toy_data())
    missing = toy_data(40).astype(np.float64)
    # of four missing values, 16 states are more than the steps
    missing[:, : 1 if way == "few missing" else 4] = np.nan

    def impute(strategy, **source):
        return model.impute(missing, strategy=strategy, n_steps=10, **source)

    assert (impute("sample") != impute("sample")).any()
    one = impute("sample", random_state=0)
    assert_array_equal(impute("sample", random_state=0), one)
    assert_array_equal(impute("mean"), impute("mean", random_state=0))


def test_impute_all_of_a_row(fitted):
    filled = fitted.impute(np.full((2000, 6), np.nan), n_steps=60, random_state=0)
    V, p = naive.rbm_distribution(twin(fitted))
    spread = BOUND * filled.std(axis=0) / np.sqrt(len(filled))
    assert (np.abs(filled.mean(axis=0) - p @ V) < spread + 1e-5).all()


def test_impute_keeps_probabilities():
    X = np.where(toy_data(), 0.9, 0.2)
    model = small(ContrastiveDivergenceRBM, binarize=None).fit(X)
    missing = X[:5].copy()
    missing[:, 2] = np.nan
    filled = model.impute(missing, n_steps=10)
    assert_array_equal(np.delete(filled, 2, axis=1), np.delete(X[:5], 2, axis=1))
    with pytest.raises(ValueError, match=r"\[0, 1\], found 0 to 2"):
        model.impute([[2.0, np.nan, 0.0, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize("strategy", ["mean", "sample"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_impute_leaves_its_argument_alone(strategy, dtype):
    X = np.where(toy_data(), 0.9, 0.2).astype(dtype)
    model = small(ContrastiveDivergenceRBM, binarize=None).fit(X)
    missing = X[:5].copy()
    missing[:, 2] = np.nan
    missing.flags.writeable = False
    filled = model.impute(missing, strategy=strategy, n_steps=10)
    assert filled.dtype == dtype and np.isfinite(filled).all()
    assert np.isnan(missing[:, 2]).all()


def test_nan_is_for_impute_only(fitted):
    X = toy_data(5).astype(float)
    X[0, 0] = np.nan
    for method in ("transform", "score", "free_energy", "pseudo_likelihood", "gibbs"):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            getattr(fitted, method)(X)
    with pytest.raises(TypeError, match=r"dense.*sparse.*X.toarray\(\)"):
        fitted.impute(sp.csr_array(toy_data(5).astype(float)))
    with pytest.raises(ValueError, match="infinity"):
        fitted.impute(np.where(np.isnan(X), np.inf, X))


@pytest.fixture(scope="module")
def two_groups():
    """A model of rows that differ in nearly all features, and how likely a state is."""
    rng = np.random.default_rng(2)
    group = rng.random(600) < 0.3
    rates = np.where(rng.random(12) < 0.5, 0.02, 0.98)
    X = rng.random((600, 12)) < np.where(group[:, None], rates, 1.0 - rates)
    model = ContrastiveDivergenceRBM(8, max_updates=600, refit=False, random_state=0)
    V = naive.all_states(12)
    p = np.exp(model.fit(X).score_samples(V))
    return model, V, p / p.sum()


@pytest.mark.usefixtures("either_way")
def test_samples_have_modes_in_proportion(two_groups):
    """Between which no chain moves."""
    model, V, p = two_groups
    n = 1000
    spread = BOUND * np.sqrt(p @ V * (1 - p @ V) / n)
    sample = model.sample(n, random_state=0)
    assert (np.abs(sample.mean(axis=0) - p @ V) < spread).all()
    missing = np.full((n, 12), np.nan)
    filled = model.impute(missing, strategy="sample", random_state=0)
    assert (np.abs(filled.mean(axis=0) - p @ V) < spread).all()


@pytest.mark.usefixtures("either_way")
@mostly_listed
def test_clamped_samples_have_modes_in_proportion(two_groups):
    """Two features that contradict each other leave both groups possible."""
    model, V, p = two_groups
    mean = p @ V
    # one that is rare in the larger group, and one that is frequent there
    clamp = np.full(12, np.nan)
    clamp[[mean.argmin(), mean.argmax()]] = 1.0
    held = ~np.isnan(clamp)
    p = np.where((V[:, held] == 1.0).all(axis=1), p, 0.0)
    expected = p @ V / p.sum()
    assert 0.1 < expected[~held].min() and expected[~held].max() < 0.9
    n = 1000
    # rounding leaves some of those that are held above 1
    spread = BOUND * np.sqrt(np.clip(expected * (1 - expected), 0.0, None) / n)
    sample = model.sample(n, clamp=clamp, random_state=0)
    assert (np.abs(sample.mean(axis=0) - expected) <= spread + held).all()
    missing = np.tile(clamp, (n, 1))
    filled = model.impute(missing, strategy="sample", random_state=0)
    assert (np.abs(filled.mean(axis=0) - expected) <= spread + held).all()
