"""
Growing unit by unit
====================

With a number of units, ``FrankWolfeRBM`` grows: each step searches the hidden unit that
increases the likelihood most, and adds it.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skbayesnn import FrankWolfeRBM
from skbayesnn.displays import ComponentsDisplay

X = load_digits().data > 7.5
train, test = X[:1347], X[1347:]

rbm = FrankWolfeRBM(30, unit_penalty=0.003, random_state=0).fit(train)

# %%
# The gain of each unit when it entered. The first units gain most.
history = rbm.history_
added = history["change"] == 1
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.semilogy(history["n_components"][added], history["gain"][added], ".")
axes.set_title("Gain of each unit when it entered")
axes.set_xlabel("hidden units")
axes.set_ylabel("gain (nats per image)")
plt.show()

# %%
# Weights of the units as images, each on its own scale, in the order of their arrival:
ComponentsDisplay.from_estimator(rbm)
plt.show()

# %%
# With ``warm_start``, growth continues from there. With few units the partition
# function is summed up exactly; with more it is estimated.
rbm.set_params(n_components=40, warm_start=True).fit(train)
print(f"{rbm.n_components_} units: {rbm.score(test):.2f} nats per test image")
