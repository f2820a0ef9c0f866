"""
Simulate your own CSV record
============================

This example starts from a file with one row per sampling instant. It ends with a
simulator that has chosen its lags, its prior and its kind of model. For your own file,
change only the names of the columns.
"""

# %%
# Write a file that stands in for yours. It has the time, one input and one output.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import SparseBayesNARXRegressorCV
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
table = np.column_stack([0.1 * np.arange(900), u, y])
np.savetxt(file, table, delimiter=",", header="seconds,valve,level", comments="")

# %%
# Read it
# -------
#
# Rows must be equally spaced in time and in time order. ``X`` has one column per input;
# ``y`` is the output. With pandas, use ``record[["valve"]]`` and ``record["level"]``.
record = np.genfromtxt(file, delimiter=",", names=True)
X, y = record["valve"][:, None], record["level"]
train, test = slice(0, 600), slice(600, 900)

# %%
# Fit
# ---
#
# Everything is chosen within the training rows. Two numbers of lags, one strength of
# the prior and four held-out stretches keep this example short. For your record, leave
# these arguments out: the search then takes half a minute or more, and its model is
# usually better. A warning is issued if the inputs of the test record leave the range
# of the training record, because the model extrapolates there.
model = SparseBayesNARXRegressorCV(
    lags=(5, 10), reg_lambdas=(6.0,), cv=4, n_estimators=2, random_state=0
)
model.fit(X[train], y[train])
print(model.summary_)

# %%
# Simulate
# --------
#
# The simulator starts from the first rows of the test record, as many as its longest
# lag needs.
n_init = model.max_lag_
simulated, std = model.predict(X[test], y_init=y[test][:n_init], return_std=True)
fit = fit_index(y[test], simulated, n_initialization=n_init)
print(f"fit in free run: {fit:.1f} % (100 % is perfect)")

SimulationDisplay.from_estimator(
    model, X[test], y[test], n_init=n_init, sampling_time=0.1, y_label="level"
)
plt.suptitle("The level: measured, simulated, and residuals")
plt.show()
