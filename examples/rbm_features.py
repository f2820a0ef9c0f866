"""Choose the size and the penalty of an RBM by the classifier that reads its features.

A pipeline of FrankWolfeRBM and logistic regression on scikit-learn's digits, searched
by cross-validation on the training images. The test images are used once, at the end.

    python rbm_features.py
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from skbayesnn import FrankWolfeRBM

GRID = {
    "rbm__unit_penalty": [0.03, 0.01, 0.003],
    # the largest size: growth may end before
    "rbm__n_components": [20, 40, 80],
}


def main():
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(
        X / 16.0, y, test_size=0.25, stratify=y, random_state=0
    )
    pipeline = Pipeline(
        [
            ("rbm", FrankWolfeRBM(random_state=0)),
            ("classifier", LogisticRegression(C=10.0, max_iter=2000)),
        ]
    )
    search = GridSearchCV(
        pipeline,
        GRID,
        scoring={"accuracy": "accuracy", "units": count_units},
        refit="accuracy",
        cv=3,
        n_jobs=2,
    )
    start = time.perf_counter()
    search.fit(train, y_train)
    elapsed = time.perf_counter() - start
    n_candidates = len(search.cv_results_["params"])
    print(f"{n_candidates} settings x 3 folds in {elapsed:.0f} s, best first.\n")
    print_table(search.cv_results_)

    print(f"\nBest: {search.best_params_}")
    rbm = search.best_estimator_["rbm"]
    print(f"On all training images it has {rbm.n_components_} units.")
    print(f"Accuracy on the test images: {search.score(test, y_test):.3f}")
    print("For comparison, the pixels themselves:")
    for title, V, V_test in [
        ("grey", train, test),
        ("binary, all that the RBM sees", train > 0.5, test > 0.5),
    ]:
        raw = LogisticRegression(C=1.0, max_iter=2000).fit(V, y_train)
        print(f"  {title:30}{raw.score(V_test, y_test):.3f}")


def count_units(pipeline, X, y=None):
    """A scorer that reports how large the model became."""
    return float(pipeline["rbm"].n_components_)


def print_table(results):
    """Accuracies on the folds left out, and sizes."""
    scores = np.array([results[f"split{k}_test_accuracy"] for k in range(3)])
    error = scores.std(axis=0, ddof=1) / np.sqrt(3)
    header = "accuracy, std. error  unit_penalty  n_components  units found  seconds"
    print(f"{header}\n{'-' * len(header)}")
    for k in np.argsort(results["rank_test_accuracy"], kind="stable"):
        setting = results["params"][k]
        print(
            f"{results['mean_test_accuracy'][k]:12.3f} ± {error[k]:.3f}"
            f"{setting['rbm__unit_penalty']:13g}{setting['rbm__n_components']:14}"
            f"{results['mean_test_units'][k]:13.1f}"
            f"{results['mean_fit_time'][k]:9.1f}"
        )


if __name__ == "__main__":
    main()
