"""Log-likelihoods and partition functions of fitted RBMs."""

import copy
import pickle

import joblib
import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import digits, small, toy_data, twin
from threadpoolctl import threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM


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


def test_scores_are_functions_of_the_model(fitted):
    """Order of calls, copies, jobs and the global random state change nothing."""
    # of a partition function that is estimated
    wide = small(ContrastiveDivergenceRBM, n_components=16, random_state=None)
    wide.fit(digits(50))
    for model, X in [(fitted, toy_data(20)), (wide, digits(20))]:
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
            r"method must be 'ais', 'reverse_ais' or 'exact'.*'chib'",
        ),
        (dict(method=None), "method must be.*None"),
        (dict(betas=1), "betas must be.*at least 2; got 1"),
        (dict(betas=2.5), "betas must be.*2.5"),
        (dict(betas="paperback"), "betas must be.*'paper'.*'paperback'"),
        (dict(betas=[0.0, 0.5]), "betas must be.*from 0 to 1"),
        (dict(betas=[0.1, 1.0]), "betas must be.*from 0 to 1"),
        (dict(betas=[0.0, 0.7, 0.6, 1.0]), "betas must be.*rise"),
        (dict(betas=[0.0, np.nan, 1.0]), "betas must be.*rise"),
        (dict(betas=[[0.0, 1.0]]), "betas must be"),
        (dict(betas=[]), "betas must be"),
        (dict(n_chains=1), "n_chains must be.*at least 2; got 1"),
        (dict(n_chains=10.0), "n_chains must be an integer.*10.0"),
        (dict(random_state="seed"), "'seed' cannot be used to seed"),
    ],
    ids=str,
)
def test_bad_estimates_are_named(of_digits, parameters, message):
    with pytest.raises(ValueError, match=message):
        of_digits.log_partition(**parameters)


def test_enumeration_is_limited():
    wide = ContrastiveDivergenceRBM(26, max_iter=1).fit(digits(50))
    with pytest.raises(ValueError, match="'exact'.*26 units.*at most 25.*'ais'"):
        wide.log_partition("exact")
    fractional = small(FrankWolfeRBM, alpha=2.0).fit(digits(50))
    # only the visible side can be summed over
    with pytest.raises(ValueError, match="64 units"):
        fractional.log_partition("exact")
    # the smaller side decides
    assert wide.truncate(5).log_partition("exact").log_weight_std == 0.0


def test_staged_score_samples(fitted):
    V = naive.all_states(6)
    stages = list(fitted.staged_score_samples(V))
    assert len(stages) == fitted.n_components_
    for k, stage in enumerate(stages, start=1):
        assert_array_equal(stage, fitted.truncate(k).score_samples(V))
        assert np.exp(stage).sum() == pytest.approx(1.0, abs=1e-5)
    assert_allclose(stages[-1], fitted.score_samples(V), rtol=1e-12)
