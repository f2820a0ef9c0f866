"""
Draws of whole records
======================

A standard deviation describes one row. A question about a whole record, such as "how
long is the level above a limit?", needs draws of whole records: ``sample_y``.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.displays import figure_style

tanks = make_cascaded_tanks(random_state=0)
test = tanks.tests.test
n_init = tanks.n_initialization
model = SparseBayesNARXRegressor(10, 10, focus="simulation", random_state=0)
model.fit(tanks.data, tanks.target)

# %%
# Each column is one record: weights drawn from their posterior, and noise in every row.
draws = model.sample_y(
    test.data, y_init=test.target[:n_init], n_samples=500, random_state=0
)
lower, upper = np.quantile(draws, [0.05, 0.95], axis=1)
minutes = np.arange(len(test.target)) * tanks.sampling_time / 60

with figure_style():
    figure, axes = plt.subplots(figsize=(8, 3.8))
    axes.fill_between(minutes, lower, upper, alpha=0.3, label="90 % of the draws")
    axes.plot(minutes, draws[:, 0], color="C1", linewidth=0.8, label="one draw")
    axes.plot(minutes, test.target, color="black", linewidth=1.2, label="measured")
    axes.set_title("Measured level, one draw, and 90 % of the draws")
    axes.set_xlabel("Time (min)")
    axes.set_ylabel("Level (V)")
    figure.legend(loc="outside lower center", ncols=3)
plt.show()

# %%
# How long is the level above 8 V? Each draw gives one answer.
above = (draws[n_init:] > 8.0).sum(axis=0) * tanks.sampling_time / 60
low, median, high = np.quantile(above, [0.05, 0.5, 0.95])
measured = (test.target[n_init:] > 8.0).sum() * tanks.sampling_time / 60
print(f"above 8 V: {median:.1f} min (90 %: {low:.1f} to {high:.1f} min)")
print(f"measured:  {measured:.1f} min")
