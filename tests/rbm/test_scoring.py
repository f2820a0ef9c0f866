"""Log-likelihoods and partition functions of fitted RBMs."""

import copy
import pickle

import joblib
import naive
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import digits, small, toy_data, twin
from rbm_models import trapped_model
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.exceptions import MixingWarning
from skbayesnn.rbm.likelihood import annealing


def test_energies_and_likelihoods(fitted):
    V, p = naive.rbm_distribution(twin(fitted))
    expected = naive.rbm_log_probability(twin(fitted), V)
    assert_allclose(-fitted.free_energy(V), expected, rtol=1e-5, atol=1e-5)
    log_likelihood = fitted.score_samples(V)
    assert log_likelihood.shape == (64,) and log_likelihood.dtype == np.float64
    assert_allclose(log_likelihood, np.log(p), atol=1e-5)
    assert np.exp(log_likelihood).sum() == pytest.approx(1.0, abs=1e-5)
    assert fitted.score(V) == pytest.approx(log_likelihood.mean(), rel=1e-12)
    assert isinstance(fitted.score(V), float)


def test_a_score_of_weighted_rows(fitted):
    X = toy_data(5)
    copied = X[[0, 2, 2, 2, 4, 4]]
    weights = [1, 0, 3, 0, 2]
    assert fitted.score(X, sample_weight=weights) == pytest.approx(fitted.score(copied))
    halves = np.multiply(weights, 0.5)
    assert fitted.score(X, None, halves) == pytest.approx(fitted.score(copied))
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(2,\), expected"):
        fitted.score(X, sample_weight=[1.0, 2.0])


def test_a_pipeline_scores_with_metadata_routing():
    """It asks its last step for sample_weight even where there are none."""
    X = toy_data(40)
    with sklearn.config_context(enable_metadata_routing=True):
        rbm = small(ContrastiveDivergenceRBM).set_score_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), rbm).fit(X)
        assert pipeline.score(X) == pytest.approx(pipeline[-1].score(X))
        weights = np.arange(40.0)
        weighted = pipeline.score(X, sample_weight=weights)
        assert weighted == pytest.approx(rbm.score(X, sample_weight=weights))
        assert np.isfinite(cross_val_score(pipeline, X, cv=2)).all()


def test_scores_are_functions_of_the_model(fitted):
    """Order of calls, copies, jobs and the global random state change nothing."""
    check_scores(fitted, toy_data(20))


def test_scores_by_an_estimate_are_functions_of_the_model():
    wide = small(ContrastiveDivergenceRBM, n_components=21, random_state=None)
    check_scores(wide.fit(digits(50)), digits(20))


def check_scores(model, X):
    copies = [pickle.loads(pickle.dumps(model)) for _ in range(4)]
    copies[0].transform(X)
    copies[0].sample(2, n_steps=2)
    copies[0].log_partition(n_chains=2, betas=3)
    expected = copies[0].score_samples(X)
    assert_array_equal(copies[0].score_samples(X), expected)
    # float32 products round differently at another place of the matrix
    assert_allclose(
        copies[0].score_samples(X[::-1])[::-1], expected, rtol=1e-6, atol=1e-6
    )
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(12)  # noqa: NPY002
    drawn_next = np.random.RandomState(12).random()
    assert_array_equal(copies[1].score_samples(X), expected)
    assert np.random.random() == drawn_next  # noqa: NPY002
    np.random.set_state(state)  # noqa: NPY002
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert_array_equal(copies[2].score_samples(X), expected)
    assert copies[3].log_partition_ == copies[0].log_partition_
    before = sorted(vars(copies[3]))
    assert_array_equal(copies[3].score_samples(X), expected)
    assert sorted(vars(copies[3])) == before


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_values_that_have_no_likelihood_are_told_of(container):
    """Between 0 and 1, taken as probabilities; binary ones have one."""
    X = toy_data()
    model = small(ContrastiveDivergenceRBM, binarize=None).fit(container(X))
    assert np.isfinite(model.score(container(X)))
    with pytest.warns(DataConversionWarning, match="only binary rows") as told:
        model.score(container(0.9 * X))
    assert told[0].filename == __file__


