"""Levels or differences: what ``output="auto"`` chooses on systems of both kinds.

    python examples/benchmarks/integrating_systems.py --output integrating_systems.json

Five simulated systems integrate: a tank without outflow, a motor with friction whose
position is measured, with a voltage that is given and with one that a controller
chooses, the heading of a ship, and the charge of a battery. Four do not: two tanks, a
hardening spring, a slow oven, and a valve with a filter behind it. From 500 rows with
noise `SparseBayesNARXRegressorCV` learns with the output that it chooses, with levels
and with differences; the error is that of the free run through an unseen record of 500
rows with another input, from 30 measured rows, in standard deviations of the outputs of
that record. ``--measured`` adds measured records (see `measured_systems`), none of
which integrates.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from measured_systems import RECORDS

from skbayesnn import DynamicSystemRegressor, SparseBayesNARXRegressorCV
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.metrics import simulation_rmse

N_ROWS = 500
GIVEN = 30
OUTPUTS = ("auto", "level", "difference")


def steps(rng, low, high, length, n_rows=N_ROWS):
    """Random steps that last ``length`` rows each."""
    values = rng.uniform(low, high, size=-(-n_rows // length))
    return np.repeat(values, length)[:n_rows]


def closed_tank(rng):
    """Level (m) of a tank without outflow: a pump with a dead zone fills and drains."""
    u = steps(rng, -1.0, 1.0, 8)
    flow = 0.05 * np.sign(u) * np.maximum(np.abs(u) - 0.2, 0.0) ** 0.8
    level = 1.0 + np.append(0.0, np.cumsum(flow)[:-1])
    return u, level + 0.005 * rng.standard_normal(len(u))


def motor(voltage_at):
    """Voltage, and position of a motor with viscous and Coulomb friction.

    ``voltage_at(t, x)`` chooses the voltage from the row and the position.
    """
    u, y, x, v = np.empty(N_ROWS), np.empty(N_ROWS), 0.0, 0.0
    for t in range(N_ROWS):
        u[t], y[t] = voltage_at(t, x), x
        x, v = x + 0.1 * v, v + 0.1 * (4.0 * u[t] - v - 1.2 * np.tanh(10.0 * v))
    return u, y


def open_loop_motor(rng):
    voltage = steps(rng, -1.0, 1.0, 10)
    u, y = motor(lambda t, x: voltage[t])
    return u, y + 0.01 * rng.standard_normal(N_ROWS)


def closed_loop_motor(rng):
    """A proportional controller follows steps of its reference."""
    reference = steps(rng, -2.0, 2.0, 25)
    read = 0.01 * rng.standard_normal(N_ROWS)
    u, y = motor(lambda t, x: 1.5 * np.clip(reference[t] - x - read[t], -1.0, 1.0))
    return u, y + read


def ship(rng):
    """Heading (rad) by the rudder: Norrbin's model, with a bias of wind."""
    rudder, heading, rate = steps(rng, -0.5, 0.5, 15), np.zeros(N_ROWS), 0.0
    for t in range(1, N_ROWS):
        heading[t] = heading[t - 1] + rate
        push = 0.1 * (rudder[t - 1] + 0.02)
        rate += 0.15 * (push - rate - 40.0 * rate**3)
    return rudder, heading + 0.005 * rng.standard_normal(N_ROWS)


def battery(rng):
    """Charge by the current: what goes in does not come out in full, nor at once."""
    current = steps(rng, -1.0, 1.05, 12)
    kept = np.where(current > 0.0, 0.95, 1.0 + 0.1 * np.abs(current)) * current
    charge = 0.5 + np.append(0.0, np.cumsum(0.004 * kept)[:-1])
    return current, charge + 0.001 * rng.standard_normal(N_ROWS)


def two_tanks(rng):
    seed = int(rng.integers(2**31))
    return make_cascaded_tanks(N_ROWS, return_X_y=True, random_state=seed)


