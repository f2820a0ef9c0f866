"""Derivatives by complex steps, which are exact but for the last digits."""

import numpy as np
from numpy.testing import assert_allclose


def complex_steps(function, v):
    """Exact derivatives by real v, where the function takes complex numbers."""
    columns = []
    for k in range(len(v)):
        moved = v.astype(complex)
        moved[k] += 1e-100j
        columns.append(function(moved).imag / 1e-100)
    return np.array(columns).reshape(len(v), -1).T


def assert_jacobians_are_exact(space, x, u):
    """Those of a state space; returns them, (A B; C D), and f and g of [x, u]."""
    n, v = len(x), np.concatenate([x, u])

    def both(v):
        return np.concatenate(space.step(v[:n], v[n:]))

    A, B, C, D = space.jacobians(x, u)
    ours = np.block([[A, B], [C, D]])
    assert_allclose(ours, complex_steps(both, v), rtol=1e-12, atol=1e-13)
    return ours, both
