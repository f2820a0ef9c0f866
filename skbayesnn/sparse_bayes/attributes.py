"""The public attributes of fitted estimators, from what was learned."""

import numpy as np

from .learning.prior import parameter_variance
from .network import bias_mask, expand
from .prediction.posterior import sensitivity
from .records.lags import lagged_names, union_of_lags
from .training_record import OF_INPUTS, input_names, output_names


def set_attributes(estimator, attributes):
    """Replace all public attributes of an earlier fit by those of this one."""
    for name in list(vars(estimator)):
        if name.endswith("_") and not name.startswith("_") and name not in OF_INPUTS:
            delattr(estimator, name)
    for name, value in attributes.items():
        setattr(estimator, name, value)


def fitted_attributes(estimator):
    """What a copy needs to be fitted as well: what was learned and is public of it."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name == "_model" or (name.endswith("_") and not name.startswith("_"))
    }


def copy_input_attributes(source, target):
    """Give an estimator the attributes of the inputs that another one was fitted to."""
    for name in OF_INPUTS:
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))


def lag_relevance(estimator, ensemble, members):
    """Relevance of every regressor of an ensemble on lags, dict of str to float.

    ``members`` are its fitted estimators. Their weighted root mean square, 0 where a
    member lacks a regressor.
    """
    union = union_of_lags([network.lags for network in ensemble.members])
    names = lagged_names(
        union, input_names(estimator), output_names(estimator, ensemble.n_outputs)
    )
    relevances = [member.lag_relevance_ for member in members]
    square = [[r.get(name, 0.0) ** 2 for name in names] for r in relevances]
    relevance = np.sqrt(ensemble.weights @ np.array(square)).tolist()
    return dict(zip(names, relevance, strict=True))


def network_attributes(learned, X=None, sample_weight=None):
    """Attributes that describe one learned network.

    ``X`` (n, n_inputs) holds the inputs of its training data, in the user's units,
    without which their relevance is left out;
    ``sample_weight`` (n,) how many times each row counts, None for once.
    """
    fitted, history = learned.fitted, learned.history
    noise_variance = (fitted.squared_std * fitted.scaling.y_scale) ** 2
    single = len(noise_variance) == 1
    of_noise = {}
    if np.isfinite(fitted.degrees_of_freedom):
        of_noise = {"degrees_of_freedom_": fitted.degrees_of_freedom}
    of_inputs = {}
    if X is not None:
        of_inputs = {"feature_relevance_": sensitivity(fitted, X, sample_weight)}
    return {
        **_layer_attributes(fitted.network, learned.start.prior),
        "noise_variance_": float(noise_variance[0]) if single else noise_variance,
        **of_noise,
        "posterior_covariance_": fitted.covariance,
        "log_marginal_likelihood_": learned.log_marginal_likelihood,
        **of_inputs,
        "history_": history,
        "n_cycles_": len(history["n_iter"]),
        "n_iter_": max(1, int(history["n_iter"].sum())),
        "n_outputs_": len(noise_variance),
    }


def _layer_attributes(network, prior):
    """Weights, masks and prior variances in the shapes of the full network."""
    weights = network.keep & ~bias_mask(network)
    coefs, intercepts = expand(network, network.theta)
    masks, _ = expand(network, weights, fill=False)
    variances, _ = expand(network, np.where(weights, parameter_variance(prior), 0.0))
    of_skip = {}
    if network.skip:
        del intercepts[-1]
        of_skip = {
            "skip_coef_": coefs.pop(),
            "skip_mask_": masks.pop(),
            "skip_prior_variance_": variances.pop(),
        }
    return {
        "coefs_": coefs,
        "intercepts_": intercepts,
        "masks_": masks,
        "prior_variance_": variances,
        **of_skip,
    }
