"""Free runs and step times of models that were written as C and as ONNX.

    python examples/benchmarks/exports.py --output exports.json

On the measured Cascaded Tanks: the largest difference, in V, between the free run of
the test record by ``stream`` and those by the compiled C file, by onnxruntime and by
the state space; and nanoseconds per step of each, minimum and median over repeats.
Needs a compiler of C (``cc``) and onnxruntime. On x86 the C is compiled for processors
with fused multiplication and addition.
"""

import argparse
import json
import platform
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks

MODELS = {
    "prediction, 5 lags": {"input_lags": 5, "output_lags": 5},
    "simulation, 20 lags": {
        "input_lags": 20,
        "output_lags": 20,
        "hidden_layer_sizes": 5,
        "focus": "simulation",
        "reg_lambda": 20.0,
    },
    "ensemble of 4, 5 lags": {"input_lags": 5, "output_lags": 5, "n_estimators": 4},
}
N_REPEATS = 30
FUSED = ["-mfma"] if platform.machine() in ("x86_64", "AMD64") else []
# Reads numbers of inputs and repeats, then inputs; prints outputs, then times.
MAIN = """
#include <stdio.h>
#include <time.h>
#define MODEL_DECLARATIONS
#include "model.c"
int main(void)
{
    static double u[100000], y[100000];
    int n, n_repeats, t, r;
    model_stateX s;
    if (scanf("%d %d", &n, &n_repeats) != 2)
        return 1;
    for (t = 0; t < n; t++)
        if (scanf("%lf", u + t) != 1)
            return 1;
    for (r = 0; r <= n_repeats; r++) {
        struct timespec a, b;
        model_initX(&s);
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (t = 0; t < n; t++) {
            REAL in = (REAL)u[t], out;
            model_stepX(&s, &in, &out);
            y[t] = out;
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (r > 0)
            printf("%.1f ", ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / n);
    }
    for (t = 0; t < n; t++)
        printf("%.17g ", y[t]);
    return 0;
}
"""


def summary(times):
    return {"min": float(np.min(times)), "median": float(np.median(times))}


def nanoseconds(function, n_steps):
    """Minimum and median time of a step, over repeats."""
    function()
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        function()
        times.append(1e9 * (time.perf_counter() - start) / n_steps)
    return summary(times)


def by_c(model, u, suffix):
    """Free run and times of the compiled file; suffix "f" for single precision."""
    real = "float" if suffix else "double"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        source, main = model.to_c(folder / "model.c"), folder / "main.c"
        text = MAIN.replace("REAL", real)
        for name in ("state", "init", "step"):
            text = text.replace(f"model_{name}X", f"model_{name}{suffix}")
        main.write_text("#define _POSIX_C_SOURCE 199309L\n" + text)
        flags = ["-std=c99", "-O2", *FUSED]
        command = ["cc", *flags, main, source, "-lm", "-o", folder / "main"]
        subprocess.run(command, check=True)
        numbers = " ".join([str(len(u)), str(N_REPEATS), *map(repr, u)])
        run = subprocess.run(
            [folder / "main"], input=numbers, text=True, check=True, capture_output=True
        )
    found = np.array(run.stdout.split(), dtype=float)
    return found[N_REPEATS:], summary(found[:N_REPEATS])


def by_onnx(model, u, dtype):
    """Free run and times of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    written = model.to_onnx(dtype=dtype).SerializeToString()
    session = onnxruntime.InferenceSession(written, options)
    start = model.to_state_space().initial_state().astype(dtype)[None]
    rows = np.reshape(u, (-1, 1, 1)).astype(dtype)

    def run():
        state, out = start, []
        for row in rows:
            state, y = session.run(None, {"state": state, "u": row})
            out.append(y[0, 0])
        return np.array(out)

    return run(), nanoseconds(run, len(u))


def measure(model, record):
    """Largest differences in the record, and times of its steps."""
    u = record[:, 0].tolist()
    stream = model.stream()
    start, expected = stream.state, stream.run(record)

    def step_by_step():
        stream.state = start
        for value in u:
            stream.step(value)

    space = model.to_state_space()
    found = {
        "C, double": by_c(model, u, ""),
        "C, float": by_c(model, u, "f"),
        "onnxruntime, float64": by_onnx(model, u, "float64"),
        "onnxruntime, float32": by_onnx(model, u, "float32"),
        "state space": (space.simulate(record)[:, 0], None),
        "stream.step": (expected, nanoseconds(step_by_step, len(u))),
        "stream.run": (expected, nanoseconds(lambda: stream.run(record), len(u))),
    }
    return {
        name: {"largest difference": float(np.abs(run - expected).max()), "ns": times}
        for name, (run, times) in found.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="file for the results as JSON")
    arguments = parser.parse_args()
    tanks = fetch_cascaded_tanks()
    results = {"python": platform.python_version(), "processor": platform.machine()}
    for name, parameters in MODELS.items():
        model = SparseBayesNARXRegressor(random_state=0, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(tanks.data, tanks.target)
        results[name] = measure(model, tanks.tests.test.data)
        print(name)
        for what, row in results[name].items():
            times = row["ns"] or {"min": np.nan, "median": np.nan}
            print(
                f"  {what:22} {row['largest difference']:8.1e} V "
                f"{times['min']:8.0f} ns (median {times['median']:.0f})"
            )
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
