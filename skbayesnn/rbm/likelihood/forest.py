"""The log partition function where the weights other than zero form a forest.

Such are the trees from which a training may start, and truncated or pruned models.
Annealing errs where their units are nearly copies of one another; the sum is exact: of
a unit with bias b that is joined by a weight w to one other unit alone,

    sum_h exp(h (b + w v)) = exp(softplus(b) + v (softplus(b + w) - softplus(b))),

which is a constant and a bias of that other unit. So units go, leaf by leaf.
"""

import numpy as np
from scipy.sparse import bmat, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from ..model import is_standard
from ..visible import BinaryUnits


def is_forest(rbm):
    """Whether `log_partition` takes it: binary units of weight 1, without cycles."""
    if not (isinstance(rbm.units, BinaryUnits) and is_standard(rbm)):
        return False
    n_units, n_features = rbm.weights.shape
    n_joined = np.count_nonzero(rbm.weights)
    if n_joined >= n_units + n_features:
        return False
    n_trees, _ = connected_components(_graph(rbm), directed=False)
    return n_joined == n_units + n_features - n_trees


def log_partition(rbm):
    """Sum over the states of all units, one after another, in float64."""
    graph = _graph(rbm)
    n_units = len(rbm.weights)
    biases = np.concatenate([rbm.hidden, rbm.visible]).astype(np.float64)
    total = 0.0
    for node, parent in _leaves_first(graph):
        alone = np.logaddexp(0.0, biases[node])
        total += alone
        if parent < len(biases):
            unit, feature = min(node, parent), max(node, parent) - n_units
            joined = biases[node] + float(rbm.weights[unit, feature])
            biases[parent] += np.logaddexp(0.0, joined) - alone
    return float(total)


def _graph(rbm):
    """Hidden units, then features, and the weights between them; (n, n), sparse."""
    joined = csr_array(rbm.weights != 0.0).astype(np.float64)
    return csr_array(bmat([[None, joined], [joined.T, None]]))


def _leaves_first(graph):
    """Each node and its parent, which is after it; of a root, the number of nodes."""
    n_nodes = graph.shape[0]
    _, tree = connected_components(graph, directed=False)
    _, roots = np.unique(tree, return_index=True)
    # with one node more, to which all roots are joined, the forest is a tree
    to_roots = csr_array(np.isin(np.arange(n_nodes), roots).astype(np.float64)[None, :])
    graph = csr_array(bmat([[graph, to_roots.T], [to_roots, None]]))
    order, parents = breadth_first_order(graph, n_nodes, directed=False)
    nodes = order[:0:-1]
    return zip(nodes.tolist(), parents[nodes].tolist(), strict=True)
