"""
Is the model good enough? Residuals and lags
============================================

The residuals of a good model are white and independent of the inputs. If a model has
too few lags, the correlations of its residuals show which lags are missing.
"""

# %%
# A system with a dead time: the input acts after four rows.
import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.displays import LagRelevanceDisplay, ResidualAnalysisDisplay

rng = np.random.default_rng(1)
u = rng.standard_normal((600, 1))
y = np.zeros(600)
for t in range(4, 600):
    y[t] = 0.7 * y[t - 1] + np.tanh(u[t - 4, 0]) + 0.1 * rng.standard_normal()

# %%
# Two lags do not reach the dead time. The cross-correlation between residuals and input
# exceeds its bounds at lag 4, which is missing:
short = SparseBayesNARXRegressor(2, 2, random_state=0).fit(u[:400], y[:400])
ResidualAnalysisDisplay.from_estimator(short, u[400:], y[400:])
plt.suptitle("Correlations of the residuals, two lags")
plt.show()

# %%
# ``longer_lags_`` says the same without a plot. It holds the fraction of the variance
# of the residuals that the next lags of each signal would explain.
print(short.longer_lags_)

# %%
# With six lags, the residuals pass, and the lags without an effect are pruned.
long = SparseBayesNARXRegressor(6, 6, random_state=0).fit(u[:400], y[:400])
ResidualAnalysisDisplay.from_estimator(long, u[400:], y[400:])
plt.suptitle("Correlations of the residuals, six lags")
plt.show()

# %%
LagRelevanceDisplay.from_estimator(long)
plt.suptitle("Relevance of the lags")
plt.show()
print(long.longer_lags_)