@pytest.mark.parametrize("cls", [ContrastiveDivergenceRBM, FrankWolfeRBM])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_notebook_shows_what_is_computed_and_computes_nothing(cls, in_pipeline):
    """scikit-learn 1.9 shows all fitted attributes, and completes their names."""
    model = shown = small(cls).fit(toy_data())
    if in_pipeline:
        shown = make_pipeline(FunctionTransformer(), model)
    shows_attributes = hasattr(BaseEstimator, "_get_fitted_attr_html")
    names = dir(model)
    before = shown._repr_html_()
    assert not model._estimates
    assert "log_partition_" not in names and {"log_partition", "_seed"} < set(names)
    assert "log_partition_" not in before
    assert ("base_intercept_" in before) == shows_attributes
    assert hasattr(model, "log_partition_")
    assert set(dir(model)) == {*names, "log_partition_"}
    after = shown._repr_html_()
    assert ("log_partition_" in after) == shows_attributes
    assert (f"{model.log_partition_:.4g}" in after) == shows_attributes
    assert "log_partition_" not in cls()._repr_html_()


def test_scoring_changes_no_attribute(fitted):
    model = pickle.loads(pickle.dumps(fitted))
    before = copy.deepcopy(vars(model))
    model.score(toy_data())
    before.pop("_estimates")
    for name, value in before.items():
        assert str(getattr(model, name)) == str(value), name


def test_log_partition_fields_and_methods(of_digits):
    exact = of_digits.log_partition("exact")
    fields = ("log_partition", "interval", "log_weight_std", "effective_sample_size")
    assert exact._fields == fields
    assert exact.interval == (exact.log_partition,) * 2
    assert exact.log_partition == of_digits.log_partition_
    W, hidden, visible, _ = twin(of_digits)
    H = naive.all_states(len(W))
    # summed over the hidden side
    expected = naive.log_sum(H @ hidden + naive.softplus(H @ W + visible).sum(axis=1))
    assert exact.log_partition == pytest.approx(expected, abs=1e-6)
    for method in ("ais", "reverse_ais"):
        result = of_digits.log_partition(method, betas=1000, n_chains=100)
        low, high = result.interval
        assert low < result.log_partition < high
        assert low < expected < high
        assert high - low < 0.5
        assert 0.0 < result.log_weight_std < 1.0
        assert 30 < result.effective_sample_size <= 100
        kept = dict(betas=50, n_chains=120, random_state=3)
        one = of_digits.log_partition(method, n_jobs=1, **kept)
        assert of_digits.log_partition(method, n_jobs=2, **kept) == one
        with threadpool_limits(limits=2, user_api="blas"):
            assert of_digits.log_partition(method, **kept) == one
        kept["random_state"] = 4
        assert of_digits.log_partition(method, **kept) != one


@pytest.mark.parametrize("method", ["ais", "reverse_ais", "both"])
def test_estimates_take_the_jobs_of_the_estimator(method, of_digits, monkeypatch):
    given, in_order = [], annealing.in_order

    def record(calls, n_jobs, *others):
        given.append(n_jobs)
        return in_order(calls, n_jobs, *others)

    monkeypatch.setattr(annealing, "in_order", record)
    model = copy.deepcopy(of_digits).set_params(n_jobs=2)
    model.log_partition(method, betas=5, n_chains=10)
    assert set(given) == {2}
    given.clear()
    model.log_partition(method, betas=5, n_chains=10, n_jobs=1)
    assert set(given) == {1}


def test_both_directions_of_an_estimate(of_digits):
    expected = of_digits.log_partition("exact").log_partition
    settings = dict(betas=500, n_chains=60, random_state=1)
    both = of_digits.log_partition("both", **settings)
    assert both.forward == of_digits.log_partition("ais", **settings)
    assert both.reverse == of_digits.log_partition("reverse_ais", **settings)
    assert both.n_betas == 500
    assert both.interval[0] < expected < both.interval[1]
    # the default temperatures, of all methods, are those of both directions
    settings.pop("betas")
    adapted = of_digits.log_partition("both", **settings)
    assert adapted.n_betas == 801
    assert adapted.interval[0] < expected < adapted.interval[1]
    assert of_digits.log_partition(**settings) == adapted.forward
    assert of_digits.log_partition("reverse_ais", **settings) == adapted.reverse
    assert of_digits.log_partition("both", n_jobs=2, **settings) == adapted
    with threadpool_limits(limits=2, user_api="blas"):
        assert of_digits.log_partition("both", **settings) == adapted


