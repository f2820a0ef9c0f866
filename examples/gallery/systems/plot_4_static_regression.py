"""
Static regression: which inputs matter?
=======================================

``SparseBayesMLPRegressor`` predicts a row of ``y`` from the same row of ``X``. Inputs
that do not matter are pruned, but for some that follow the noise by chance, and every
prediction has a standard deviation.
"""

# %%
# Only the first of five inputs has an effect. Of the others one stays, by chance.
import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import SparseBayesMLPRegressor
from skbayesnn.displays import figure_style

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(150, 5))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(150)

model = SparseBayesMLPRegressor(n_restarts=4, random_state=0).fit(X, y)
print("relevance of the inputs:", model.feature_relevance_.round(3))
print(f"noise: {model.noise_variance_**0.5:.3f} (0.1 is true)")

# %%
# The band is that of new observations. Outside the data, beyond -2 and 2, it grows with
# the distance. The prediction is a guess there, and may be farther off.
grid = np.zeros((200, 5))
grid[:, 0] = np.linspace(-3, 3, 200)
mean, std = model.predict(grid, return_std=True)

x, lower, upper = grid[:, 0], mean - 2 * std, mean + 2 * std
with figure_style():
    figure, axes = plt.subplots(figsize=(7, 3.5))
    axes.fill_between(x, lower, upper, alpha=0.3, label="±2σ")
    axes.plot(x, mean, label="prediction")
    axes.plot(X[:, 0], y, ".", color="black", markersize=3, label="training data")
    axes.set_title("Prediction with its band, and the training data")
    axes.set_xlabel("first input")
    axes.set_ylabel("y")
    axes.legend()
plt.show()
