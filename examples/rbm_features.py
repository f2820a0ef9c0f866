"""Choose the size of an RBM by the classifier of its features.

A pipeline of ContrastiveDivergenceRBM and logistic regression on scikit-learn's digits,
searched by cross-validation on the training images. The test images are used once, at
the end. Features for a classifier ask for other settings than a likelihood: the
gradient is not centred, so that few units are on at a time.

    python rbm_features.py
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import ContrastiveDivergenceRBM

GRID = {
    "rbm__n_components": [100, 300, 600],
    "rbm__centered": [True, False],
    "classifier__C": [0.01, 0.1],
}


def main():
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(
        X / 16.0, y, test_size=0.25, stratify=y, random_state=0
    )
    rbm = ContrastiveDivergenceRBM(
        max_iter=300, learning_rate=0.2, batch_size=20, random_state=0
    )
    pipeline = Pipeline(
        [
            ("rbm", rbm),
            ("scaler", StandardScaler()),
            ("classifier", LogisticRegression(max_iter=2000)),
        ]
    )
    search = GridSearchCV(pipeline, GRID, cv=3, n_jobs=2)
    start = time.perf_counter()
    search.fit(train, y_train)
    elapsed = time.perf_counter() - start
    n_candidates = len(search.cv_results_["params"])
    print(f"{n_candidates} settings x 3 folds in {elapsed:.0f} s, best first.\n")
    print_table(search.cv_results_)

    print(f"\nBest: {search.best_params_}")
    print(f"Accuracy on the test images: {search.score(test, y_test):.3f}")
    print("For comparison, the pixels themselves:")
    for title, V, V_test in [
        ("grey", train, test),
        ("binary, all that the RBM sees", train > 0.5, test > 0.5),
    ]:
        raw = LogisticRegression(max_iter=2000).fit(V, y_train)
        print(f"  {title:30}{raw.score(V_test, y_test):.3f}")


def print_table(results):
    """Accuracies on the folds left out."""
    scores = np.array([results[f"split{k}_test_score"] for k in range(3)])
    error = scores.std(axis=0, ddof=1) / np.sqrt(3)
    header = "accuracy, std. error  units  centred     C  seconds"
    print(f"{header}\n{'-' * len(header)}")
    for k in np.argsort(results["rank_test_score"], kind="stable"):
        setting = results["params"][k]
        print(
            f"{results['mean_test_score'][k]:12.3f} ± {error[k]:.3f}"
            f"{setting['rbm__n_components']:8}"
            f"{'yes' if setting['rbm__centered'] else 'no':>9}"
            f"{setting['classifier__C']:6}"
            f"{results['mean_fit_time'][k]:9.1f}"
        )


if __name__ == "__main__":
    main()
