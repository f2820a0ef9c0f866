"""Both restricted Boltzmann machines: what a fitted model does, input and bad days.

Exact values are sums over all states, by `naive`.
"""

import copy
import pickle

import joblib
import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import (
    ConvergenceWarning,
    DataConversionWarning,
    NotFittedError,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.training.history import format_duration, time_of_epochs, time_of_growth
from skbayesnn.rbm.learning import contrastive, growth

# Of a statistical comparison, in standard errors: a false alarm in 2 million.
BOUND = 5.0
CLASSES = [ContrastiveDivergenceRBM, FrankWolfeRBM]
SMALL = {
    ContrastiveDivergenceRBM: dict(n_components=4, max_iter=5, batch_size=20),
    # this objective takes each unit it finds
    FrankWolfeRBM: dict(
        n_components=3,
        objective="linearized",
        unit_penalty=0.1,
        n_chains=100,
        n_corrective_steps=5,
        learning_rate=0.1,
    ),
}
GROWN = dict(
    objective="linearized",
    unit_penalty=0.1,
    n_chains=200,
    n_corrective_steps=100,
    learning_rate=0.3,
    random_state=0,
)
MODELS = {
    "contrastive": ContrastiveDivergenceRBM(
        5, learning_rate=0.5, max_iter=40, batch_size=20, random_state=0
    ),
    "grown": FrankWolfeRBM(4, **GROWN),
    "fractional": FrankWolfeRBM(3, alpha=4.2, **GROWN),
}


def toy_data(n_samples=300, seed=0):
    """Six features: two hidden causes, each seen three times through noise."""
    rng = np.random.default_rng(seed)
    causes = np.repeat(rng.random((n_samples, 2)) < [0.4, 0.6], 3, axis=1)
    return causes ^ (rng.random((n_samples, 6)) < 0.1)


def digits(n_samples=300):
    return load_digits().data[:n_samples] > 7


def small(cls, **parameters):
    return cls(**{**SMALL[cls], "random_state": 0, **parameters})


def arrays_of(model):
    names = ("components_", "intercept_hidden_", "intercept_visible_")
    return [getattr(model, name) for name in (*names, "unit_weights_")]


def twin(model):
    """What `naive` takes."""
    return tuple(np.asarray(array, dtype=np.float64) for array in arrays_of(model))


def assert_same_model(first, second):
    assert_array_equal(first.base_intercept_, second.base_intercept_)
    for a, b in zip(arrays_of(first), arrays_of(second), strict=True):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)


def assert_close_models(first, second, **tolerance):
    for a, b in zip(arrays_of(first), arrays_of(second), strict=True):
        assert_allclose(a, b, **tolerance)


def independent_score(X, X_train=None):
    """Mean log-likelihood by smoothed base rates."""
    X_train = X if X_train is None else X_train
    rate = (X_train.sum(axis=0) + 0.5) / (len(X_train) + 1)
    return np.where(X, np.log(rate), np.log1p(-rate)).sum(axis=1).mean()


def bernoulli_rbm(n_units=4, n_features=6, seed=0, dtype=np.float64):
    """scikit-learn's, with weights that matter."""
    rng = np.random.default_rng(seed)
    rbm = BernoulliRBM(n_units)
    rbm.components_ = rng.normal(0.0, 1.5, (n_units, n_features)).astype(dtype)
    rbm.intercept_hidden_ = rng.normal(size=n_units).astype(dtype)
    rbm.intercept_visible_ = rng.normal(size=n_features).astype(dtype)
    rbm.n_features_in_ = n_features
    return rbm


def interrupt(monkeypatch, module, n_calls):
    """Ctrl-C after so many calls of ``module.step``."""
    step = module.step
    calls = iter(range(n_calls))

    def interrupted_step(*arguments):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(module, "step", interrupted_step)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return clone(MODELS[request.param]).fit(toy_data())


@pytest.fixture(scope="module")
def of_digits():
    return ContrastiveDivergenceRBM(8, max_iter=20, batch_size=20, random_state=0).fit(
        digits()
    )


# Fitted attributes and kinds of input.


def test_fitted_attributes(fitted):
    n = fitted.n_components_
    assert fitted.components_.shape == (n, 6)
    assert fitted.intercept_hidden_.shape == fitted.unit_weights_.shape == (n,)
    assert fitted.intercept_visible_.shape == fitted.base_intercept_.shape == (6,)
    assert fitted.base_intercept_.dtype == np.float64
    assert all(array.dtype == np.float32 for array in arrays_of(fitted))
    X = toy_data()
    rate = (X.sum(axis=0) + 0.5) / (len(X) + 1)
    assert_allclose(fitted.base_intercept_, np.log(rate / (1 - rate)), rtol=1e-12)
    assert fitted.n_features_in_ == 6
    assert {len(values) for values in fitted.history_.values()} == {fitted.n_iter_}


def test_models_learn(fitted):
    """Of two causes, each seen three times, independent features know nothing."""
    X = toy_data(1000, seed=1)
    assert fitted.score(X) > independent_score(X, toy_data()) + 0.15


