"""What inputs a training record needs: a step, two levels, many levels, a controller.

    python examples/benchmarks/excitation.py

Each model is fitted to 600 rows of the same simulated tank, and simulates the same
record of random levels. The errors that a search reports do not tell the records apart.
"""

import argparse
import warnings

import numpy as np

from skbayesnn import DynamicSystemRegressor
from skbayesnn.metrics import interval_coverage, simulation_rmse

N_ROWS, N_INIT, NOISE = 600, 20, 0.01
LOW, HIGH = 0.2, 1.0
REST = 0.25
# standard deviations of the half of a 95 % band
WIDE = 1.96


def run(choose, rng):
    """Inputs and levels of a tank: a valve lets u squared in, the root flows out.

    ``choose`` gives the input of a row from its number and the measured level.
    """
    u, y = np.empty(N_ROWS), np.empty(N_ROWS)
    level = REST
    for t in range(N_ROWS):
        y[t] = level + NOISE * rng.standard_normal()
        u[t] = choose(t, y[t])
        level = max(0.0, level + 0.2 * (u[t] ** 2 - np.sqrt(level)))
    return u[:, None], y


def held(levels):
    """Each level for 20 rows."""
    return np.repeat(levels, N_ROWS // len(levels))


def open_loop(inputs):
    return lambda t, level: inputs[t]


def controlled(set_point):
    """A controller with a proportional and an integral part."""
    integral = REST**0.25

    def choose(t, level):
        nonlocal integral
        error = set_point[t] - level
        integral += 0.05 * error
        return np.clip(integral + error, LOW, HIGH)

    return choose


def records(rng):
    """The training records, by name."""
    n_levels = N_ROWS // 20
    return {
        "one step": open_loop(np.where(np.arange(N_ROWS) < N_ROWS // 3, LOW, HIGH)),
        "two levels": open_loop(held(rng.choice([LOW, HIGH], n_levels))),
        "random levels": open_loop(held(rng.uniform(LOW, HIGH, n_levels))),
        "constant set point": controlled(np.full(N_ROWS, REST)),
        "steps of the set point": controlled(held(rng.uniform(0.05, 0.8, n_levels))),
    }


def compare(seed):
    rng = np.random.default_rng(seed)
    test, measured = run(open_loop(held(rng.uniform(LOW, HIGH, N_ROWS // 20))), rng)
    for name, choose in records(rng).items():
        model = DynamicSystemRegressor(
            kinds=("linear", "network"),
            lags=(5, 10),
            reg_lambdas=(6.0,),
            n_estimators=4,
            random_state=seed,
        ).fit(*run(choose, rng))
        level, std = model.predict(test, y_init=measured[:N_INIT], return_std=True)
        limits = level - WIDE * std, level + WIDE * std
        error = simulation_rmse(measured, level, n_initialization=N_INIT)
        inside = interval_coverage(measured, *limits, n_initialization=N_INIT)
        print(f"seed {seed}, {name}: error {error:.3f}, {inside:.0%} in the band")
        print("   ", model.summary_, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    warnings.simplefilter("ignore")
    for seed in range(parser.parse_args().seeds):
        compare(seed)
