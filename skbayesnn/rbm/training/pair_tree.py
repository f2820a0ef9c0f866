r"""The tree of Chow and Liu, as an RBM with one hidden unit for each of its pairs.

Of all distributions in which the features form a tree, the one that is nearest to the
rows has the pairs of a spanning tree with the largest sum of mutual information (Chow
and Liu, 1968). A hidden unit that two features share can give them any dependence, so
that an RBM with as many units as the tree has pairs is this distribution, exactly: with
:math:`c` the log odds ratio of a pair, weights :math:`w` and a bias of :math:`-w` where
:math:`c > 0`, or weights :math:`w, -w` and no bias where :math:`c < 0`, with

.. math:: |c| = 2 \log \cosh(w / 2).

Training goes on from there with what pairs cannot tell. From small weights, many rounds
are needed to come as far, and where features are copies of one another, or rare, the
model overfits before.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import xlogy

from .. import model as rbm_model
from .start import base_of

# Features for which the products of all pairs still take little memory and time.
MAX_FEATURES = 3000
# Rows that a prior of independent features is worth, and those of equally likely states
# from which the rows choose.
_PRIOR_ROWS = 1.0
_UNIFORM_ROWS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
# Of states of a pair, where sums are rounded: the prior leaves them more, unless they
# are far more unlikely than one in a million rows.
_LEAST_PROBABILITY = 1e-12


def tree_model(rows, max_units=None):
    """The RBM of the tree; without a unit for pairs that may be independent.

    Parameters
    ----------
    rows : Rows
        Of at most `MAX_FEATURES`.
    max_units : int or None
        With more pairs, those with the most mutual information have units.

    Returns
    -------
    rbm : RBM
        With at most as many units as there are features, less one; or with none.
    """
    counts = _count(rows)
    both, single = counts.probabilities(0.0)
    information = _mutual_information(both, single)
    least = _least_information(len(rows), len(single))
    i, j = _spanning_pairs(np.where(information > least, information, 0.0))
    both, single = counts.probabilities(_uniform_rows(counts, i, j))
    order = np.argsort(-information[i, j], kind="stable")[:max_units]
    i, j = i[order], j[order]
    log_ratios = _log_ratios(both[i, j], single[i], single[j])
    weights, hidden, by_features = _units(log_ratios)
    components = np.zeros((len(i), len(single)))
    visible = np.log(single) - np.log1p(-single)
    for feature, column in zip((i, j), (0, 1), strict=True):
        components[np.arange(len(i)), feature] = weights[:, column]
        np.add.at(visible, feature, by_features[:, column])
    return rbm_model.make_rbm(components, hidden, visible, units=rows.units)


class _Counts(NamedTuple):
    """How many rows have ones, and what a prior of independent features says."""

    n_rows: int
    both: np.ndarray
    """(n, n), in two features"""
    single: np.ndarray
    """(n,), in each"""
    prior: np.ndarray
    """(n,) probabilities"""

    def probabilities(self, uniform_rows):
        """Of ones in two features (n, n), and in each (n,), by rows and prior."""
        n_rows = self.n_rows + _PRIOR_ROWS + uniform_rows
        both = _PRIOR_ROWS * np.outer(self.prior, self.prior) + 0.25 * uniform_rows
        single = _PRIOR_ROWS * self.prior + 0.5 * uniform_rows
        return (self.both + both) / n_rows, (self.single + single) / n_rows


def _count(rows):
    both = np.zeros((rows.n_features, rows.n_features))
    for block in rows.blocks():
        states = block.astype(np.float32)
        both += states.T @ states
    prior = rows.units.means(base_of(rows))
    return _Counts(len(rows), both, len(rows) * rows.mean(), prior)


def _uniform_rows(counts, i, j):
    """Rows that the prior of equally likely states is worth, by those of a tree.

    The likelihood of each row given the others, in the tree with the pairs ``i, j``,
    tells: states that only one row has are as new as those of rows to come.
    """
    n_rows, prior = counts.n_rows, counts.prior
    of_pairs = _joint(counts.both[i, j], counts.single[i], counts.single[j], n_rows)
    independent = _joint(prior[i] * prior[j], prior[i], prior[j], 1.0)
    of_single = np.column_stack([n_rows - counts.single, counts.single])
    alone = np.column_stack([1.0 - prior, prior])
    # of each feature, how many pairs share it
    shared = np.bincount(np.concatenate([i, j]), minlength=len(prior))

    def log_likelihood(uniform_rows):
        rest = n_rows - 1.0 + _PRIOR_ROWS + uniform_rows

        def left_out(times, independent, n_states):
            added = _PRIOR_ROWS * independent + uniform_rows / n_states
            others = np.maximum(times - 1.0, 0.0) + added
            return xlogy(times, others / rest).sum(axis=1)

        single = left_out(of_single, alone, 2)
        return left_out(of_pairs, independent, 4).sum() + (1 - shared) @ single

    return max(_UNIFORM_ROWS, key=log_likelihood)


def _joint(both, one, other, total):
    """(n_pairs, 4) of the states 00, 01, 10 and 11 of two features."""
    return np.column_stack([total - one - other + both, other - both, one - both, both])


def _mutual_information(both, single):
    """Of all pairs (n, n), nats; 0 of a feature with itself."""
    one, other = single[:, None], single[None, :]
    information = xlogy(both, both / (one * other))
    for joint, product in (
        (one - both, one * (1.0 - other)),
        (other - both, (1.0 - one) * other),
        (1.0 - one - other + both, (1.0 - one) * (1.0 - other)),
    ):
        # rounding may leave what is nothing below zero
        joint = np.maximum(joint, 0.0)
        information += xlogy(joint, joint / product)
    np.fill_diagonal(information, 0.0)
    return information


def _least_information(n_rows, n_features):
    """What a pair must have to be more than chance, nats.

    By the extended BIC (Foygel and Drton, 2010), which counts the pairs to choose from.
    """
    return (0.5 * np.log(n_rows) + np.log(n_features)) / n_rows


def _spanning_pairs(information):
    """Both features of each pair of the tree, or of a forest: zeros are no pairs."""
    i, j = np.nonzero(np.triu(information))
    # SciPy 1.14 takes no wider indices
    places = (i.astype(np.int32), j.astype(np.int32))
    pairs = coo_array((-information[i, j], places), shape=information.shape)
    tree = minimum_spanning_tree(pairs.tocsr()).tocoo()
    return tree.row, tree.col


def _log_ratios(both, one, other):
    """(n_pairs, 2, 2) log of the joint probabilities over independent ones."""
    joint = _joint(both, one, other, 1.0)
    ones = np.stack([1.0 - one, one], axis=1)
    others = np.stack([1.0 - other, other], axis=1)
    # sums of grey values are rounded: nothing may be left of what is small
    joint = np.maximum(joint.reshape(-1, 2, 2), _LEAST_PROBABILITY)
    return np.log(joint) - np.log(ones[:, :, None] * others[:, None, :])


def _units(log_ratios):
    """Units whose log factors are the log ratios, up to a constant for each pair.

    Returns
    -------
    weights : (n_pairs, 2)
    hidden : (n_pairs,) biases
    by_features : (n_pairs, 2)
        What is added to the biases of both features.
    """
    r = log_ratios
    odds = r[:, 1, 1] - r[:, 1, 0] - r[:, 0, 1] + r[:, 0, 0]
    # arccosh(exp(x)), without its overflow
    half = 0.5 * np.abs(odds)
    size = 2.0 * (half + np.log1p(np.sqrt(-np.expm1(-2.0 * half))))
    agree = odds > 0.0
    weights = np.column_stack([size, np.where(agree, size, -size)])
    hidden = np.where(agree, -size, 0.0)
    alone = _softplus(hidden[:, None] + weights) - _softplus(hidden)[:, None]
    by_features = np.column_stack([r[:, 1, 0], r[:, 0, 1]]) - r[:, :1, 0] - alone
    return weights, hidden, by_features


def _softplus(x):
    return np.logaddexp(0.0, x)