KINDS = {
    "uint8": lambda X: X.astype(np.uint8),
    "int64": lambda X: X.astype(np.int64),
    "float32": lambda X: X.astype(np.float32),
    "fortran": lambda X: np.asfortranarray(X.astype(np.float32)),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr array": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr matrix": lambda X: sp.csr_matrix(X.astype(np.uint8)),
    "csc": lambda X: sp.csc_array(X.astype(np.float32)),
    "list": lambda X: X.astype(int).tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cls", CLASSES)
def test_same_model_for_the_same_content(cls, kind):
    X = toy_data()
    other = KINDS[kind](X)
    expected, model = small(cls).fit(X), small(cls).fit(other)
    assert_same_model(model, expected)
    assert_array_equal(model.transform(other), expected.transform(X))
    assert_array_equal(model.score_samples(other), expected.score_samples(X))
    assert_array_equal(
        model.gibbs(other, 3, random_state=0), expected.gibbs(X, 3, random_state=0)
    )


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cls", CLASSES)
def test_float64_is_kept(cls, convert):
    X = toy_data()
    expected = small(cls).fit(X)
    model = small(cls).fit(convert(X.astype(np.float64)))
    assert all(array.dtype == np.float64 for array in arrays_of(model))
    # computed in float32
    for array, other in zip(arrays_of(model), arrays_of(expected), strict=True):
        assert_array_equal(array, other)
    H = model.transform(X)
    assert H.dtype == model.inverse_transform(H).dtype == np.float64
    assert expected.transform(X.astype(np.float64)).dtype == np.float32
    assert_allclose(H, expected.transform(X), rtol=1e-5)
    assert_allclose(model.score_samples(X), expected.score_samples(X), atol=1e-5)


@pytest.mark.parametrize("cls", CLASSES)
def test_random_state_decides(cls):
    X = toy_data()
    first = small(cls, random_state=np.random.RandomState(0)).fit(X)
    assert_same_model(first, small(cls, random_state=0).fit(X))
    other = small(cls, random_state=1).fit(X)
    assert not np.array_equal(first.components_, other.components_)


@pytest.mark.parametrize("cls", CLASSES)
def test_threshold(cls):
    X = toy_data()
    grey = np.where(X, 128, 127).astype(np.uint8)
    assert_same_model(small(cls, binarize=127).fit(grey), small(cls).fit(X))
    model = small(cls)
    message = r"outside \[0, 1\] \(127 to 128\).*binarize=0.5.*as 1,.*as 0.*127"
    calls = [
        lambda: model.fit(grey),
        lambda: model.partial_fit(grey),
        lambda: clone(model).fit_transform(grey),
        lambda: model.score_samples(grey),
        lambda: make_pipeline(clone(model), StandardScaler()).fit(grey),
    ]
    for call in calls:
        with pytest.warns(DataConversionWarning, match=message) as told:
            call()
        # of the line that passed the data
        assert {warning.filename for warning in told} == {__file__}
    with pytest.warns(DataConversionWarning, match=message):
        H = model.transform(grey)
    # all of it is above 0.5
    assert_array_equal(H, model.transform(np.ones_like(X)))
    # a threshold between 0 and 1, and values on both sides, are fine
    soft = np.where(X, 0.31, 0.3)
    assert_same_model(
        small(cls, binarize=0.3).fit(soft.astype(np.float32)), small(cls).fit(X)
    )


@pytest.mark.parametrize("cls", CLASSES)
def test_probabilities(cls):
    X = toy_data()
    soft = np.where(X, 0.75, 0.25).astype(np.float32)
    model = small(cls, binarize=None).fit(soft)
    rate = (soft.sum(axis=0) + 0.5) / (len(X) + 1)
    assert_allclose(model.base_intercept_, np.log(rate / (1 - rate)), rtol=1e-6)
    W, hidden, _, c = twin(model)
    assert_allclose(
        model.transform(soft), c * naive.logistic(soft @ W.T + hidden), rtol=1e-5
    )
    # 0 and 1 are probabilities, too
    assert_same_model(small(cls, binarize=None).fit(X), small(cls).fit(X))
    for method in ("fit", "transform", "score", "partial_fit"):
        with pytest.raises(ValueError, match=r"binarize=None.*\[0, 1\].*0.25 to 1.5"):
            getattr(model, method)(np.where(X, 1.5, 0.25))


@pytest.mark.parametrize("cls", CLASSES)
def test_y_is_ignored(cls):
    X = toy_data()
    model = small(cls).fit(X)
    assert_same_model(small(cls).fit(X, np.arange(len(X))), model)
    assert model.score(X, np.arange(len(X))) == model.score(X)
    assert_array_equal(small(cls).fit_transform(X, ["a"] * len(X)), model.transform(X))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("convert", [np.asfortranarray, sp.csr_array])
def test_inputs_are_never_written(cls, convert):
    X = convert(toy_data().astype(np.float32))
    values = X.data if sp.issparse(X) else X
    before = values.copy()
    values.flags.writeable = False
    model = small(cls, binarize=None).fit(X, X_val=X)
    model.partial_fit(X).transform(X)
    model.score(X)
    model.pseudo_likelihood(X)
    model.gibbs(X, 2)
    if not sp.issparse(X):
        model.impute(X)
        model.inverse_transform(np.asfortranarray(model.transform(X)))
        model.sample(len(X), n_steps=2, clamp=X)
        clamp = np.full(6, np.nan)
        clamp.flags.writeable = False
        model.sample(2, n_steps=2, clamp=clamp)
        assert np.isnan(clamp).all()
    assert_array_equal(values, before)


# Inference.


def test_transform_and_back(fitted):
    V = naive.all_states(6)
    W, hidden, visible, c = twin(fitted)
    expected = c * naive.logistic(V @ W.T + hidden)
    H = fitted.transform(V)
    assert_allclose(H, expected, rtol=1e-5)
    assert_allclose(
        fitted.inverse_transform(H), naive.logistic(expected @ W + visible), rtol=1e-5
    )
    stages = list(fitted.staged_transform(V))
    assert len(stages) == fitted.n_components_
    for k, stage in enumerate(stages, start=1):
        assert_array_equal(stage, H[:, :k])


def test_feature_names_and_data_frames():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(toy_data(), columns=list("abcdef"))
    model = small(ContrastiveDivergenceRBM).fit(X)
    assert list(model.feature_names_in_) == list("abcdef")
    names = [f"contrastivedivergencerbm{i}" for i in range(4)]
    assert list(model.get_feature_names_out()) == names
    expected = model.transform(X)
    assert isinstance(expected, np.ndarray)
    H = model.set_output(transform="pandas").transform(X)
    assert list(H.columns) == names
    assert_array_equal(H.to_numpy(), expected)
    other = model.to_bernoulli_rbm()
    assert list(other.feature_names_in_) == list("abcdef")
    back = ContrastiveDivergenceRBM.from_bernoulli_rbm(other, X)
    assert list(back.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X[list("fedcba")])


def test_staged_transform_of_data_frames():
    pd = pytest.importorskip("pandas")
    model = small(ContrastiveDivergenceRBM).fit(toy_data())
    model.set_output(transform="pandas")
    X = pd.DataFrame(toy_data(20))
    expected = model.transform(X).to_numpy()
    for k, stage in enumerate(model.staged_transform(X.to_numpy()), start=1):
        assert_array_equal(np.asarray(stage), expected[:, :k])


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


def test_pseudo_likelihood(fitted):
    V, p = naive.rbm_distribution(twin(fitted))
    p_of = {tuple(v): q for v, q in zip(V, p, strict=True)}
    expected = np.zeros(len(V))
    for j in range(6):
        flipped = V.copy()
        flipped[:, j] = 1.0 - flipped[:, j]
        other = np.array([p_of[tuple(v)] for v in flipped])
        expected += np.log(p / (p + other))
    assert_allclose(fitted.pseudo_likelihood(V), expected, rtol=1e-4)


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


# Sampling.


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


def test_clamp_is_binarized_as_data_are():
    X = np.where(toy_data(), 255, 0)
    model = small(ContrastiveDivergenceRBM, binarize=127).fit(X)
    clamp = [200, 100, np.nan, np.nan, 255, 0]
    sample = model.sample(10, n_steps=5, clamp=clamp, random_state=0)
    assert_array_equal(sample[:, [0, 1, 4, 5]], np.tile([1, 0, 1, 0], (10, 1)))
    model = small(ContrastiveDivergenceRBM, binarize=None).fit(toy_data())
    with pytest.raises(ValueError, match="clamp must be 0, 1 or NaN"):
        model.sample(10, clamp=[0.5] + [np.nan] * 5)


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


def test_impute_is_the_conditional_expectation(fitted):
    """The same row many times: chains of their own."""
    n = 1000
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


@pytest.mark.parametrize("strategy", ["mean", "sample"])
def test_impute_keeps_what_is_there(fitted, strategy):
    X = toy_data(20).astype(np.float64)
    assert_array_equal(fitted.impute(X, strategy=strategy), X)
    assert_array_equal(fitted.impute(X > 0.5, strategy=strategy), X)
    missing = X.copy()
    missing[::2, 3] = np.nan
    filled = fitted.impute(missing, strategy=strategy, n_steps=10)
    known = ~np.isnan(missing)
    assert_array_equal(filled[known], X[known])
    assert ((filled[~known] >= 0) & (filled[~known] <= 1)).all()
    assert_array_equal(fitted.impute(missing, strategy=strategy, n_steps=10), filled)
    assert np.isnan(missing[0, 3])


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


# Other models.


def test_truncate(fitted):
    V = naive.all_states(6)
    before = pickle.dumps(fitted)
    fitted.score(V)
    for k in range(fitted.n_components_ + 1):
        first = fitted.truncate(k)
        assert type(first) is type(fitted) and first.n_components_ == k
        W, hidden, visible, c = twin(fitted)
        model = W[:k], hidden[:k], visible, c[:k]
        expected = naive.rbm_log_probability(model, V) - naive.rbm_log_partition(model)
        assert_allclose(first.score_samples(V), expected, atol=1e-5)
        assert_allclose(first.transform(V), fitted.transform(V)[:, :k], rtol=1e-5)
        first.components_ += 1.0
        first.intercept_visible_ += 1.0
        assert len(first.get_feature_names_out()) == k
    again = pickle.loads(before)
    assert_same_model(fitted, again)
    assert_array_equal(fitted.score_samples(V), again.score_samples(V))
    n = fitted.n_components_
    with pytest.raises(ValueError, match=f"n_components.*at most {n}.*got {n + 1}"):
        fitted.truncate(n + 1)


def test_staged_score_samples(fitted):
    V = naive.all_states(6)
    stages = list(fitted.staged_score_samples(V))
    assert len(stages) == fitted.n_components_
    for k, stage in enumerate(stages, start=1):
        assert_array_equal(stage, fitted.truncate(k).score_samples(V))
        assert np.exp(stage).sum() == pytest.approx(1.0, abs=1e-5)
    assert_allclose(stages[-1], fitted.score_samples(V), rtol=1e-12)


@pytest.mark.parametrize("with_data", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cls", CLASSES)
def test_bernoulli_rbm_there_and_back(cls, dtype, with_data):
    rbm = bernoulli_rbm(dtype=dtype)
    V = naive.all_states(6).astype(dtype)
    X = toy_data() if with_data else None
    model = cls.from_bernoulli_rbm(rbm, X, random_state=0)
    assert isinstance(model, cls) and model.n_components == 4
    H = model.transform(V)
    assert H.dtype == dtype
    assert_allclose(H, rbm.transform(V), rtol=2e-5)
    assert np.exp(model.score_samples(V)).sum() == pytest.approx(1.0, abs=1e-4)
    if with_data:
        rate = (X.sum(axis=0) + 0.5) / (len(X) + 1)
    else:
        states, p = naive.rbm_distribution(twin(model))
        rate = p @ states
    # from 500 chains, or exact
    spread = 1e-9 if with_data else BOUND * np.sqrt(rate * (1 - rate) / 500) + 1e-3
    assert (np.abs(naive.logistic(model.base_intercept_) - rate) < spread).all()
    back = model.to_bernoulli_rbm()
    assert isinstance(back, BernoulliRBM) and back.n_components == 4
    assert_array_equal(back.transform(V), model.to_bernoulli_rbm().transform(V))
    assert_allclose(back.transform(V), rbm.transform(V), rtol=2e-5)
    assert list(back.get_feature_names_out()) == [f"bernoullirbm{i}" for i in range(4)]
    back.components_ += 1.0
    assert_allclose(model.transform(V), rbm.transform(V), rtol=2e-5)
    # a step of its chain works as well
    assert back.gibbs(V).shape == V.shape


@pytest.mark.parametrize("cls", CLASSES)
def test_a_model_taken_over_has_all_fitted_attributes(cls):
    taken = cls.from_bernoulli_rbm(bernoulli_rbm(), toy_data())
    own = small(cls).fit(toy_data())
    names = {name for name in vars(own) if name.endswith("_") and name[0] != "_"}
    assert names - set(vars(taken)) == set()


def test_truncated_temperature():
    model = small(FrankWolfeRBM, alpha=2.0).fit(toy_data())
    assert model.alpha_ == pytest.approx(2.0, rel=1e-6)
    first = model.truncate(1)
    assert first.alpha_ == pytest.approx(first.unit_weights_.sum(), rel=1e-6)


def test_a_fitted_rbm_is_what_is_taken_over():
    cls = ContrastiveDivergenceRBM
    with pytest.raises(NotFittedError, match="BernoulliRBM"):
        cls.from_bernoulli_rbm(BernoulliRBM())
    with pytest.raises(ValueError, match="5 features.*expecting 6"):
        cls.from_bernoulli_rbm(bernoulli_rbm(), toy_data()[:, :5])
    with pytest.raises(ValueError, match="learning_rate"):
        cls.from_bernoulli_rbm(bernoulli_rbm(), learning_rate=-1.0)
    with pytest.raises(TypeError, match="intercept_hidden_.*PCA"):
        cls.from_bernoulli_rbm(PCA(2).fit(toy_data().astype(float)))


@pytest.mark.parametrize("way", ["truncate", "from_bernoulli_rbm"])
def test_partial_fit_goes_on_from_copied_models(way):
    """Units of a model that was learned elsewhere stay."""
    X = toy_data()
    if way == "truncate":
        first = MODELS["contrastive"].fit(X).truncate(2)
    else:
        first = ContrastiveDivergenceRBM.from_bernoulli_rbm(bernoulli_rbm(), X)
    first.set_params(learning_rate=1e-6)
    before = first.components_.copy()
    first.partial_fit(X)
    assert_allclose(first.components_, before, atol=1e-3)


def test_fractional_model_has_no_equal():
    model = clone(MODELS["fractional"]).fit(toy_data())
    assert (model.unit_weights_ != 1.0).all()
    with pytest.raises(ValueError, match="unit_weights_.*alpha='count'"):
        model.to_bernoulli_rbm()


# Copies, threads, parameters.


def test_copies(fitted, tmp_path):
    X = toy_data()
    joblib.dump(fitted, tmp_path / "model")
    for other in (
        pickle.loads(pickle.dumps(fitted)),
        joblib.load(tmp_path / "model"),
        copy.deepcopy(fitted),
    ):
        assert_same_model(other, fitted)
        assert_array_equal(other.transform(X), fitted.transform(X))
        assert_array_equal(other.score_samples(X), fitted.score_samples(X))
        assert_array_equal(
            other.sample(5, n_steps=5, random_state=0),
            fitted.sample(5, n_steps=5, random_state=0),
        )
        # learning goes on in the copy alone
        kept = fitted.components_.copy()
        other.partial_fit(X)
        assert not np.array_equal(other.components_[: len(kept)], kept)
        assert_array_equal(fitted.components_, kept)


def test_training_goes_on_in_the_same_way_in_a_copy(fitted):
    X = toy_data()
    first, second = (pickle.loads(pickle.dumps(fitted)) for _ in range(2))
    first.partial_fit(X).partial_fit(X[:50])
    second = pickle.loads(pickle.dumps(second.partial_fit(X))).partial_fit(X[:50])
    assert_same_model(first, second)


@pytest.mark.parametrize("cls", CLASSES)
def test_parameters_and_clones(cls):
    model = cls(7, learning_rate=0.3, binarize=None)
    parameters = model.get_params()
    assert parameters["n_components"] == 7 and parameters["binarize"] is None
    assert clone(model).get_params() == parameters
    assert model.set_params(learning_rate=0.1).learning_rate == 0.1
    fitted = small(cls).fit(toy_data())
    unfitted = clone(fitted)
    with pytest.raises(NotFittedError):
        unfitted.transform(toy_data())
    assert_same_model(unfitted.fit(toy_data()), fitted)


def test_clone_of_init_and_fine_tuner():
    arrays = (np.ones((2, 6)), np.zeros(2), np.zeros(6))
    model = clone(ContrastiveDivergenceRBM(init=arrays))
    for array, expected in zip(model.init, arrays, strict=True):
        assert_array_equal(array, expected)
    model = clone(FrankWolfeRBM(fine_tune=ContrastiveDivergenceRBM(max_iter=3)))
    assert model.fine_tune.max_iter == 3
    assert model.get_params()["fine_tune__max_iter"] == 3


UNFITTED_CALLS = {
    "transform": lambda m: m.transform(toy_data()),
    "inverse_transform": lambda m: m.inverse_transform(np.ones((1, 2))),
    "score": lambda m: m.score(toy_data()),
    "staged_score_samples": lambda m: list(m.staged_score_samples(toy_data())),
    "log_partition": lambda m: m.log_partition(),
    "log_partition_": lambda m: m.log_partition_,
    "sample": lambda m: m.sample(),
    "gibbs": lambda m: m.gibbs(toy_data()),
    "impute": lambda m: m.impute(toy_data()),
    "truncate": lambda m: m.truncate(1),
    "to_bernoulli_rbm": lambda m: m.to_bernoulli_rbm(),
    "get_feature_names_out": lambda m: m.get_feature_names_out(),
}


@pytest.mark.parametrize("name", UNFITTED_CALLS)
def test_unfitted_models_say_so(name):
    for cls in CLASSES:
        with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance"):
            UNFITTED_CALLS[name](cls())


def test_threads_of_matrix_products(of_digits):
    X = np.tile(digits(), (10, 1))
    with threadpool_limits(limits=1, user_api="blas"):
        one = of_digits.transform(X), of_digits.free_energy(X)
    with threadpool_limits(limits=2, user_api="blas"):
        two = of_digits.transform(X), of_digits.free_energy(X)
    for a, b in zip(one, two, strict=True):
        assert_allclose(a, b, rtol=1e-5)


# Bad input.

COMMON_BAD_PARAMETERS = {
    "n_components": [0, -1, 2.5, "ten"],
    "learning_rate": [0.0, -0.1, np.inf, np.nan, "fast"],
    "batch_size": [0, 1.5],
    "binarize": ["half", np.nan, np.inf],
    "early_stopping": ["yes"],
    "validation_fraction": [0.0, 1.0, -0.1],
    "max_gap": [-1.0],
    "warm_start": [None],
    "random_state": ["seed", -1],
    "n_gibbs_steps": [0, 1.5],
    "verbose": [-1],
}
BAD_PARAMETERS = {
    ContrastiveDivergenceRBM: {
        "schedule": ["cosine", None],
        "max_iter": [0, 2.5],
        "persistent": ["no"],
        "momentum": [1.0, -0.1],
        "weight_decay": [-1.0],
        "centered": [None],
        "init": ["zeros", 3, None],
    },
    FrankWolfeRBM: {
        "objective": ["exact", None],
        "unit_penalty": [-0.1, "none"],
        "radius": [0.0, -1.0],
        "alpha": ["sum", 0.0, -1.0, None],
        "away_steps": [None],
        "n_chains": [3, 10.5],
        "n_search_rows": [0],
        "max_search_iter": [0],
        "n_bias_steps": [-1],
        "n_corrective_steps": [-1, 0.5],
        "init": ["random", 3],
        "fine_tune": [BernoulliRBM(), "cd"],
        "fine_tune_norm": [0.0, -1.0, "small"],
        "tol": [-1.0],
        "n_iter_no_change": [0],
    },
}


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (cls, name, value)
        for cls, own in BAD_PARAMETERS.items()
        for name, values in {**COMMON_BAD_PARAMETERS, **own}.items()
        for value in values
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_bad_parameters_are_named(cls, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter.*{cls.__name__}"):
        cls(**{name: value}).fit(toy_data())


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.0, np.nan]], "Input X contains NaN"),
        ([[0.0, np.inf]], "Input X contains infinity"),
        (np.zeros((0, 3)), r"0 sample\(s\).*minimum of 1"),
        (np.zeros((3, 0)), r"0 feature\(s\).*minimum of 1"),
        ([["a", "b"]], "strings.*numeric values"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        (np.ones(4), "Expected 2D array, got 1D"),
        (np.ones((2, 2, 2)), "dim 3"),
        (1.0, "Expected 2D array, got scalar"),
        (sp.csr_array([[0.0, np.nan]]), "Input X contains NaN"),
    ],
    ids=["nan", "inf", "rows", "features", "str", "complex", "1d", "3d", "0d", "csr"],
)
def test_bad_data_is_named(cls, method, X, message):
    model = small(cls)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("cls", CLASSES)
