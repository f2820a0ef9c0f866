"""Sparse models of water tanks, and RBMs of digits.

One model of the tanks is fitted for prediction one step ahead, another for simulation.
The RBM is compared with scikit-learn's BernoulliRBM, by its likelihood and by the
accuracy of a classifier on its features. Another RBM is trained without any setting but
its size and a limit of its time.

The example needs neither a data file nor a network: the records are simulated, and the
digits come with scikit-learn. The first run compiles the kernels; later runs load them
from a cache.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM, SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.displays import figure_style
from skbayesnn.metrics import simulation_rmse

FIGURE = "quickstart.png"


def main():
    identify_tanks()
    learn_digits()


def identify_tanks():
    """Fit a model to one record of two tanks, and test it on another."""
    tanks = make_cascaded_tanks(random_state=0)
    test = tanks.tests.test
    n_init = tanks.n_initialization

    # Lags 0 to 5 of the input and 1 to 5 of the output are more than needed: those that
    # the data do not support are pruned.
    model = SparseBayesNARXRegressor(5, 5, n_restarts=8, random_state=0)
    start = time.perf_counter()
    model.fit(tanks.data, tanks.target)
    first = time.perf_counter() - start
    start = time.perf_counter()
    model.fit(tanks.data, tanks.target)
    second = time.perf_counter() - start
    print(
        f"Fit on {len(tanks.target)} samples, {model.n_restarts} restarts: {second:.2f}"
        f" s (the first call, with what had to be compiled: {first:.1f} s)"
    )

    n_before = sum(mask.size for mask in model.masks_)
    n_after = sum(np.count_nonzero(mask) for mask in model.masks_)
    print(f"Weights: {n_before} before, {n_after} after")
    print("Lags that survived, the most relevant first:")
    names = model.get_lagged_feature_names_out(["u"])
    for k in np.argsort(-model.feature_relevance_):
        if model.feature_relevance_[k] > 0.0:
            print(f"  {names[k]:8}{model.feature_relevance_[k]:6.3f}")

    # For simulation: four networks, fitted to the errors of their own free runs.
    simulator = SparseBayesNARXRegressor(
        10, 10, focus="simulation", n_estimators=4, random_state=0
    )
    start = time.perf_counter()
    simulator.fit(tanks.data, tanks.target)
    print(f"Fit of the simulator: {time.perf_counter() - start:.1f} s")

    # One step ahead: each row is predicted from the measured rows before it.
    one_step, one_step_std = model.predict(test.data, test.target, return_std=True)
    # Free run: after the first n_init rows a model reads its own outputs.
    fed_back = model.predict(test.data, y_init=test.target[:n_init], return_std=True)
    free_run, free_run_std = simulator.predict(
        test.data, y_init=test.target[:n_init], return_std=True
    )

    print(f"Errors on the test record, from row {n_init} on:")
    for title, mean, std in [
        ("one step ahead", one_step, one_step_std),
        ("free run of the same", *fed_back),
        ("free run of the simulator", free_run, free_run_std),
    ]:
        rmse = simulation_rmse(test.target, mean, n_initialization=n_init)
        inside = np.abs(test.target - mean) <= 2.0 * std
        print(
            f"  {title:26} RMSE {rmse:.3f} V, {inside[n_init:].mean():4.0%} of the "
            "measured values inside the 2-sigma band"
        )

    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("No figure without matplotlib: pip install matplotlib")
        return
    with figure_style():
        draw(model, tanks, one_step, free_run, free_run_std)
    print(f"Saved the figure as {FIGURE}")


def draw(model, tanks, one_step, free_run, free_run_std):
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    test = tanks.tests.test
    n_init = tanks.n_initialization
    minutes = np.arange(len(test.target)) * tanks.sampling_time / 60.0

    figure = Figure(figsize=(11, 5.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(2.3, 1))
    levels, residuals = left.subplots(2, 1, sharex=True, height_ratios=(2, 1.1))

    # the sensor, of whose range the band knows nothing, ends at 0 and 10 V
    low, high = np.clip(free_run + [[-2.0], [2.0]] * free_run_std, 0.0, 10.0)
    band = {"color": "C1", "alpha": 0.25, "linewidth": 0}
    levels.fill_between(minutes, low, high, **band, label="free run, 2σ band")
    levels.plot(minutes, test.target, color="black", linewidth=2.2, label="measured")
    levels.plot(
        minutes, one_step, color="C0", linewidth=1.0, label="one step ahead (on top)"
    )
    levels.plot(minutes, free_run, color="C1", linewidth=1.3, label="free run")
    levels.axvline(minutes[n_init], color="0.5", linewidth=0.8, linestyle=":")
    levels.set_ylabel("Level (V)")
    levels.set_xlim(0.0, minutes[-1])
    levels.set_title("Test record: the level of the lower tank")
    left.legend(loc="outside lower center", ncols=4)

    residuals.fill_between(minutes, low - free_run, high - free_run, **band)
    residuals.plot(minutes, test.target - free_run, color="C1", linewidth=1.0)
    residuals.plot(minutes, test.target - one_step, color="C0", linewidth=0.6)
    residuals.axvline(minutes[n_init], color="0.5", linewidth=0.8, linestyle=":")
    residuals.set_ylabel("Measured −\npredicted (V)")
    residuals.set_xlabel("Time (min); the free run starts at the dotted line")

    # Pruned weights are blank.
    weights = [
        np.where(mask, np.abs(coef), np.nan)
        for coef, mask in zip(model.coefs_, model.masks_, strict=True)
    ]
    inputs, outputs = right.subplots(
        2, 1, sharex=True, height_ratios=(len(weights[0]), 1.4)
    )
    scale = LogNorm(model.kappa_weight, max(np.nanmax(w) for w in weights))
    style = {"cmap": "viridis_r", "aspect": "auto", "norm": scale}
    image = inputs.imshow(weights[0], **style)
    outputs.imshow(weights[1].T, **style)
    inputs.set_yticks(range(len(weights[0])), model.get_lagged_feature_names_out(["u"]))
    inputs.set_title("Weights that survived")
    outputs.set_yticks([0], ["output"])
    outputs.set_xticks(range(weights[0].shape[1]))
    outputs.set_xlabel("Hidden unit")
    right.colorbar(
        image, ax=[inputs, outputs], label="Magnitude (scaled variables)", pad=0.03
    )

    figure.savefig(FIGURE, dpi=90)


def learn_digits():
    """Accuracies and likelihoods of RBMs, on one split of scikit-learn's digits.

    The settings come from a search by three-fold cross-validation on the training
    images: the best, or one that takes half the time and is within 0.003 of its
    accuracy and 0.2 nats of its likelihood. The search covered

    - FrankWolfeRBM, at most 100 units: unit_penalty 0.01, 0.003, 0.001; growth ends
      after 5 or 20 unsuccessful searches; fine-tuning over 200 or 400 epochs, or none,
      from the grown weights or from smaller ones.
    - BernoulliRBM, 100 or 200 units: a learning rate of 0.1, 0.03 or 0.01 over 30, 100
      or 200 epochs, not in every combination; for either kind of pixels, and for the
      likelihood.
    - LogisticRegression: C of 1, 10 and 100 for each of them.

    The settings of ContrastiveDivergenceRBM are those that rbm_features.py chooses, by
    cross-validation as well: what is best for a classifier is not best for a
    likelihood.
    """
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=0
    )
    # grey values in [0, 1] as in scikit-learn's example; values above 0.5 become 1
    scaler = MinMaxScaler(clip=True).fit(X_train)
    grey = scaler.transform(X_train), scaler.transform(X_test)
    binary = tuple((V > 0.5).astype(float) for V in grey)

    growing = FrankWolfeRBM(
        100,
        unit_penalty=0.003,
        n_iter_no_change=20,
        fine_tune=ContrastiveDivergenceRBM(max_iter=200, batch_size=50),
        fine_tune_norm=0.5,
        random_state=0,
    )
    seldom_on = ContrastiveDivergenceRBM(
        300,
        centered=False,
        max_iter=300,
        learning_rate=0.2,
        batch_size=20,
        random_state=0,
    )
    # units that are seldom on vary little, but tell as much
    scaled = make_pipeline(seldom_on, StandardScaler())
    print(f"\nLogistic regression on digits, {len(y_train)} training images:")
    print("  features                          accuracy on test images")
    for title, rbm, C, (train, test) in [
        ("grey pixels", None, 10.0, grey),
        ("binary pixels", None, 1.0, binary),
        ("BernoulliRBM, grey", make_bernoulli(0.03, 100), 100.0, grey),
        ("BernoulliRBM, binary", make_bernoulli(0.1, 100), 10.0, binary),
        ("FrankWolfeRBM, binary", growing, 1.0, binary),
        ("ContrastiveDivergenceRBM, binary", scaled, 0.1, binary),
    ]:
        classifier = LogisticRegression(C=C, max_iter=2000)
        pipeline = Pipeline([("rbm", rbm or "passthrough"), ("classifier", classifier)])
        start = time.perf_counter()
        pipeline.fit(train, y_train)
        elapsed = time.perf_counter() - start
        accuracy = pipeline.score(test, y_test)
        print(f"  {title:33} {accuracy:.3f}   (fit {elapsed:.1f} s)")
    compare_likelihoods(growing, *binary)


def compare_likelihoods(grown, train, test):
    """Compare normalised likelihoods, in nats per image."""
    # its own score is a pseudo-likelihood: copy its units into an RBM of this package
    bernoulli = ContrastiveDivergenceRBM.from_bernoulli_rbm(
        make_bernoulli(0.01, 200).fit(train), train, random_state=0
    )
    rates = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    independent = np.log(np.where(test > 0.5, rates, 1.0 - rates)).sum(axis=1).mean()
    grown_title = (
        f"FrankWolfeRBM, {grown.n_components_} of at most {grown.n_components} units"
    )
    # without max_updates, training takes minutes, and gains some tenths of a nat
    automatic = ContrastiveDivergenceRBM(100, max_updates=3000, random_state=0)
    start = time.perf_counter()
    automatic.fit(train)
    print(
        f"\nAutomatic training in {time.perf_counter() - start:.1f} s: "
        f"{automatic.n_updates_} updates, {automatic.n_gibbs_steps_} Gibbs steps, "
        f"weight decay {automatic.weight_decay_:.2g}"
    )
    print("Mean log-likelihood of the binary test images, nats per image:")
    for title, value in [
        ("independent pixels", independent),
        (f"BernoulliRBM, {bernoulli.n_components_} units", bernoulli.score(test)),
        (grown_title, grown.score(test)),
        ("automatic training, 100 units", automatic.score(test)),
    ]:
        print(f"  {title:40}{value:7.2f}")


def make_bernoulli(learning_rate, n_iter):
    return BernoulliRBM(100, learning_rate=learning_rate, n_iter=n_iter, random_state=0)


if __name__ == "__main__":
    main()
