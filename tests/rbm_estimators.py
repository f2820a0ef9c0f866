"""Small data and estimators of both kinds, for tests of the RBM estimators."""

import copy
import pickle

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM

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


# Without settings but for few updates, whose likelihoods are estimated; for `digits`.
AUTOMATIC = {
    "rounds": ContrastiveDivergenceRBM(
        20, max_updates=150, batch_size=50, random_state=3
    ),
    "sizes": FrankWolfeRBM(
        fine_tune=ContrastiveDivergenceRBM(max_updates=40, batch_size=50),
        n_chains=60,
        n_search_rows=100,
        max_search_iter=3,
        random_state=3,
    ),
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


def automatic(kind, **parameters):
    return clone(AUTOMATIC[kind]).set_params(**parameters)


def of_training(kind, **parameters):
    """Names of parameters of the training."""
    if kind == "rounds":
        return parameters
    return {f"fine_tune__{name}": value for name, value in parameters.items()}


def arrays_of(model):
    names = ("components_", "intercept_hidden_", "intercept_visible_")
    return [getattr(model, name) for name in (*names, "unit_weights_")]


def twin(model):
    """What `naive` takes."""
    return tuple(np.asarray(array, dtype=np.float64) for array in arrays_of(model))


def copy_with_training(model):
    """A copy from which training continues as from the model."""
    warm_start = model.warm_start
    whole = pickle.dumps(model.set_params(warm_start=True))
    model.set_params(warm_start=warm_start)
    return pickle.loads(whole).set_params(warm_start=warm_start)


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


def snapshot(model):
    return copy.deepcopy(
        [arrays_of(model), model.history_, model.n_iter_, model.log_partition_]
    )


def growing(n_components=4, **parameters):
    """Cheap, and sure to grow: the linearised objective takes what it finds."""
    defaults = dict(
        objective="linearized",
        unit_penalty=0.1,
        n_chains=200,
        n_corrective_steps=10,
        learning_rate=0.1,
    )
    return FrankWolfeRBM(n_components, random_state=0, **{**defaults, **parameters})


def careful(n_components=4, **parameters):
    """As is: units are checked on held-out chains, of which it takes many."""
    defaults = dict(
        objective="likelihood",
        unit_penalty=0.1,
        n_chains=1000,
        n_corrective_steps=50,
        learning_rate=0.1,
    )
    return FrankWolfeRBM(n_components, random_state=0, **{**defaults, **parameters})


def assert_same_path(first, second, n_steps=None):
    """All but the time it took."""
    assert set(first) == set(second)
    for name in set(first) - {"seconds"}:
        assert_array_equal(first[name][:n_steps], second[name][:n_steps], name)


def norms_of(model):
    return np.sqrt(
        np.square(model.components_).sum(axis=1) + np.square(model.intercept_hidden_)
    )