def test_reverse_runs_from_data(of_digits):
    """Rows like those of the training are as good a start as chains of the model."""
    expected = of_digits.log_partition("exact").log_partition
    settings = dict(n_chains=60, random_state=1)
    of_rows = of_digits.log_partition("both", X=digits(), **settings)
    assert of_rows.interval[0] < expected < of_rows.interval[1]
    without = of_digits.log_partition("both", **settings)
    assert of_rows.forward == without.forward and of_rows.reverse != without.reverse
    assert of_digits.log_partition("reverse_ais", X=digits(), **settings) == (
        of_rows.reverse
    )
    # fewer rows than chains, and rows of probabilities
    of_digits.log_partition("both", X=digits(5), **settings)
    unsure = pickle.loads(pickle.dumps(of_digits)).set_params(binarize=None)
    result = unsure.log_partition("both", X=0.1 + 0.8 * digits(), **settings)
    assert result.interval[0] < expected < result.interval[1]


@pytest.mark.parametrize(
    "n_units, n_features", [pytest.param(20, 64, marks=pytest.mark.slow), (30, 20)]
)
def test_a_side_of_20_is_enumerated(n_units, n_features):
    X = digits(50)[:, :n_features]
    model = small(ContrastiveDivergenceRBM, n_components=n_units, max_iter=1).fit(X)
    exact = model.log_partition("exact")
    assert model.log_partition_ == exact.log_partition


@pytest.mark.slow
def test_larger_models_are_estimated_from_both_directions():
    model = small(ContrastiveDivergenceRBM, n_components=21).fit(digits(50))
    exact = model.log_partition("exact").log_partition
    assert model.log_partition_ != exact
    assert model.log_partition_ == pytest.approx(exact, abs=0.1)
    # nothing to warn of, with as many rows as it takes to look for other modes
    model.score(digits(50))


def trapped(barrier, weight=0.4, rows=None):
    """An estimator of a model with two modes, and its log partition function.

    Its base rates are those of the mode in which all units are off.
    """
    rows = rows_with(0.12, 500) if rows is None else rows
    rbm, value = trapped_model(barrier, weight=weight)
    other = BernoulliRBM(len(rbm.weights))
    other.components_, other.intercept_hidden_, other.intercept_visible_ = rbm[:3]
    other.n_features_in_ = rbm.weights.shape[1]
    model = ContrastiveDivergenceRBM.from_bernoulli_rbm(other, rows, random_state=0)
    return model, value


def rows_with(rate, n_rows=60):
    return np.random.default_rng(0).random((n_rows, 40)) < rate


@pytest.mark.slow
def test_directions_that_differ_warn_once(monkeypatch):
    model, _ = trapped(0.52, weight=0.8)
    with pytest.warns(MixingWarning, match="on the way back.*Gibbs") as caught:
        result = model.log_partition("both", n_chains=20)
    assert caught[0].filename == __file__
    # no temperatures were spared
    assert result.n_betas == 12801
    assert abs(result.forward.log_partition - result.reverse.log_partition) > 1.0
    # a single direction has nothing to compare
    model.log_partition("ais", betas=100, n_chains=20)
    monkeypatch.setattr("skbayesnn.rbm.scoring._N_CHAINS", 20)
    X = rows_with(0.97)
    with pytest.warns(MixingWarning) as caught:
        score = model.score(X)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.score(X) == score


