r"""Prior variances of groups of weights, and their update.

Every group set partitions the weights of each layer: into single weights ("element",
Table 1a), into the weights that leave one unit ("row", 1b) or into those that enter
one ("column", 1c).  A weight that belongs to several groups has the product of their
Gaussians as its prior, so the precisions add,

.. math:: 1/\upsilon_i = \sum_s 1/\upsilon_{s, g_s(i)}.

This variance is concave and increasing in the group variances, so
:math:`v(\Upsilon)` of equation (31) stays concave in them and the procedure of
proposition 2 carries over.  Its gradient by one group is

.. math:: \alpha_{s,g} = \sum_{i \in g} \alpha_i (\upsilon_i / \upsilon_{s,g})^2
   = \upsilon_{s,g}^{-2} \sum_{i \in g} \gamma_i \upsilon_i,

with :math:`\gamma_i = \upsilon_i \alpha_i` in [0, 1], and the minimiser of
:math:`\|W_g\|^2/\upsilon + \alpha \upsilon` (the sum over the group is the exact
scale: :math:`\upsilon` is shared) is Table 1's :math:`\|W_g\|_2/\sqrt{\alpha}`, or

.. math:: \upsilon_{s,g} \leftarrow \upsilon_{s,g}
   \left(\frac{\sum_g W_i^2}{\sum_g \gamma_i \upsilon_i}\right)^{1/2}.

On the interval ``[0, MAX_VARIANCE]`` the minimiser is the clipped one.  MacKay's fixed
point of the same equations, the exponent 1 in place of 1/2, takes half the cycles but
decides too early what is pruned: it predicts worse (measured on simulated tanks).
"""

from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as
from ..network import blocks, join_layers

# Biases are neither penalised towards zero nor pruned in the paper: this prior is flat
# for standardised data, yet proper, as the marginal likelihood needs it.
BIAS_VARIANCE = 100.0
MIN_VARIANCE = 1e-20
# The variance every group starts with is also the largest it may get.  Without a bound,
# heavy-tailed residuals (a tank that overflows) grow units into switches with weights
# of thirty and more, each for a handful of rows: more evidence, worse predictions.
MAX_VARIANCE = 1.0


@saved_as("Prior")
class Prior(NamedTuple):
    """Group variances.

    labels : for each group set, the group of each parameter, -1 at biases
    variances : for each group set, the variance of each group
    """

    labels: tuple
    variances: tuple


def init_prior(sizes, groups, skip=False):
    """All group variances one, as Algorithm 1 starts."""
    labels, variances = [], []
    for kind in groups:
        layers, n_groups = [], 0
        for n_in, n_out, n_biases in blocks(sizes, skip):
            label = GROUPS[kind](n_in, n_out)
            layers.append((label + n_groups, np.full(n_biases, -1)))
            n_groups += int(label.max(initial=-1)) + 1
        labels.append(join_layers(layers))
        variances.append(np.ones(n_groups))
    return Prior(tuple(labels), tuple(variances))


def _elements(n_in, n_out):
    return np.arange(n_in * n_out).reshape(n_in, n_out)


def _rows(n_in, n_out):
    return np.repeat(np.arange(n_in), n_out).reshape(n_in, n_out)


def _columns(n_in, n_out):
    return np.tile(np.arange(n_out), (n_in, 1))


def _layer(n_in, n_out):
    return np.zeros((n_in, n_out), dtype=int)


# For each kind the group of each weight (n_in, n_out) of a layer, numbered from 0.
GROUPS = {"element": _elements, "row": _rows, "column": _columns, "layer": _layer}


def take(prior, index):
    """The prior of some of the parameters."""
    return prior._replace(labels=tuple(label[index] for label in prior.labels))


def parameter_variance(prior):
    """Prior variance of every parameter, biases included."""
    precision = np.zeros(len(prior.labels[0]))
    weights = prior.labels[0] >= 0
    for label, variance in zip(prior.labels, prior.variances, strict=True):
        precision[weights] += 1.0 / variance[label[weights]]
    precision[~weights] = 1.0 / BIAS_VARIANCE
    return 1.0 / precision


def separates_inputs(prior, sizes):
    """Whether each of the inputs has a variance of its own in some group set."""
    n_in, n_out = sizes[:2]
    # the weights of the first unit that the inputs lead to
    labels = (label[: n_in * n_out : n_out] for label in prior.labels)
    return any(len(np.unique(label)) == n_in for label in labels)


def update_variances(prior, theta, keep, gamma):
    """Equation (13) for all group variances; it never raises the objective.

    Parameters
    ----------
    gamma : (n_kept,) array
        From `well_determined`, at the variances of ``prior``.
    """
    weights = keep & (prior.labels[0] >= 0)
    explained = np.zeros(len(theta))
    explained[keep] = gamma * parameter_variance(prior)[keep]
    variances = []
    for label, variance in zip(prior.labels, prior.variances, strict=True):
        size = len(variance)
        square = np.bincount(label[weights], theta[weights] ** 2, size)
        total = np.bincount(label[weights], explained[weights], size)
        used = total > 0.0
        factor = np.ones(size)
        factor[used] = np.sqrt(square[used] / total[used])
        variances.append(np.clip(variance * factor, MIN_VARIANCE, MAX_VARIANCE))
    return prior._replace(variances=tuple(variances))


def fixed_penalty_variances(prior, theta, keep):
    """The variances that turn the quadratic into the plain penalty ``2 |W_g|``.

    With ``alpha = 1`` held fixed (no reweighting) the update is ``|W_g|``: the
    conventional group lasso, the lasso for single weights.
    """
    weights = keep & (prior.labels[0] >= 0)
    variances = []
    for label, variance in zip(prior.labels, prior.variances, strict=True):
        square = np.bincount(label[weights], theta[weights] ** 2, len(variance))
        variances.append(np.maximum(np.sqrt(square), MIN_VARIANCE))
    return prior._replace(variances=tuple(variances))


def group_penalty(prior, keep, reg_lambda):
    """``sum lambda v`` over the groups that still hold a weight (``alpha = 1``)."""
    weights = keep & (prior.labels[0] >= 0)
    total = 0.0
    for label, variance in zip(prior.labels, prior.variances, strict=True):
        strength = np.zeros(len(variance))
        strength[label[weights]] = reg_lambda[weights]
        total += float(strength @ variance)
    return total
