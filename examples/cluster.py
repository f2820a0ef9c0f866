"""A search for lags, restarts and a grid search on the workers of a cluster.

The cluster of this example is two processes of this machine. For another one, give its
address to ``Client``: nothing else changes, and the results stay the same.

    pip install -e ".[cluster]"
    python examples/cluster.py
"""

import time

import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.model_selection import GridSearchCV

from skbayesnn import ContrastiveDivergenceRBM, SparseBayesNARXRegressorCV
from skbayesnn.datasets import make_cascaded_tanks


def search(u, y):
    """Fits of all lags, strengths and folds go to the workers one by one."""
    model = SparseBayesNARXRegressorCV(
        (1, 2), (3.0, 10.0), cv=4, n_estimators=4, random_state=0
    )
    return model.fit(u, y)


def grid(X):
    """The same for estimators whose own fit has no independent parts."""
    model = ContrastiveDivergenceRBM(50, max_iter=5, random_state=0)
    return GridSearchCV(model, {"learning_rate": [0.05, 0.2]}, cv=2).fit(X)


def blocks(n_blocks):
    """Data that are never in memory together: an epoch over blocks of rows."""
    model = ContrastiveDivergenceRBM(20, random_state=0)
    for number in range(n_blocks):
        rows = np.random.default_rng(number).random((500, 40)) < 0.3
        model.partial_fit(rows)
    return model


def timed(function, *arguments):
    begin = time.perf_counter()
    return function(*arguments), time.perf_counter() - begin


def main():
    u, y = make_cascaded_tanks(400, return_X_y=True, random_state=0)
    X = np.random.default_rng(0).random((600, 60)) < 0.3
    # kernels are compiled, or read from the cache, before times are taken
    search(u[:100], y[:100])
    (here, seconds), machine = timed(search, u, y), grid(X)
    print(f"one process:          {seconds:5.1f} s  {here.summary_}")
    for n_workers in (1, 2):
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            Client(cluster),
            joblib.parallel_config("dask"),
        ):
            search(u[:100], y[:100])
            there, seconds = timed(search, u, y)
            print(f"{n_workers} workers of a cluster: {seconds:5.1f} s")
            same = grid(X).best_estimator_.components_
        assert np.array_equal(there.predict(u, y), here.predict(u, y))
        assert np.array_equal(same, machine.best_estimator_.components_)
    print("The results are the same.")
    print(f"Log-likelihood per row after 4 blocks: {blocks(4).score(X[:50, :40]):.2f}")


if __name__ == "__main__":
    main()
