"""
Fill in missing values
======================

An RBM has learned how the features depend on each other, so it can fill in missing ones
with their expected values or with samples.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skbayesnn import FrankWolfeRBM
from skbayesnn.displays import figure_style

X = (load_digits().data > 7.5).astype(float)
train, test = X[:1347], X[1347:]
rbm = FrankWolfeRBM(60, unit_penalty=0.003, random_state=0).fit(train)

# %%
# The lower half of the test images is set to NaN. ``impute`` returns the probability
# that each of these pixels is on. ``strategy="sample"`` draws all of them together.
hidden = test[:8].copy()
hidden[:, 32:] = np.nan
expected = rbm.impute(hidden, n_steps=500, random_state=0)
drawn = rbm.impute(hidden, strategy="sample", n_steps=500, random_state=0)

rows = [
    ("image", test[:8]),
    ("given", hidden),
    ("expected", expected),
    ("drawn", drawn),
]
with figure_style():
    figure, panels = plt.subplots(4, 8, figsize=(8, 4.2))
colors = plt.get_cmap("gray_r").with_extremes(bad="#e0b080")
for line, (title, images) in zip(panels, rows, strict=True):
    for axes, image in zip(line, images, strict=True):
        axes.imshow(image.reshape(8, 8), cmap=colors, vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
    line[0].set_ylabel(title, rotation=0, ha="right", va="center")
figure.suptitle("Images, their given halves, expected and drawn pixels")
plt.show()

# %%
# Compared with the mean of each pixel, in nats per hidden pixel:
hidden = np.where(np.arange(64) < 32, test, np.nan)
expected = rbm.impute(hidden, random_state=0)[:, 32:].clip(1e-6, 1 - 1e-6)
rates = np.broadcast_to((train.mean(axis=0)[32:]).clip(1e-3, 1 - 1e-3), expected.shape)
for title, p in [("RBM", expected), ("mean of the pixel", rates)]:
    loss = -np.log(np.where(test[:, 32:] == 1, p, 1 - p)).mean()
    print(f"{title:18} {loss:.3f}")
