"""
Search over parameters by simulation
====================================

This example uses scikit-learn's ``GridSearchCV`` with the scorer of free runs.
Contiguous blocks of the record are held out in turn. They are passed as ``sessions``,
so that no lag reaches across the gap that a held-out block leaves.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.displays import figure_style
from skbayesnn.metrics import simulation_scorer

u, y = make_cascaded_tanks(return_X_y=True, random_state=0)
blocks = np.arange(len(y)) * 4 // len(y)

search = GridSearchCV(
    SparseBayesNARXRegressor(5, 5, random_state=0),
    {"reg_lambda": [1.0, 4.0, 16.0], "hidden_layer_sizes": [5, 10]},
    scoring=simulation_scorer,
    cv=PredefinedSplit(blocks),
).fit(u, y, sessions=blocks)
print(search.best_params_)

# %%
# The score is minus the RMSE of the free run in V. It varies strongly between blocks,
# so look at the spread before you trust the best candidate.
results = search.cv_results_
scores = np.array([results[f"split{k}_test_score"] for k in range(4)])
labels = [
    f"λ = {p['reg_lambda']:g}, {p['hidden_layer_sizes']} units"
    for p in results["params"]
]

rows = np.arange(len(labels))
with figure_style():
    figure, axes = plt.subplots(figsize=(7, 3.5))
    axes.plot(-scores.T, rows, "o", color="C0", mfc="none")
    axes.plot(-scores.mean(axis=0), rows, "|", color="C1", markersize=18)
    axes.set_yticks(rows, labels)
    axes.set_title("Errors on the held-out blocks, by candidate")
    axes.set_xlabel("RMSE of the free run through a held-out block (V); line: mean")
plt.show()
