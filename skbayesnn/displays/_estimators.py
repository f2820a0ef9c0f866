"""What displays read from a fitted estimator: its public attributes only."""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def final_model(estimator):
    """The estimator, or the last step of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def components_of(estimator, display):
    """A fitted model, or the last step of a pipeline, and its weights (n_units, n).

    ``display`` names what draws them, for the error of a model without.
    """
    check_is_fitted(estimator)
    model = final_model(estimator)
    if not hasattr(model, "components_"):
        raise ValueError(
            f"{type(model).__name__} has no components_, the weights that {display} "
            "draws."
        )
    return model, np.asarray(model.components_)


def members(estimator):
    """Fitted networks and their weights: those of an ensemble, or the one model."""
    check_is_fitted(estimator)
    model = final_model(estimator)
    networks = getattr(model, "estimators_", None)
    if networks is None:
        return [model], np.ones(1)
    return list(networks), np.asarray(model.estimator_weights_, dtype=np.float64)


def describe_horizon(estimator, horizon):
    """Name of a prediction, for the legend."""
    if getattr(final_model(estimator), "max_lag_", None) is None:
        return "prediction"
    if horizon is None:
        return "free run"
    return "one step ahead" if horizon == 1 else f"{horizon} steps ahead"


def output_names(model, n_outputs):
    """Names of the outputs: ``output_names_``, or y, or y0, y1, ..."""
    default = ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
    return list(getattr(model, "output_names_", default))