def test_number_of_features_is_checked(cls):
    X = toy_data()
    model = small(cls).fit(X)
    before = copy.deepcopy(arrays_of(model))
    for method in ("transform", "score", "gibbs", "impute", "partial_fit"):
        with pytest.raises(ValueError, match="5 features.*expecting 6"):
            getattr(model, method)(X[:, :5])
    with pytest.raises(ValueError, match="5 features.*expecting 6"):
        small(cls).fit(X, X_val=X[:, :5])
    with pytest.raises(ValueError, match="5 features.*expecting 6"):
        model.set_params(warm_start=True).fit(X[:, :5])
    for array, expected in zip(arrays_of(model), before, strict=True):
        assert_array_equal(array, expected)
    # without, it is another fit
    assert model.set_params(warm_start=False).fit(X[:, :5]).n_features_in_ == 5


@pytest.mark.parametrize("cls", CLASSES)
def test_validation_leaves_training_rows(cls):
    model = small(cls, early_stopping=True)
    with pytest.raises(ValueError, match=r"validation_fraction=0.1 leaves no.*=1\."):
        model.fit(toy_data(1))
    model.set_params(validation_fraction=0.9)
    with pytest.raises(ValueError, match="validation_fraction=0.9.*n_samples=5"):
        model.fit(toy_data(5))
    # validation data given, all rows are for training
    assert np.isfinite(model.fit(toy_data(5), X_val=toy_data()).score(toy_data()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("value", [0, 1])
def test_constant_features(cls, value):
    """Their rates are smoothed: neither biases nor likelihoods are infinite."""
    X = toy_data()
    X[:, 2] = value
    model = small(cls).fit(X)
    assert all(np.isfinite(array).all() for array in arrays_of(model))
    assert np.isfinite(model.base_intercept_).all()
    # the other value has been seen in no row, yet is not impossible
    assert np.isfinite(model.score_samples(naive.all_states(6))).all()
    rare = np.exp(model.score_samples(naive.all_states(6)))
    assert rare[naive.all_states(6)[:, 2] != value].sum() < 0.05
    model = small(cls).fit(np.full_like(X, value))
    assert np.isfinite(model.score_samples(naive.all_states(6))).all()
    assert model.score(np.full_like(X, value)) > -0.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", CLASSES)
def test_one_row_and_one_feature(cls):
    row = toy_data(1)
    model = small(cls).fit(row)
    total = np.exp(model.score_samples(naive.all_states(6))).sum()
    assert total == pytest.approx(1.0, abs=1e-4)
    assert model.transform(row).shape == (1, model.n_components_)
    model.partial_fit(row)
    X = toy_data()[:, :1]
    model = small(cls).fit(X)
    rate = (X.sum() + 0.5) / (len(X) + 1)
    p = np.exp(model.score_samples([[0], [1]]))
    # a handful of noisy updates around the rate
    assert_allclose(p, [1 - rate, rate], atol=0.15)
    assert p.sum() == pytest.approx(1.0, abs=1e-5)


# Contrastive divergence.


@pytest.mark.parametrize(
    "parameters",
    [
        dict(),
        dict(n_gibbs_steps=5),
        dict(persistent=False),
        dict(persistent=False, n_gibbs_steps=5),
        dict(centered=False),
        dict(centered=False, persistent=False),
        dict(momentum=0.5),
        dict(weight_decay=1e-3),
        dict(schedule="constant", learning_rate=0.1),
        dict(schedule="inverse", learning_rate=1.0),
        dict(batch_size=7, learning_rate=0.1),
        dict(binarize=None),
    ],
    ids=str,
)
def test_contrastive_divergence_learns(parameters):
    """Half of what the best of them gains over independent features, 2.3 nats."""
    X = digits()
    parameters = {"batch_size": 20, "max_iter": 20, **parameters}
    model = ContrastiveDivergenceRBM(12, random_state=0, **parameters).fit(X)
    assert model.score(X) > independent_score(X) + 1.15
    assert model.n_iter_ == len(model.history_["mean_error"]) == 20


def test_history_of_learning_rates():
    rates = {}
    for schedule in ("linear", "constant", "inverse"):
        model = small(ContrastiveDivergenceRBM, max_iter=4, learning_rate=0.4)
        model.set_params(schedule=schedule).fit(toy_data())
        assert set(model.history_) == {"learning_rate", "mean_error", "seconds"}
        assert (np.diff(model.history_["seconds"]) > 0).all()
        rates[schedule] = model.history_["learning_rate"]
    assert_allclose(rates["linear"], [0.3, 0.2, 0.1, 0.0], atol=1e-12)
    assert_allclose(rates["constant"], 0.4)
    assert_allclose(rates["inverse"], 0.4 / (1 + 10 * np.array([0.25, 0.5, 0.75, 1])))


def test_weight_decay_shrinks():
    norms = [
        np.linalg.norm(
            small(ContrastiveDivergenceRBM, max_iter=30, weight_decay=strength)
            .fit(toy_data())
            .components_
        )
        for strength in (0.0, 0.01, 1.0)
    ]
    assert norms[0] > 1.05 * norms[1] > 2 * norms[2]


def init_arrays(n_units=3, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_units, n_features)),
        rng.normal(size=n_units),
        rng.normal(size=n_features),
    )


