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

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.displays import figure_style

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(
    (X > 7.5).astype(float), y, test_size=0.25, stratify=y, random_state=0
)

# %%
# The same classifier on the pixels, on features of scikit-learn's class, and on those
# of this package. 200 units, 100 epochs.
rbms = {
    "binary pixels": None,
    "BernoulliRBM": BernoulliRBM(200, learning_rate=0.1, n_iter=100, random_state=0),
    "ContrastiveDivergenceRBM": ContrastiveDivergenceRBM(
        200, max_iter=100, random_state=0
    ),
}
accuracy = {}
for name, rbm in rbms.items():
    classifier = LogisticRegression(C=1.0, max_iter=2000)
    pipeline = make_pipeline(rbm, classifier) if rbm is not None else classifier
    accuracy[name] = pipeline.fit(train, y_train).score(test, y_test)
    print(f"{name:26} {accuracy[name]:.3f}")

# %%
# One standard error of an accuracy on 450 images is about 0.01.
with figure_style():
    figure, axes = plt.subplots(figsize=(7, 2.2))
    axes.errorbar(list(accuracy.values()), list(accuracy), xerr=0.01, fmt="o")
    axes.set_title("Accuracy of the classifier, by features")
    axes.set_xlabel("accuracy on 450 test images, ± one standard error")
    axes.set_ylim(-0.5, 2.5)
plt.show()
