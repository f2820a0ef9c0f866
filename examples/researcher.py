"""RBMs for a paper: growth, likelihoods, samples, imputation, beside BernoulliRBM.

The digits of 8 x 8 pixels come with scikit-learn. Nothing is chosen on the test images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.displays import SamplesDisplay, figure_style

UNITS, SIZES = 60, (1, 2, 5, 10, 20, 40, 60)


def main():
    images = load_digits().data > 7
    train, test = train_test_split(images, test_size=0.25, random_state=0)
    theirs = BernoulliRBM(UNITS, n_iter=100, random_state=0).fit(train)
    models = {
        "Frank-Wolfe": FrankWolfeRBM(UNITS, random_state=0).fit(train),
        "trained": ContrastiveDivergenceRBM(UNITS, random_state=0).fit(train),
        # its likelihood is computed as that of the others
        "BernoulliRBM": ContrastiveDivergenceRBM.from_bernoulli_rbm(theirs, train),
    }
    scores = likelihoods(models, test)
    impute(models, train, test)
    draw(models, scores, growth(models["Frank-Wolfe"], test))


def likelihoods(models, test):
    """Mean log-likelihood of the test images, by annealing in both directions."""
    scores = {}
    for name, model in models.items():
        both = model.log_partition("both")
        scores[name] = -model.free_energy(test).mean() - both.log_partition
        low, high = both.interval
        apart = both.reverse.log_partition - both.forward.log_partition
        print(
            f"{name}: {scores[name]:.2f} nats, log Z +- {(high - low) / 2:.2f}, "
            f"both directions {apart:.2f} apart"
        )
    return scores


def growth(model, test):
    """The same of the first units alone, as they came."""
    return [model.truncate(k).score(test) for k in SIZES]


def impute(models, train, test):
    """The lower half of each test image from its upper half."""
    hidden = test.astype(float)
    hidden[:, 32:] = np.nan
    filled = {name: model.impute(hidden) for name, model in models.items()}
    filled["KNNImputer"] = KNNImputer().fit(train.astype(float)).transform(hidden)
    for name, values in filled.items():
        error = np.sqrt(np.mean((values - test)[:, 32:] ** 2))
        print(f"{name}: error of hidden pixels {error:.3f}")


def draw(models, scores, grown):
    with figure_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.2))
        left.plot(SIZES, grown, marker="o", label="Frank-Wolfe, first units")
        for k, (name, score) in enumerate(scores.items()):
            left.axhline(score, color=f"C{k}", linestyle=":", label=name)
        left.set(xlabel="hidden units", ylabel="test log-likelihood (nats per image)")
        left.legend()
        SamplesDisplay.from_estimator(models["trained"], ax=right)
        figure.savefig("researcher.png", dpi=90)


if __name__ == "__main__":
    main()