STILL = dict(learning_rate=1e-12, max_iter=1, random_state=0)


@pytest.mark.parametrize("kind", [tuple, list])
def test_init_by_arrays(kind):
    arrays = kind(init_arrays())
    for array in arrays:
        array.flags.writeable = False
    copies = copy.deepcopy(arrays)
    model = ContrastiveDivergenceRBM(99, init=arrays, **STILL).fit(toy_data())
    assert model.n_components_ == 3
    for array, expected in zip(arrays_of(model), copies, strict=False):
        assert_allclose(array, expected, atol=1e-6)
    model = ContrastiveDivergenceRBM(init=arrays, max_iter=5, random_state=0)
    model.fit(toy_data()).partial_fit(toy_data())
    for array, expected in zip(arrays, copies, strict=True):
        assert_array_equal(array, expected)


def test_init_by_estimators():
    X = toy_data()
    unfitted = BernoulliRBM(3, n_iter=2, random_state=0)
    expected = clone(unfitted).fit(X.astype(np.float32))
    model = ContrastiveDivergenceRBM(init=unfitted, **STILL).fit(X)
    assert_allclose(model.components_, expected.components_, atol=1e-6)
    assert not hasattr(unfitted, "components_")
    # fitted on other data, which is kept
    other = BernoulliRBM(5, n_iter=2, random_state=0).fit(~X)
    before = other.components_.copy()
    model = ContrastiveDivergenceRBM(init=FrozenEstimator(other), **STILL).fit(X)
    assert_allclose(model.components_, before, atol=1e-6)
    model.set_params(learning_rate=0.2, max_iter=3).fit(X)
    assert_array_equal(other.components_, before)
    # of a fractional RBM, weights and all
    fractional = clone(MODELS["fractional"]).fit(X)
    model = ContrastiveDivergenceRBM(init=FrozenEstimator(fractional), **STILL).fit(X)
    assert_close_models(model, fractional, atol=1e-6)
    assert_array_equal(model.unit_weights_, fractional.unit_weights_)
    model.set_params(learning_rate=0.1, max_iter=10).fit(X)
    total = np.exp(model.score_samples(naive.all_states(6))).sum()
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        (FrozenEstimator(BernoulliRBM()), NotFittedError, "BernoulliRBM.*not fitted"),
        (PCA(2), TypeError, "init must be an RBM.*components_.*PCA"),
        (LinearRegression(), (TypeError, ValueError), "LinearRegression|requires y"),
        (init_arrays()[:2], ValueError, "init must hold three arrays.*got 2"),
        (init_arrays(n_features=5), ValueError, r"init.*\(n_components, 6\).*\(3, 5\)"),
        (
            (*init_arrays()[:2], np.zeros(5)),
            ValueError,
            r"init.*\(n_components, 6\).*\(5,\)",
        ),
        (
            (init_arrays()[0], np.zeros(4), np.zeros(6)),
            ValueError,
            r"init must have the shapes.*\(4,\)",
        ),
        ((np.full((2, 6), np.nan), np.zeros(2), np.zeros(6)), ValueError, "NaN"),
        ((np.zeros(6), np.zeros(1), np.zeros(6)), ValueError, "2D array"),
        (FrozenEstimator(bernoulli_rbm(n_features=5)), ValueError, r"init.*\(4, 5\)"),
        (ContrastiveDivergenceRBM(0), ValueError, "n_components"),
    ],
    ids=str,
)
def test_bad_init_is_named(init, error, message):
    with pytest.raises(error, match=message):
        ContrastiveDivergenceRBM(init=init).fit(toy_data())


