"""The order that state-space networks find, where it is known.

    python examples/benchmarks/state_orders.py --output state_orders.json

Simulated systems of second to fourth order, 1,000 rows, one input and one output, noise
of 3 % of the output: linear; Wiener (a saturation behind a linear system); Hammerstein
(the saturation in front of it); bilinear (the input multiplies the states). Their
linear parts are drawn until every state matters: the smallest Hankel singular value is
at least a tenth of the largest. `SparseBayesStateSpaceRegressor` is offered 8 states,
and beside it the true number. The errors are those of free runs through a test record
from its first 30 outputs, relative to its standard deviation: those of its measured
outputs, and those of its outputs without noise.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from skbayesnn import SparseBayesStateSpaceRegressor
from skbayesnn.metrics import simulation_rmse

KINDS = ("linear", "wiener", "hammerstein", "bilinear")
ORDERS = (2, 3, 4)
OFFERED = 8
N_ROWS, N_INIT = 1000, 30
NOISE = 0.03
SMALLEST_RATIO = 0.1


def linear_part(order, rng):
    """A, B, C of a stable system whose states all matter, of unit variance."""
    # bound: one draw in some ten is kept
    while True:
        rotation, _ = np.linalg.qr(rng.standard_normal((order, order)))
        modulus = rng.uniform(0.6, 0.95, order)
        A = rotation * modulus
        B, C = rng.standard_normal(order), rng.standard_normal(order)
        reachable = solve_discrete_lyapunov(A, np.outer(B, B))
        observable = solve_discrete_lyapunov(A.T, np.outer(C, C))
        values = np.sqrt(np.abs(np.linalg.eigvals(reachable @ observable)))
        if values.min() >= SMALLEST_RATIO * values.max():
            return A, B, C / np.sqrt(C @ reachable @ C)


def simulate(kind, order, seed):
    """Training record (u, y, y without noise) and test record of one system."""
    rng = np.random.default_rng([KINDS.index(kind), order, seed])
    A, B, C = linear_part(order, rng)
    N = 0.3 * A @ np.diag(rng.uniform(-1.0, 1.0, order))
    records = []
    for _ in range(2):
        u = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), N_ROWS)
        x, y = np.zeros(order), np.zeros(N_ROWS)
        for t in range(N_ROWS):
            y[t] = C @ x
            enters = np.tanh(1.5 * u[t]) if kind == "hammerstein" else u[t]
            x = A @ x + B * enters + (u[t] * N @ x if kind == "bilinear" else 0.0)
        if kind == "wiener":
            y = np.tanh(y)
        noise = NOISE * y.std() * rng.standard_normal(N_ROWS)
        records.append((u[:, None], y + noise, y))
    return records


def run(kind, order, seed):
    """Orders and errors of one system."""
    (u, y, _), (u_test, y_test, exact) = simulate(kind, order, seed)
    row = {"kind": kind, "order": order, "seed": seed}
    for name, n_states in (("offered", OFFERED), ("true", order)):
        begin = time.perf_counter()
        model = SparseBayesStateSpaceRegressor(n_states, random_state=0)
        model.fit(u, y)
        row[f"seconds, {name}"] = time.perf_counter() - begin
        row[f"found, {name}"] = model.order_
        simulated = model.predict(u_test, y_init=y_test[:N_INIT])
        for what, outputs in (("error", y_test), ("error without noise", exact)):
            error = simulation_rmse(outputs, simulated, n_initialization=N_INIT)
            row[f"{what}, {name}"] = float(error / exact.std())
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--systems", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="seed of the first system")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for number in range(arguments.systems):
        seed, which = divmod(number, len(KINDS) * len(ORDERS))
        order, kind = divmod(which, len(KINDS))
        rows.append(run(KINDS[kind], ORDERS[order], arguments.first + seed))
        print(rows[-1], flush=True)
        if arguments.output:
            arguments.output.write_text(json.dumps(rows, indent=1) + "\n")
    right = np.mean([row["found, offered"] == row["order"] for row in rows])
    ratio = [row["error, offered"] / row["error, true"] for row in rows]
    print(f"true order {right:.0%}; error over that of the true order: ", end="")
    print(
        f"median {np.median(ratio):.3f}, {np.mean(np.array(ratio) < 1.05):.0%} < 1.05"
    )


if __name__ == "__main__":
    main()
