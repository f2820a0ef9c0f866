"""Access of tests to the values that fitted sparse Bayesian estimators hold."""

import copy


def ensemble_of(model):
    """The networks of a lagged model, and their weights."""
    return model._model.ensemble


def equations_of(space):
    """The `Equations` behind a state space."""
    return space._equations


def lags_of(model):
    """Lags of a lagged model, or of the first network of an ensemble."""
    return ensemble_of(model).members[0].lags


def fitted_network(model, member=0):
    """The `FittedNetwork` of a model, or of one member of an ensemble."""
    if hasattr(model, "_model"):
        return ensemble_of(model).members[member].fitted
    return model._learned.fitted


def set_fitted(model, fitted, member=0):
    """Let a lagged model predict by another network; in place."""
    ensemble = ensemble_of(model)
    members = list(ensemble.members)
    members[member] = members[member]._replace(fitted=fitted)
    set_ensemble(model, ensemble._replace(members=tuple(members)))
    if hasattr(model, "estimators_"):
        set_fitted(model.estimators_[member], fitted)


def replace_fitted(model, member=0, **changes):
    """Change fields of the network by which a lagged model predicts; in place."""
    fitted = fitted_network(model, member)
    set_fitted(model, fitted._replace(**changes), member)


def set_weights(model, weights):
    """Give the members of an ensemble other weights; in place."""
    model.estimator_weights_ = weights
    set_ensemble(model, ensemble_of(model)._replace(weights=weights))


def make_ensemble(model, others, weights):
    """Let a lagged model predict together with others; in place."""
    models = [copy.copy(model), *others]
    members = tuple(ensemble_of(one).members[0] for one in models)
    set_ensemble(model, ensemble_of(model)._replace(members=members, weights=weights))
    model.estimators_, model.estimator_weights_ = models, weights


def set_ensemble(model, ensemble):
    model._model = model._model._replace(ensemble=ensemble)


def n_observations(model):
    """How many errors the last stage of a fit squared."""
    return model._learned.n_observations


def mark_diverged(model):
    """Let the network pass for one whose free run diverged in its fit; in place."""
    model._learned = model._learned._replace(diverged=True)
