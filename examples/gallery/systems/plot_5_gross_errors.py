"""
A sensor that fails now and then
================================

A few rows with gross errors can spoil a model that assumes Gaussian errors. With
``noise="student_t"``, the degrees of freedom of the error distribution are learned, and
such rows get little weight.
"""

# %%
# In 2 % of the training rows of the simulated tanks, the sensor reads a wrong value.
import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.displays import figure_style
from skbayesnn.metrics import simulation_rmse

tanks = make_cascaded_tanks(random_state=0)
test = tanks.tests.test
rng = np.random.default_rng(0)
wrong = rng.choice(len(tanks.target), len(tanks.target) // 50, replace=False)
y = tanks.target.copy()
y[wrong] += 3.0 * rng.standard_normal(len(wrong))

# %%
# Both models see the same record. The test record has no wrong rows.
for noise in ["gaussian", "student_t"]:
    model = SparseBayesNARXRegressor(5, 5, noise=noise, random_state=0)
    model.fit(tanks.data, y)
    predicted = model.predict(test.data, test.target)
    rmse = simulation_rmse(test.target, predicted, n_initialization=model.max_lag_)
    print(f"{noise:10} one-step error on the clean test record: {rmse:.3f} V")
print(f"learned degrees of freedom: {model.degrees_of_freedom_:.1f}")

# %%
# The residuals of the training record show which rows were wrong.
residuals = y - model.predict(tanks.data, y)
with figure_style():
    figure, axes = plt.subplots(figsize=(7, 3.2))
    axes.plot(residuals, linewidth=0.8, label="residuals")
    axes.plot(wrong, residuals[wrong], "o", mfc="none", color="C1", label="wrong rows")
    axes.set_title("Residuals of the training record")
    axes.set_xlabel("row")
    axes.set_ylabel("measured − predicted (V)")
    figure.legend(loc="outside lower center", ncols=2)
plt.show()