@pytest.mark.usefixtures("fewer_row_draws")
def test_rows_reveal_a_mode_that_annealing_misses():
    model, exact = trapped(0.6)
    # both directions agree, on 56 nats too little
    result = model.log_partition("both")
    assert result.interval[1] - result.interval[0] < 0.2
    assert result.interval[1] < exact - 50.0
    # of which no row is likelier than the whole estimated partition function
    rows = rows_with(0.55)
    estimated = model.log_partition_
    model.score(rows[:49])
    with pytest.warns(MixingWarning, match="start at rows of X.*too high") as caught:
        score = model.score(rows)
    assert [warning.filename for warning in caught] == [__file__]
    # neither rows nor the warning change the value; it comes once
    assert model.log_partition_ == estimated and model.score(rows) == score
    with pytest.warns(MixingWarning) as caught:
        told = model.log_partition("both", X=rows_with(0.97))
    assert "on the way back" in str(caught[0].message)
    assert told.interval[0] < exact < told.interval[1]


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_row_draws")
def test_the_rows_that_a_model_keeps_tell_of_a_mode_that_annealing_misses():
    """One in fifty of them is there, and the model has nearly all of its mass there."""
    rows = np.concatenate([rows_with(0.12, 2940), rows_with(0.97, 60)])
    model, exact = trapped(0.65, rows=rows)
    with pytest.warns(MixingWarning, match="hidden states of rows of data") as caught:
        assert model.log_partition_ == pytest.approx(exact, abs=0.3)
    assert caught[0].filename == __file__
    with pytest.warns(MixingWarning, match="hidden states of rows of data"):
        told = model.log_partition("both", n_chains=50)
    assert told.rows.log_partition == told.log_partition
    assert told.interval[0] < exact < told.interval[1]
    # neither direction is changed by them
    assert told.forward.log_partition < exact - 30.0 > told.reverse.log_partition
    # a saved model still knows
    loaded = pickle.loads(pickle.dumps(model))
    with pytest.warns(MixingWarning, match="hidden states of rows of data"):
        assert loaded.log_partition("both", n_chains=50) == told


def rows_below_a_mode():
    return np.concatenate([rows_with(0.12, 1500), rows_with(0.5, 20)])


@pytest.mark.slow
def test_rows_lead_to_a_mode_in_which_none_of_them_is():
    """Their hidden states have large weights, but few: draws follow these."""
    model, exact = trapped(0.65, rows=rows_below_a_mode())
    with pytest.warns(MixingWarning, match="hidden states of rows of data"):
        assert model.log_partition_ == pytest.approx(exact, abs=0.1)


@pytest.mark.slow
def test_rows_that_lead_to_a_mode_tell_the_interval():
    model, exact = trapped(0.65, rows=rows_below_a_mode())
    with pytest.warns(MixingWarning, match="hidden states of rows of data"):
        told = model.log_partition("both", n_chains=50)
    assert told.log_partition == pytest.approx(exact, abs=0.1)
    low, high = told.rows.interval
    assert low < exact < high < low + 0.1


@pytest.mark.usefixtures("fewer_row_draws")
def test_an_estimate_that_rests_on_few_chains_warns():
    """Both directions agree, since the reverse chains start where the others arrive."""
    model, exact = trapped(0.4)
    with pytest.warns(MixingWarning, match="may lie anywhere.*n_chains") as caught:
        result = model.log_partition("both", betas=801, n_chains=20)
    assert caught[0].filename == __file__
    assert result.forward.effective_sample_size < 8
    assert result.interval[0] < exact < result.interval[1]
    for end, of_forward in zip(result.interval, result.forward.interval, strict=True):
        assert abs(end - exact) >= abs(of_forward - exact) - 1e-9


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_row_draws")
def test_an_estimate_that_rests_on_few_chains_gets_more():
    model, exact = trapped(0.5)
    result = model.log_partition("both", n_chains=20, random_state=4)
    # 80 in place of 20
    assert result.forward.effective_sample_size > 20
    assert result.interval[0] < exact < result.interval[1]


def test_a_model_keeps_a_sample_of_all_rows_it_has_seen():
    """At most 2,000 of them, in proportion to the calls."""
    model = small(ContrastiveDivergenceRBM)
    X = np.random.default_rng(0).integers(2, size=(3000, 12))
    X[:, 0] = 0
    model.partial_fit(X[:500])
    states = model._seen.states
    np.testing.assert_array_equal(np.unique(states, axis=0), np.unique(X[:500], axis=0))
    assert len(states) == 500
    X[:, 0] = 1
    for _ in range(2):
        model.partial_fit(X)
    states = model._seen.states
    assert len(states) == 2000 and states.shape[1] == 12
    assert states[:, 0].mean() == pytest.approx(6000 / 6500, abs=0.01)


@pytest.mark.usefixtures("fewer_row_draws")
def test_states_that_are_likelier_than_all_states_warn():
    model, exact = trapped(0.6)
    rows = rows_with(0.97, 3)
    with pytest.warns(MixingWarning, match="states in X alone sum up to") as caught:
        assert model.score(rows) > 0.0
    assert [warning.filename for warning in caught] == [__file__]
    # once for a model
    model.score(rows)
    with pytest.warns(MixingWarning, match="on the way back"):
        told = model.log_partition("both", X=rows)
    bound = np.logaddexp.reduce(-model.free_energy(rows))
    assert bound - 0.01 < told.log_partition
    assert told.interval[0] < exact < told.interval[1]
    assert told.interval[1] >= told.log_partition


