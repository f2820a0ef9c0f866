"""
Features for a classifier
=========================

Here an RBM is the first step of a scikit-learn pipeline, and its hidden units are the
features of a logistic regression. The RBM is fitted without the labels, so its features
are not always better than the pixels. This example compares them.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.displays import figure_style

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(
    (X > 7.5).astype(float), y, test_size=0.25, stratify=y, random_state=0
)

# %%
# The same classifier on the pixels, on features of scikit-learn's class, and on those
# of this package. Without a centred gradient, few units are on at a time, and a linear
# classifier separates their features better, although the likelihood is lower. The
# settings of this package were found by cross-validation on the training images, as
# ``examples/rbm_features.py`` shows.
settings = dict(max_iter=300, learning_rate=0.2, batch_size=20, random_state=0)
rbms = {
    "binary pixels": None,
    "BernoulliRBM": BernoulliRBM(300, learning_rate=0.1, n_iter=100, random_state=0),
    "centred": ContrastiveDivergenceRBM(300, **settings),
    "not centred": ContrastiveDivergenceRBM(300, centered=False, **settings),
}
accuracy = {}
for name, rbm in rbms.items():
    classifier = LogisticRegression(C=0.1, max_iter=2000)
    pipeline = make_pipeline(rbm or "passthrough", StandardScaler(), classifier)
    accuracy[name] = pipeline.fit(train, y_train).score(test, y_test)
    print(f"{name:26} {accuracy[name]:.3f}")

# %%
# One standard error of an accuracy on 450 images is about 0.01.
with figure_style():
    figure, axes = plt.subplots(figsize=(7, 2.4))
    axes.errorbar(list(accuracy.values()), list(accuracy), xerr=0.01, fmt="o")
    axes.set_title("Accuracy of the classifier, by features")
    axes.set_xlabel("accuracy on 450 test images, ± one standard error")
    axes.set_ylim(-0.5, 3.5)
plt.show()
