"""
An RBM that chooses its size
============================

``FrankWolfeRBM()`` trains models of 16, 32, 64, ... hidden units for a short time and
compares their likelihoods on held-out rows. The best of them is trained further.
"""

# %%
# The data are scikit-learn's digits, with black or white pixels. ``max_updates`` keeps
# this example short. Leave out ``fine_tune`` for a full training, which takes a few
# minutes.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.displays import ConvergenceDisplay, GrowthDisplay, SamplesDisplay

X = load_digits().data > 7.5
train, test = X[:1347], X[1347:]

trainer = ContrastiveDivergenceRBM(max_updates=300)
rbm = FrankWolfeRBM(fine_tune=trainer, random_state=0).fit(train)
print(rbm.n_components_, "units after", rbm.n_updates_, "updates")

# %%
# The comparison of the sizes. Diamonds are other starts: the pairs of a tree, alone and
# with more units, and units that were searched.
GrowthDisplay.from_estimator(rbm)
plt.show()

# %%
# The training of the best one. Where a line goes back to the left, training returned to
# an earlier, better model:
ConvergenceDisplay.from_estimator(rbm)
plt.show()

# %%
# Likelihood of new rows, and an estimate of its error
# -----------------------------------------------------
#
# The partition function is estimated by annealing in both directions, and by the hidden
# states of training rows, which know modes that annealing may miss. If the first two
# agree, and the third is not larger, the likelihood can be trusted.
both = rbm.log_partition("both", random_state=0)
print(f"test log-likelihood: {rbm.score(test):.2f} nats per image")
print(f"log Z forward {both.forward.log_partition:.2f}")
print(f"log Z reverse {both.reverse.log_partition:.2f}")
print(f"log Z by the rows {both.rows.log_partition:.2f}")

# %%
SamplesDisplay.from_estimator(rbm, n=36, random_state=0)
plt.show()