def test_rows_where_the_estimate_is_right_warn_of_nothing():
    model, exact = trapped(0.4)
    assert model.log_partition_ == pytest.approx(exact, abs=0.3)
    model.score(rows_with(0.97))
    # rows of the other mode, which hardly counts
    model, _ = trapped(0.4)
    model.score(rows_with(0.12))


@pytest.mark.parametrize(
    "fitted",
    [
        "contrastive",
        pytest.param("grown", marks=pytest.mark.slow),
        pytest.param("fractional", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_temperatures(fitted):
    exact = fitted.log_partition("exact").log_partition
    paper = fitted.log_partition("ais", betas="paper", n_chains=4)
    assert paper.log_partition == pytest.approx(exact, abs=0.1)
    betas = np.linspace(0.0, 1.0, 50)
    assert fitted.log_partition(betas=50, n_chains=4) == fitted.log_partition(
        betas=betas, n_chains=4
    )
    assert fitted.log_partition(betas=np.int64(50), n_chains=4) == fitted.log_partition(
        betas=list(betas), n_chains=4
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            dict(method="chib"),
            r"method must be 'ais', 'reverse_ais', 'both' or 'exact'.*'chib'",
        ),
        (dict(method=None), "method must be.*None"),
        (dict(betas=1), "betas must be.*at least 2; got 1"),
        (dict(betas=2.5), "betas must be.*2.5"),
        (dict(betas="paperback"), "betas must be 'auto', 'paper'.*'paperback'"),
        (dict(betas=[0.0, 0.5]), "betas must be.*from 0 to 1"),
        (dict(betas=[0.1, 1.0]), "betas must be.*from 0 to 1"),
        (dict(betas=[0.0, 0.7, 0.6, 1.0]), "betas must be.*rise"),
        (dict(betas=[0.0, np.nan, 1.0]), "betas must be.*rise"),
        (dict(betas=[[0.0, 1.0]]), "betas must be"),
        (dict(betas=[]), "betas must be"),
        (dict(n_chains=1), "n_chains must be.*at least 2; got 1"),
        (dict(n_chains=10.0), "n_chains must be an integer.*10.0"),
        (dict(random_state="seed"), "random_state must be .*got 'seed'"),
        (
            dict(X=digits(5)),
            "X is where a reverse run starts, and method='ais'.*'both'",
        ),
        (dict(X=digits(5), method="exact"), "X is where a reverse run starts"),
        (dict(X=digits(5)[:, :3], method="both"), "3 features.*64"),
    ],
    ids=str,
)
def test_bad_estimates_are_named(of_digits, parameters, message):
    with pytest.raises(ValueError, match=message):
        of_digits.log_partition(**parameters)


def test_enumeration_is_limited():
    wide = ContrastiveDivergenceRBM(26, max_iter=1).fit(digits(50))
    with pytest.raises(ValueError, match="'exact'.*26 units.*at most 25.*'both'"):
        wide.log_partition("exact")
    fractional = small(FrankWolfeRBM, alpha=2.0).fit(digits(50))
    # only the visible side can be summed over
    with pytest.raises(ValueError, match="64 units"):
        fractional.log_partition("exact")
    # the smaller side decides
    assert wide.truncate(5).log_partition("exact").log_weight_std == 0.0


def test_stages_check_their_rows_once():
    """There was a warning of missing names for each unit."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.eye(4)[[0, 1, 2, 3] * 5], columns=list("abcd"))
    model = ContrastiveDivergenceRBM(3, max_iter=1, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="valid feature names") as caught:
        list(model.staged_score_samples(X.to_numpy()))
    assert len(caught) == 1


def test_staged_score_samples(fitted):
    V = naive.all_states(6)
    stages = list(fitted.staged_score_samples(V))
    assert len(stages) == fitted.n_components_
    for k, stage in enumerate(stages, start=1):
        assert_array_equal(stage, fitted.truncate(k).score_samples(V))
        assert np.exp(stage).sum() == pytest.approx(1.0, abs=1e-5)
    assert_allclose(stages[-1], fitted.score_samples(V), rtol=1e-12)
