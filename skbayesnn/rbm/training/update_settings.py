"""The settings of a step of contrastive divergence, from an estimator."""

from ..learning import contrastive


def update_of(estimator):
    """Those of an estimator with its parameters; "auto" stands for the plainest."""
    n_steps, decay = estimator.n_gibbs_steps, estimator.weight_decay
    return contrastive.Settings(
        1 if n_steps == "auto" else n_steps,
        estimator.persistent,
        float(estimator.momentum),
        0.0 if decay == "auto" else float(decay),
        estimator.centered,
        float(estimator.averaging),
    )
