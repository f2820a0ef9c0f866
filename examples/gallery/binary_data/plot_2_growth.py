"""
Growing unit by unit
====================

If you give ``FrankWolfeRBM`` a number of units, it grows unit by unit: each step finds
the hidden unit that increases the likelihood most, and adds it.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skbayesnn import FrankWolfeRBM
from skbayesnn.displays import ComponentsDisplay, figure_style

X = load_digits().data > 7.5
train, test = X[:1347], X[1347:]

rbm = FrankWolfeRBM(30, unit_penalty=0.003, random_state=0).fit(train)

# %%
# The likelihood that each unit gained when it was added. The first units gain most.
history = rbm.history_
added = history["change"] == 1
with figure_style():
    figure, axes = plt.subplots(figsize=(7, 3))
    axes.semilogy(history["n_components"][added], history["gain"][added], ".")
    axes.set_title("Gain of each unit when it entered")
    axes.set_xlabel("hidden units")
    axes.set_ylabel("gain (nats per image)")
plt.show()

# %%
# The weights of the units as images, each on its own scale, in the order in which they
# were added:
ComponentsDisplay.from_estimator(rbm)
plt.show()

# %%
# With ``warm_start=True``, the growth continues from the fitted model. The score is a
# log-likelihood. Its partition function is computed exactly for few units, and is
# estimated for many.
rbm.set_params(n_components=40, warm_start=True).fit(train)
print(f"{rbm.n_components_} units: {rbm.score(test):.2f} nats per test image")