def noise_data(n_samples, n_features=20, seed=0):
    return np.random.default_rng(seed).random((n_samples, n_features)) < 0.5


def overfitting(**parameters):
    return ContrastiveDivergenceRBM(
        40,
        learning_rate=0.5,
        schedule="constant",
        batch_size=10,
        max_iter=300,
        random_state=0,
        **parameters,
    )


def test_early_stopping():
    """On noise, the gap between training and validation rows is what is learned."""
    X = noise_data(50)
    model = overfitting(early_stopping=True, validation_fraction=0.2, max_gap=1.0)
    gap = model.fit(X).history_["gap"]
    assert 1 < model.n_iter_ == len(gap) < 300
    assert gap[-1] > gap.min() + 1.0
    assert (gap[:-1] <= np.minimum.accumulate(gap[:-1]) + 1.0).all()
    assert model.components_.shape == (40, 20)
    # a tenth of the rows is another split
    assert len(clone(model).set_params(validation_fraction=0.1).fit(X).history_["gap"])
    model.set_params(max_gap=1e6, max_iter=3).fit(X)
    assert model.n_iter_ == 3


def test_validation_data():
    X, X_val = noise_data(50), noise_data(30, seed=1)
    model = overfitting(early_stopping=True, max_gap=1.0).fit(X, X_val=X_val)
    assert 1 < model.n_iter_ < 300
    # the partition function cancels from the difference of log-likelihoods
    gap = (-model.free_energy(X)).mean() - (-model.free_energy(X_val)).mean()
    assert model.history_["gap"][-1] == pytest.approx(gap, rel=1e-4)
    # without early_stopping it is recorded
    other = clone(model).set_params(early_stopping=False, max_iter=model.n_iter_ + 1)
    other.fit(X, X_val=X_val)
    assert other.n_iter_ == model.n_iter_ + 1
    assert_array_equal(other.history_["gap"][:-1], model.history_["gap"])
    # and changes nothing of the model
    assert_same_model(other, clone(other).fit(X))


