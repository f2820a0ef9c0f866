"""State-space networks beside those of jax-sysid, in one run: errors and seconds.

    pip install jax-sysid
    python examples/benchmarks/state_space_peer.py --output state_space_peer.json

Ten systems of `make_coupled_drives` and three measured records (environment variable
SKBAYESNN_DATA). Both have 4 states and 8 units: `SparseBayesStateSpaceRegressor` its
defaults, jax-sysid a layer of tanh units and a linear path in each equation, a ridge of
1e-3, 1,000 epochs of Adam and 1,500 of L-BFGS, and the state at the start of a test
record from its first outputs by its own smoother. Errors are those of free runs through
the test record; seconds are those of the fit, and of the compilation in the first fit
to records of a length. Nothing is chosen on a test record.
"""

import argparse
import contextlib
import io
import json
import time
import warnings
from pathlib import Path

import numpy as np
from measured_systems import RECORDS, Task

from skbayesnn import SparseBayesStateSpaceRegressor
from skbayesnn.datasets import make_coupled_drives
from skbayesnn.metrics import simulation_rmse

N_STATES, N_UNITS = 4, 8
MEASURED = ("hair dryer", "damper", "tanks")


class JaxSysid:
    """The peer, with the methods of a regressor."""

    def __init__(self, seed):
        self.seed = seed

    def fit(self, u, y):
        import jax
        import jax.numpy as jnp
        from jax_sysid.models import Model

        jax.config.update("jax_enable_x64", True)
        n_in = N_STATES + u.shape[1]

        def one_layer(z, A, W, b, V, c):
            return A @ z + V @ jnp.tanh(W @ z + b) + c

        def next_state(x, u, params):
            return one_layer(jnp.hstack([x, u]), *params[:5])

        def output(x, u, params):
            return one_layer(jnp.hstack([x, u]), *params[5:])

        rng = np.random.default_rng(self.seed)
        params = []
        for n_out in (N_STATES, 1):
            shapes = (n_out, n_in), (N_UNITS, n_in), N_UNITS, (n_out, N_UNITS), n_out
            params += [0.1 * rng.standard_normal(shape) for shape in shapes]
        params[0][:, :N_STATES] += 0.5 * np.eye(N_STATES)
        self._u = u.mean(axis=0), u.std(axis=0)
        self._y = y.mean(), y.std()
        model = Model(N_STATES, 1, u.shape[1], next_state, output)
        model.init(params=params, x0=np.zeros(N_STATES))
        model.loss(rho_x0=1e-3, rho_th=1e-3)
        model.optimization(adam_epochs=1000, lbfgs_epochs=1500, iprint=-1)
        with contextlib.redirect_stdout(io.StringIO()):
            model.fit(self._scaled_y(y), self._scaled_u(u))
        self._model = model
        return self

    def _scaled_u(self, u):
        return (u - self._u[0]) / self._u[1]

    def _scaled_y(self, y):
        return ((y - self._y[0]) / self._y[1])[:, None]

    def predict(self, u, y_init):
        u, n = self._scaled_u(u), len(y_init)
        x0 = self._model.learn_x0(
            u[:n],
            self._scaled_y(y_init),
            RTS_epochs=10,
            verbosity=False,
            LBFGS_refinement=True,
        )
        outputs = np.asarray(self._model.predict(x0, u)[0])[:, 0]
        return outputs * self._y[1] + self._y[0]


def drives(seed):
    data = make_coupled_drives(random_state=seed)
    test = data.tests.test
    tests = {"test": (test.data, test.target)}
    return Task((data.data, data.target), tests, (data.n_initialization,))


def compare(task):
    row = {}
    models = {
        "skbayesnn": SparseBayesStateSpaceRegressor(random_state=0),
        "jax-sysid": JaxSysid(0),
    }
    (u, y), start = task.tests["test"], task.starts[0]
    for name, model in models.items():
        begin = time.perf_counter()
        model.fit(*task.train)
        seconds = time.perf_counter() - begin
        predicted = model.predict(u, y_init=y[:start])
        error = task.scale * simulation_rmse(y, predicted, n_initialization=start)
        row[name] = {"error": error, "seconds": seconds}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--measured", nargs="*", default=MEASURED, choices=MEASURED)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = {f"drives {seed}": drives(seed) for seed in range(arguments.systems)}
    tasks |= {name: RECORDS[name]() for name in arguments.measured}
    results = {}
    for name, task in tasks.items():
        results[name] = compare(task)
        print(name, results[name], flush=True)
        if arguments.output:
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
