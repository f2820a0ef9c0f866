"""
Two water tanks: predict and simulate
=====================================

A pump fills the upper of two tanks, which drains into the lower one. The input is the
voltage of the pump, the output the level of the lower tank. Two models are fitted to
one record and tested on another: one for prediction one step ahead, one for simulation.
"""

# %%
# The record is a simulation, so no file is needed. ``data`` has one column for each
# input. ``target`` is the level in volts of its sensor.
import matplotlib.pyplot as plt

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.displays import SimulationDisplay, SparsityDisplay
from skbayesnn.metrics import simulation_rmse

# sphinx_gallery_thumbnail_number = 2
tanks = make_cascaded_tanks(random_state=0)
test = tanks.tests.test
print(tanks.data.shape, tanks.target.shape)

# %%
# One step ahead
# --------------
#
# Lags 0 to 5 of the input and 1 to 5 of the output are more than needed. Lags and
# hidden units that the data do not support are pruned during the fit.
model = SparseBayesNARXRegressor(5, 5, n_restarts=4, random_state=0)
model.fit(tanks.data, tanks.target)
for lag, relevance in model.lag_relevance_.items():
    print(f"{lag:8} {relevance:.3f}")

# %%
# How many weights and units of each layer were kept:
SparsityDisplay.from_estimator(model)
plt.suptitle("Weights and units that were kept")
plt.show()

# %%
# ``predict(X, y)`` predicts each row from the measured outputs before it. The first
# ``max_lag_`` rows cannot be predicted, so errors leave them out.
one_step, std = model.predict(test.data, test.target, return_std=True)
rmse = simulation_rmse(test.target, one_step, n_initialization=model.max_lag_)
print(f"one step ahead: {rmse:.3f} V")

# %%
# Simulation
# ----------
#
# A simulator is given only the inputs and the first outputs. After them it uses its own
# predictions. ``focus="simulation"`` fits the model to the errors of this free run.
simulator = SparseBayesNARXRegressor(10, 10, focus="simulation", random_state=0)
simulator.fit(tanks.data, tanks.target)

n_init = tanks.n_initialization
for title, fitted in [("one-step model", model), ("simulator", simulator)]:
    simulated = fitted.predict(test.data, y_init=test.target[:n_init])
    rmse = simulation_rmse(test.target, simulated, n_initialization=n_init)
    print(f"free run of the {title}: {rmse:.3f} V")

# %%
# The band is two standard deviations wide on either side.
SimulationDisplay.from_estimator(
    simulator,
    test.data,
    test.target,
    n_init=n_init,
    sampling_time=tanks.sampling_time / 60,
    time_unit="min",
    y_label="Level (V)",
)
plt.suptitle("Level of the lower tank: measured, simulated, and residuals")
plt.show()
