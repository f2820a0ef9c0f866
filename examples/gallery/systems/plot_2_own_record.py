"""
Simulate your own CSV record
============================

This example starts from a CSV file with one row per sampling instant. It ends with a
simulator that has chosen its lags, its prior and its kind of model. For your own file,
change the name of the file and the names of its columns. It needs pandas.
"""

# %%
# Write a file that stands in for yours. It has the time, one input and one output.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbayesnn import DynamicSystemRegressor
from skbayesnn.displays import SimulationDisplay
from skbayesnn.metrics import fit_index

rng = np.random.default_rng(0)
u = np.repeat(rng.uniform(-1, 1, 90), 10)
y = np.zeros(900)
for t in range(2, 900):
    y[t] = (
        1.4 * y[t - 1] - 0.5 * y[t - 2] + 0.1 * np.tanh(4 * u[t - 1]) * (1 - y[t - 1])
    )
y += 0.01 * rng.standard_normal(900)

file = Path(tempfile.mkdtemp()) / "record.csv"
times = pd.date_range("2026-03-02 08:00", periods=900, freq="100ms", name="time")
pd.DataFrame({"valve": u, "level": y}, times).to_csv(file)
print(file.read_text()[:150])

# %%
# Read it
# -------
#
# Rows must be in time order and equally spaced in time. If the file has a column of
# dates, make it the index: order and spacing are then checked. If its times are
# numbers, such as seconds, keep them as a column of ``X`` with the name "time" instead,
# as in ``record[["time", "valve"]]``. Without times, leave out ``index_col`` and
# ``parse_dates``. ``X`` has one column per input, such as ``record[["valve", "pump"]]``
# for two inputs. ``y`` is the output. The last third of the rows is kept for the test.
#
# If the times of your record jump, because the logger was off or because several
# records were joined, pass ``sessions="infer"`` wherever the record is passed: to
# ``fit(X, y, sessions="infer")``, ``predict(X, y, horizon=None, sessions="infer")``,
# ``score(X, y, sessions="infer")`` and ``from_estimator`` of the displays, without
# ``y_init`` and ``n_init``. Each part is then simulated from its own first rows.
record = pd.read_csv(file, index_col="time", parse_dates=True)
X, y = record[["valve"]], record["level"]
n_train = 2 * len(record) // 3
X_train, y_train = X[:n_train], y[:n_train]
X_test, y_test = X[n_train:], y[n_train:]

# %%
# Fit
# ---
#
# Everything is chosen within the training rows. Few candidates, few held-out stretches
# and two networks keep this example short. For your record, leave out all of these
# arguments, ``**few`` and ``n_estimators=2``: the search then takes one or two minutes,
# also tries models with hidden states, and chooses the number of networks. A warning is
# issued if the inputs of the test record leave the range of the training record,
# because the model extrapolates there.
few = dict(kinds=("linear", "network"), lags=(5, 10), reg_lambdas=(6.0,), cv=4)
model = DynamicSystemRegressor(**few, n_estimators=2, random_state=0)
model.fit(X_train, y_train)
print(model.summary_)

# %%
# Simulate
# --------
#
# The simulator starts from the first rows of the test record, as many as its longest
# lag needs.
n_init = model.max_lag_
simulated, std = model.predict(X_test, y_init=y_test[:n_init], return_std=True)
fit = fit_index(y_test, simulated, n_initialization=n_init)
print(f"fit in free run: {fit:.1f} % (100 % is perfect)")

SimulationDisplay.from_estimator(model, X_test, y_test, n_init=n_init)
plt.suptitle("The level: measured, simulated, and residuals")
plt.show()