def test_held_out_rows_are_not_trained_on():
    """Base rates are of the rows that are left."""
    X = toy_data(40)
    model = small(ContrastiveDivergenceRBM, early_stopping=True).fit(X)
    rate = naive.logistic(model.base_intercept_)
    counts = rate * 37 - 0.5
    assert_allclose(counts, np.round(counts), atol=1e-6)


def test_an_init_is_not_fitted_to_held_out_rows():
    X = toy_data(40)
    seen = []

    class Spy(BernoulliRBM):
        def fit(self, X, y=None):
            seen.append(len(X))
            return super().fit(X)

    model = ContrastiveDivergenceRBM(
        init=Spy(2, n_iter=1), early_stopping=True, max_iter=1
    )
    model.fit(X)
    assert seen == [36]


@pytest.mark.parametrize(
    "parameters",
    [dict(), dict(momentum=0.5), dict(persistent=False), dict(n_gibbs_steps=2)],
    ids=str,
)
def test_warm_start_goes_on(parameters):
    X = toy_data()
    options = dict(schedule="constant", **parameters)
    model = small(ContrastiveDivergenceRBM, max_iter=3, warm_start=True, **options)
    model.fit(X).fit(X)
    assert model.n_iter_ == 6
    assert {len(values) for values in model.history_.values()} == {6}
    # as one longer fit
    assert_same_model(
        model, small(ContrastiveDivergenceRBM, max_iter=6, **options).fit(X)
    )
    assert model.set_params(warm_start=False).fit(X).n_iter_ == 3


def test_history_keeps_one_entry_an_epoch():
    """Validation data may come with a later fit."""
    X = toy_data()
    model = small(ContrastiveDivergenceRBM, max_iter=2, warm_start=True)
    model.fit(X).fit(X, X_val=X)
    assert {len(values) for values in model.history_.values()} == {4}


@pytest.mark.parametrize("warm_start", [False, True])
def test_interrupted_fit(warm_start, monkeypatch):
    """Ctrl-C in the third of five epochs of 15 updates."""
    X = toy_data()
    parameters = dict(schedule="constant", warm_start=warm_start)
    model = small(ContrastiveDivergenceRBM, **parameters)
    with monkeypatch.context() as patch:
        interrupt(patch, contrastive, 35)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    if not warm_start:
        assert not [name for name in vars(model) if name.endswith("_")]
        return
    assert model.n_iter_ == 2
    assert {len(values) for values in model.history_.values()} == {2}
    expected = small(ContrastiveDivergenceRBM, max_iter=2, schedule="constant").fit(X)
    assert_same_model(model, expected)
    # and goes on from there
    assert model.set_params(max_iter=3).fit(X).n_iter_ == 5
    assert_same_model(model, small(ContrastiveDivergenceRBM, **parameters).fit(X))


def test_interrupt_before_the_first_epoch_ends(monkeypatch):
    X = toy_data()
    model = small(ContrastiveDivergenceRBM, warm_start=True)
    interrupt(monkeypatch, contrastive, 10)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]


def snapshot(model):
    return copy.deepcopy(
        [arrays_of(model), model.history_, model.n_iter_, model.log_partition_]
    )


def spoil_with_nan(model, monkeypatch):
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((10, 2), np.nan))


def spoil_by_divergence(model, monkeypatch):
    model.set_params(learning_rate=1e4)
    with pytest.raises(ValueError, match="diverged.*Reduce learning_rate=10000"):
        model.fit(toy_data())


