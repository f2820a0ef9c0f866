"""Where a training starts: the model, and the first state of contrastive divergence."""

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ..._random import Stream, derived_seed, generator
from ..._validation import check_array
from .. import model as rbm_model
from ..learning import contrastive
from ..likelihood import annealing

# Rows from which the first offset of the hidden units is computed.
_MAX_OFFSET_ROWS = 200
_INITIAL_SCALE = 0.01
# Standard deviation of the inputs of units from larger weights, where means are far
# from linear in the inputs. With half of it, one of two parities was not learned.
_LARGER_INPUTS = 2.0


def start_model(init, n_components, rows, seed):
    """The RBM that training starts from, by the parameter ``init``."""
    if isinstance(init, str):
        rng = generator(seed, Stream.INITIAL_WEIGHTS)
        shape = n_components, rows.n_features
        weights = _INITIAL_SCALE * rng.standard_normal(shape, dtype=np.float32)
        hidden = np.zeros(n_components)
        return rbm_model.make_rbm(weights, hidden, base_of(rows), units=rows.units)
    if isinstance(init, tuple | list):
        return _model_of_arrays(init, rows.n_features)
    return model_of_init(init, rows)


def larger_model(n_components, rows, seed):
    """The RBM with random weights large enough to see more than pairs of features.

    Small weights grow by the correlations of pairs alone: where all features are
    uncorrelated, they stay small.
    """
    rbm = start_model("random", n_components, rows, seed)
    variance = rows.units.variances(rows.mean()).sum()
    scale = _LARGER_INPUTS / (_INITIAL_SCALE * np.sqrt(variance))
    return rbm._replace(weights=rbm.weights * np.float32(scale))


def base_of(rows):
    """Biases of independent units, from which annealing starts."""
    return rows.units.natural_parameters(rows.mean(), len(rows))


def independent_model(rows):
    """The model without hidden units, at the base rates of the rows."""
    return rbm_model.independent_units(base_of(rows), rows.units)


def normalised_independent_model(rows):
    """The same, and its log partition function."""
    rbm = independent_model(rows)
    return rbm, annealing.base_log_partition(rbm, base_of(rows))


def model_of_init(init, rows):
    """The RBM in an estimator, ours or scikit-learn's, that is fitted here.

    A frozen one stays as it is. The units of lone states, which are the last ones, are
    left out: their weights are beyond those that a training allows.
    """
    # a frozen estimator is not fitted, and needs no float copy of all rows; it takes no
    # fit without y
    data = slice(1) if isinstance(init, FrozenEstimator) else slice(None)
    fitted = clone(init).fit(rows.take(data), None)
    # what a FrozenEstimator wraps
    fitted = getattr(fitted, "estimator", fitted)
    rbm = model_of_estimator(fitted, "init")
    _model_of_arrays(rbm[:3], rows.n_features)
    n_lone = len(getattr(fitted, "lone_states_", ()))
    return rbm_model.select(rbm, slice(len(rbm.weights) - n_lone))


def _model_of_arrays(arrays, n_features):
    if len(arrays) != 3:
        raise ValueError(
            "init must hold three arrays, (components, intercept_hidden, "
            f"intercept_visible); got {len(arrays)}."
        )
    weights = check_array(arrays[0], dtype=np.float64, input_name="init[0]")
    expected = [weights.shape[:1], (n_features,)]
    biases = [
        check_array(array, dtype=np.float64, ensure_2d=False, input_name="init")
        for array in arrays[1:]
    ]
    if weights.shape[1] != n_features or [b.shape for b in biases] != expected:
        raise ValueError(
            f"init must have the shapes (n_components, {n_features}), (n_components,) "
            f"and ({n_features},); got {weights.shape}, {biases[0].shape} and "
            f"{biases[1].shape}."
        )
    return rbm_model.make_rbm(weights, *biases)


def start_training(rbm, rows, n_chains, seed, chains=None):
    """The state before the first step.

    The persistent chains start at rows of ``chains``, or of the data.
    """
    some = rows.states(slice(_MAX_OFFSET_ROWS))
    hidden_offset = rbm_model.hidden_means(rbm, some).mean(axis=0)
    n_chains = contrastive.clip_batch(n_chains, len(rows))
    n_states = len(rows) if chains is None else len(chains)
    index = generator(seed, Stream.INITIAL_CHAINS).integers(n_states, size=n_chains)
    states = rows.states(index) if chains is None else chains[index]
    seed = derived_seed(seed, Stream.EPOCH_CHAINS)
    return contrastive.init(rbm, rows.mean(), hidden_offset, states, seed)


def model_of_estimator(estimator, name):
    """The RBM in a fitted estimator, ours or scikit-learn's."""
    names = ("components_", "intercept_hidden_", "intercept_visible_")
    missing = [attribute for attribute in names if not hasattr(estimator, attribute)]
    if missing:
        raise TypeError(
            f"{name} must be an RBM estimator, which has components_, "
            "intercept_hidden_ and intercept_visible_ once it is fitted; got "
            f"{estimator!r} without {', '.join(missing)}."
        )
    arrays = [getattr(estimator, attribute) for attribute in names]
    return rbm_model.make_rbm(*arrays, getattr(estimator, "unit_weights_", None))
