"""Linear systems with hidden states, and records of them."""

import numpy as np

A = np.array([[0.9, 0.2], [-0.2, 0.7]])
B = np.array([[0.5], [1.0]])
C = np.array([[1.0, -0.5]])
D = np.array([[0.3]])


def simulate(U, x):
    """Outputs (n, 1) of the system from a state."""
    Y = np.empty((len(U), 1))
    for t, u in enumerate(U):
        Y[t] = C @ x + D @ u
        x = A @ x + B @ u
    return Y


def records(lengths=(120, 80), noise=0.0, seed=0):
    """Inputs, outputs (n,), session of each row, and the states at their starts."""
    rng = np.random.default_rng(seed)
    U = [rng.standard_normal((n, 1)) for n in lengths]
    initial = [3.0 * rng.standard_normal(2) for _ in lengths]
    Y = [simulate(u, x) for u, x in zip(U, initial, strict=True)]
    y = np.concatenate(Y)[:, 0]
    y += noise * rng.standard_normal(len(y))
    return np.concatenate(U), y, np.repeat(np.arange(len(lengths)), lengths), initial