def spoil_by_divergence_of_partial_fit(model, monkeypatch):
    model.set_params(learning_rate=1e4)
    with pytest.raises(ValueError, match="diverged.*Reduce learning_rate=10000"):
        model.partial_fit(toy_data())


def spoil_by_interrupt(model, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, contrastive, 3)
        with pytest.raises(KeyboardInterrupt):
            model.fit(toy_data())


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [
        spoil_with_nan,
        spoil_by_divergence,
        spoil_by_divergence_of_partial_fit,
        spoil_by_interrupt,
    ],
)
@pytest.mark.parametrize("cls", CLASSES)
def test_failed_refit_keeps_the_old_fit(cls, spoil, warm_start, monkeypatch):
    X = toy_data()
    # so that a refit has something to do
    more = dict(n_components=SMALL[cls]["n_components"] + 2)
    model = small(cls, warm_start=warm_start).fit(X).set_params(**more)
    expected = pickle.loads(pickle.dumps(model))
    before = snapshot(model)
    spoil(model, monkeypatch)
    for old, new in zip(before[0], arrays_of(model), strict=True):
        assert_array_equal(old, new)
    for name, values in before[1].items():
        assert_array_equal(model.history_[name], values)
    assert [model.n_iter_, model.log_partition_] == before[2:]
    assert model.n_features_in_ == 6
    # the state that learning goes on from is whole as well
    model.set_params(learning_rate=0.1)
    expected.set_params(learning_rate=0.1)
    assert_same_model(model.partial_fit(X), expected.partial_fit(X))


@pytest.mark.parametrize("cls", CLASSES)
def test_divergence_of_a_first_fit(cls):
    model = small(cls, learning_rate=1e4)
    with pytest.raises(ValueError, match="weights diverged.*learning_rate=10000.0"):
        model.fit(toy_data())
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    "n_rows, n_passes, rate", [(1, 4, 0.1), (7, 8, 0.3), (300, 20, 0.3)]
)
def test_partial_fit_learns(n_rows, n_passes, rate):
    X = digits()
    model = ContrastiveDivergenceRBM(
        8, learning_rate=rate, batch_size=20, random_state=0
    )
    assert model.partial_fit(X[:n_rows]) is model
    scores = [model.score(X)]
    for _ in range(2):
        for _ in range(n_passes // 2):
            for start in range(0, len(X), n_rows):
                model.partial_fit(X[start : start + n_rows])
        scores.append(model.score(X))
    assert scores[0] < scores[1] < scores[2]
    assert scores[2] > independent_score(X) + 0.5
    assert model.n_iter_ == 1 + 2 * (n_passes // 2) * -(-len(X) // n_rows)


@pytest.mark.parametrize("cls", CLASSES)
def test_base_rates_of_partial_fits_are_of_all_rows(cls):
    X = toy_data()
    model = small(cls)
    for part in np.array_split(X, 7):
        model.partial_fit(part)
    assert_allclose(model.base_intercept_, small(cls).fit(X).base_intercept_, rtol=1e-9)
    assert model.n_features_in_ == 6


def test_partial_fit_goes_on_after_fit():
    X = toy_data()
    options = dict(schedule="constant", max_iter=3)
    model = small(ContrastiveDivergenceRBM, **options).fit(X)
    first = model.components_.copy()
    model.partial_fit(X)
    expected = small(ContrastiveDivergenceRBM, **{**options, "max_iter": 4}).fit(X)
    for array, other in zip(arrays_of(model), arrays_of(expected), strict=True):
        assert_array_equal(array, other)
    assert not np.array_equal(first, model.components_)


def test_verbose_prints_a_line_an_epoch(capsys):
    small(ContrastiveDivergenceRBM, verbose=True, max_iter=3).fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split(":")[0] for line in lines]
    assert heads == ["epoch 1 of 3", "epoch 2 of 3", "epoch 3 of 3"]
    assert "mean_error" in lines[0]
    assert lines[-1].endswith(", 0 s left")


def test_verbose_counts_on_after_a_warm_start(capsys):
    model = small(ContrastiveDivergenceRBM, max_iter=2, warm_start=True).fit(toy_data())
    model.set_params(verbose=True).fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 3 of 4", "epoch 4 of 4"]


def test_verbose_prints_a_line_a_step(capsys):
    model = small(FrankWolfeRBM, verbose=True).fit(toy_data())
    model.set_params(n_components=4).partial_fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    for number, line in enumerate(lines, 1):
        assert line.startswith(f"step {number}: {number} of at most ")
        assert "gain" in line and "norm" in line and line.endswith("s left")
    assert len(lines) == 4
    assert lines[2].endswith(", 0 s left")


def test_time_that_is_left():
    # one slow epoch among others does not count
    assert time_of_epochs(np.array([2.0, 4.0, 14.0, 16.0]), 3) == pytest.approx(6.0)
    assert time_of_epochs(np.cumsum(np.arange(1.0, 31.0)), 1) == pytest.approx(25.5)
    # unit k takes 0.5 + 0.1 k; the first step also compiles
    sizes = np.arange(1, 101)
    durations = 0.5 + 0.1 * sizes
    durations[0] += 20.0
    for n in (6, 30, 99):
        left = time_of_growth(np.cumsum(durations[:n]), sizes[:n], 100 - n)
        assert left == pytest.approx(durations[n:].sum())
    # no trend in steps that add nothing, and none downwards
    assert time_of_growth(np.array([1.0, 3.0]), np.array([1, 1]), 5) == pytest.approx(
        10
    )
    assert time_of_growth(np.array([3.0]), np.array([1]), 5) == pytest.approx(15.0)
    falling = np.cumsum([9.0, 9.0, 3.0, 1.0])
    assert time_of_growth(falling, np.arange(1, 5), 5) == pytest.approx(10.0)


@pytest.mark.parametrize(
    "seconds, text", [(0.2, "0 s"), (99.4, "99 s"), (700, "12 min"), (12_240, "3.4 h")]
)
def test_durations_in_a_unit_that_suits(seconds, text):
    assert format_duration(seconds) == text


# Callbacks.


class Recorder:
    """What a callback is told; it goes along to estimators within."""

    max_propagation_depth = None

    def __init__(self, stop_at=None):
        self.events, self.models, self.data = [], [], []
        self.stop_at = stop_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(("begin", context.task_name, context.max_subtasks))
        self.data.append((X, y))

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, fitted_estimator=None
    ):
        self.events.append(("end", context.task_name, context.task_id))
        self.models.append(fitted_estimator)
        self.data.append((X, y))
        return (context.task_name, context.task_id) == self.stop_at

    def ends(self, name):
        return [event[2] for event in self.events if event[:2] == ("end", name)]


def leaves(name, n):
    return [e for i in range(n) for e in (("begin", name, 0), ("end", name, i))]