def spring(rng):
    """A mass on a hardening spring."""
    force, y, x, v = steps(rng, -1.0, 1.0, 6), np.empty(N_ROWS), 0.0, 0.0
    for t in range(N_ROWS):
        y[t] = x
        v += 0.2 * (force[t] - 0.4 * v - x - 0.8 * x**3)
        x += 0.2 * v
    return force, y + 0.01 * rng.standard_normal(N_ROWS)


def oven(rng):
    """Slow: its time constant is a fifth of the record; it loses heat by radiation."""
    power, y, x = steps(rng, 0.0, 1.0, 25), np.empty(N_ROWS), 0.5
    for t in range(N_ROWS):
        y[t] = x
        x += 0.01 * (power[t] - 0.6 * x - 0.4 * x**4)
    return power, y + 0.003 * rng.standard_normal(N_ROWS)


def valve(rng):
    """A saturation, and a filter with a dead time of 3 rows behind it."""
    signal, y = steps(rng, -2.0, 2.0, 5), np.zeros(N_ROWS)
    for t in range(4, N_ROWS):
        y[t] = 0.8 * y[t - 1] + 0.2 * np.tanh(1.5 * signal[t - 4])
    return signal, y + 0.01 * rng.standard_normal(N_ROWS)


INTEGRATING = {
    "closed tank": closed_tank,
    "motor": open_loop_motor,
    "motor in closed loop": closed_loop_motor,
    "ship": ship,
    "battery": battery,
}
OTHERS = {"two tanks": two_tanks, "spring": spring, "oven": oven, "valve": valve}
MEASURED = "robot arm", "hair dryer", "damper", "heat exchanger", "tanks"


def run_simulated(make, output, seed):
    rng = np.random.default_rng(seed)
    (u, y), (u_test, y_test) = (make(rng) for _ in range(2))
    model = SparseBayesNARXRegressorCV(output=output, random_state=seed, n_jobs=1)
    row = fitted(model, np.reshape(u, (N_ROWS, -1)), y)
    u_test = np.reshape(u_test, (N_ROWS, -1))
    path = model.predict(u_test, y_init=y_test[:GIVEN])
    error = simulation_rmse(y_test, path, n_initialization=GIVEN) / y_test.std()
    return row | {"error": float(error)}


def run_measured(name, output, seed, kind):
    task = RECORDS[name]()
    model = kind(output=output, random_state=seed, n_jobs=1)
    row, start = fitted(model, *task.train), task.starts[0]
    (u, y), *_ = task.tests.values()
    path = model.predict(u, y_init=y[:start])
    error = task.scale * simulation_rmse(y, path, n_initialization=start)
    return row | {"error": float(error)}


def fitted(model, u, y):
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(u, y)
    seconds = time.perf_counter() - begin
    chosen = str(model.cv_results_["output"][model.cv_results_["kept"]][0])
    held_out = model.cv_results_["mean_test_error"][model.cv_results_["kept"]][0]
    return {"seconds": seconds, "chosen": chosen, "held out": float(held_out)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    simulated = INTEGRATING | OTHERS
    parser.add_argument("--systems", nargs="*", default=simulated, choices=simulated)
    parser.add_argument("--measured", nargs="*", default=[], choices=MEASURED)
    parser.add_argument("--outputs", nargs="*", default=OUTPUTS, choices=OUTPUTS)
    parser.add_argument("--kinds", action="store_true", help="try hidden states, too")
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    file = arguments.output
    kind = DynamicSystemRegressor if arguments.kinds else SparseBayesNARXRegressorCV
    runs = {
        name: lambda output, seed, make=simulated[name]: run_simulated(
            make, output, seed
        )
        for name in arguments.systems
    } | {
        name: lambda output, seed, name=name: run_measured(name, output, seed, kind)
        for name in arguments.measured
    }
    results = json.loads(file.read_text()) if file and file.exists() else {}
    for name, run in runs.items():
        of_system = results.setdefault(name, {})
        for output in arguments.outputs:
            of_system[output] = [run(output, seed) for seed in range(arguments.seeds)]
            print(name, output, of_system[output], flush=True)
            if file:
                file.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