def test_callbacks_see_epochs():
    X, y, recorder = toy_data(), np.arange(300), Recorder()
    model = small(ContrastiveDivergenceRBM, max_iter=3).set_callbacks(recorder)
    model.fit(X, y)
    assert recorder.events == [
        "setup",
        ("begin", "fit", 3),
        *leaves("epoch", 3),
        ("end", "fit", 0),
        "teardown",
    ]
    assert all(given[0] is X and given[1] is y for given in recorder.data)
    assert_same_model(model, small(ContrastiveDivergenceRBM, max_iter=3).fit(X))


def test_callbacks_see_units_and_fine_tuning():
    X, recorder = toy_data(), Recorder()
    tuner = ContrastiveDivergenceRBM(max_iter=2)
    model = small(FrankWolfeRBM, fine_tune=tuner).set_callbacks(recorder).fit(X)
    assert recorder.events == [
        "setup",
        ("begin", "fit", 2),
        ("begin", "growth", 3),
        *leaves("unit", 3),
        ("end", "growth", 0),
        # the task of the fine-tuner takes the place of this one
        ("begin", "fit", 2),
        *leaves("epoch", 2),
        ("end", "fit", 1),
        ("end", "fit", 0),
        "teardown",
    ]
    assert_same_model(model, small(FrankWolfeRBM, fine_tune=tuner).fit(X))
    assert not hasattr(model.fine_tune_, "_skl_callbacks")


@pytest.mark.parametrize("cls", CLASSES)
def test_callbacks_get_the_model_so_far(cls):
    X, recorder = toy_data(), Recorder()
    model = small(cls).set_callbacks(recorder).fit(X)
    *parts, last = recorder.models
    assert_same_model(last, model)
    if cls is FrankWolfeRBM:
        assert [part.n_components_ for part in parts] == [1, 2, 3, 3]
    else:
        # constant: an epoch is the same in a shorter fit
        options = dict(schedule="constant", momentum=0.5)
        recorder = Recorder()
        small(cls, **options).set_callbacks(recorder).fit(X)
        parts = recorder.models
        for n, part in enumerate(parts[:-1], 1):
            assert_same_model(part, small(cls, max_iter=n, **options).fit(X))
    for part in parts:
        assert part.transform(X).shape == (300, part.n_components_)
        assert np.isfinite(part.score(X))


def test_a_growth_without_units_has_a_model_for_callbacks():
    recorder = Recorder()
    X = np.random.default_rng(0).random((300, 4)) < 0.5
    model = FrankWolfeRBM(2, tol=1.0, random_state=0, n_iter_no_change=2)
    with pytest.warns(ConvergenceWarning):
        model.set_callbacks(recorder).fit(X)
    assert [part.n_components_ for part in recorder.models] == [1, 1, 1]


@pytest.mark.parametrize("cls", CLASSES)
def test_a_callback_may_stop(cls):
    X = toy_data()
    options = {FrankWolfeRBM: {}, ContrastiveDivergenceRBM: {"schedule": "constant"}}
    name = {FrankWolfeRBM: "unit", ContrastiveDivergenceRBM: "epoch"}[cls]
    size = {FrankWolfeRBM: "n_components", ContrastiveDivergenceRBM: "max_iter"}[cls]
    recorder = Recorder(stop_at=(name, 1))
    model = small(cls, **options[cls]).set_callbacks(recorder).fit(X)
    assert recorder.ends(name) == [0, 1] and recorder.events[-1] == "teardown"
    assert model.n_iter_ == 2
    assert_same_model(model, small(cls, **{size: 2}, **options[cls]).fit(X))


def test_a_callback_may_stop_a_part():
    X, tuner = toy_data(), ContrastiveDivergenceRBM(max_iter=3)
    model = small(FrankWolfeRBM, fine_tune=tuner)
    of_growth = clone(model).set_callbacks(Recorder(("growth", 0))).fit(X)
    assert of_growth.n_components_ == 3 and not hasattr(of_growth, "fine_tune_")
    of_units = clone(model).set_callbacks(Recorder(("unit", 0))).fit(X)
    assert of_units.n_components_ == 1 and of_units.fine_tune_.n_iter_ == 3
    of_epochs = clone(model).set_callbacks(Recorder(("epoch", 1))).fit(X)
    assert of_epochs.n_components_ == 3 and of_epochs.fine_tune_.n_iter_ == 2


@pytest.mark.parametrize("cls", CLASSES)
def test_callbacks_end_with_a_fit_that_fails(cls, monkeypatch):
    recorder = Recorder()
    model = small(cls).set_callbacks(recorder)
    module = {FrankWolfeRBM: growth, ContrastiveDivergenceRBM: contrastive}[cls]
    interrupt(monkeypatch, module, 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(toy_data())
    assert recorder.events[-1] == "teardown"
    assert not any("callback_fit_ctx" in name for name in vars(model))


@pytest.mark.parametrize("cls", CLASSES)
def test_callbacks_reach_an_rbm_in_a_pipeline(cls):
    X, recorder = toy_data(), Recorder()
    model = make_pipeline(small(cls), LogisticRegression())
    model.set_callbacks(recorder).fit(X, X[:, 0])
    name = {FrankWolfeRBM: "unit", ContrastiveDivergenceRBM: "epoch"}[cls]
    assert recorder.ends(name) == list(range(model[0].n_iter_))
    assert recorder.events.count("setup") == 1


@pytest.mark.parametrize("cls", CLASSES)
def test_scores_of_each_part(cls):
    X = toy_data()

    def fit_quality(model, X, y):
        return model.pseudo_likelihood(X).mean()

    monitor = ScoringMonitor(scoring={"quality": fit_quality})
    # which asks for a y
    model = small(cls).set_callbacks(monitor).fit(X, np.zeros(len(X)))
    name = {FrankWolfeRBM: "unit", ContrastiveDivergenceRBM: "epoch"}[cls]
    rows = [r for r in monitor.get_logs().data if r["task_name"] == name]
    assert len(rows) == model.n_iter_
    assert rows[-1]["quality"] == model.pseudo_likelihood(X).mean()
    assert len({row["quality"] for row in rows}) == len(rows)


def test_progress_bars_with_the_time_left(capsys, monkeypatch):
    pytest.importorskip("rich", reason="ProgressBar needs rich")
    monkeypatch.setenv("COLUMNS", "120")
    X = toy_data()
    tuner = ContrastiveDivergenceRBM(max_iter=2)
    small(FrankWolfeRBM, fine_tune=tuner).set_callbacks(ProgressBar()).fit(X)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    bars = [" ".join(line[:3]) for line in lines]
    assert [*dict.fromkeys(bars[-3:])] == [
        "FrankWolfeRBM - fit",
        "FrankWolfeRBM - growth",
        "FrankWolfeRBM - fine-tuning",
    ]
    for line in lines[-3:]:
        assert line[-2] == "100%" and line[-1].startswith("0:00:")
