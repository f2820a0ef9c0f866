"""A day with a recorded signal in data frames: search, test, compare, forecast.

The record has stamps, a hole and named columns. Models are searched by the free run,
tested once on a later record, and the best one forecasts. No data file is needed.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV, TimeSeriesSplit

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.displays import SimulationDisplay, figure_style
from skbayesnn.metrics import simulation_scorer

N_INIT, N_AHEAD = 50, 150
GRID = {"reg_lambda": [2.0, 5.0, 15.0], "hidden_layer_sizes": [3, 6]}


def main():
    X, y, X_test, y_test = load()
    network = SparseBayesNARXRegressor(5, 5, focus="simulation", random_state=0)
    search = HalvingGridSearchCV(
        network.set_params(tol=0.02),
        GRID,
        scoring=simulation_scorer,
        cv=TimeSeriesSplit(3),
        # cycles of a fit, not rows, which the search would draw at random
        resource="max_cycles",
        min_resources=100,
        max_resources=900,
        return_train_score=False,
    ).fit(X, y, sessions="infer")
    print(f"Chosen on the training record: {search.best_params_}")
    linear = SparseBayesNARXRegressor(5, 5, hidden_layer_sizes=())
    linear.fit(X, y, sessions="infer")
    models, runs = {"network": search.best_estimator_, "linear ARX": linear}, {}
    for name, model in models.items():
        runs[name] = model.predict(X_test, y_init=y_test[:N_INIT])
        r2 = model.score(X_test, y_test, horizon=1)
        print(f"{name}: R2 on the test record {r2:.4f} one step ahead")
    past = dict(X_past=X_test[:-N_AHEAD], y_past=y_test[:-N_AHEAD])
    model = models["network"].set_output(predict="pandas")
    draw(y_test, runs, model.forecast(N_AHEAD, X_test[-N_AHEAD:], **past, n_paths=20))


def load():
    """A training record with a hole of four minutes, and a test record."""
    tanks, data = make_cascaded_tanks(random_state=0), []
    for day, part in (("2026-03-02", tanks), ("2026-03-03", tanks.tests.test)):
        times = pd.date_range(f"{day} 08:00", periods=len(part.target), freq="4s")
        times.name, kept = "time", (times.minute < 6) | (times.minute > 9)
        X = pd.DataFrame(part.data, columns=["pump"], index=times)
        y = pd.Series(part.target, index=times, name="level")
        data += [X, y] if data else [X[kept], y[kept]]
    return data


def draw(y, runs, ahead):
    # the sensor ends at 10 V
    lower, upper = ahead.lower["level"].clip(0, 10), ahead.upper["level"].clip(0, 10)
    held = y[-N_AHEAD:].between(lower, upper).mean()
    with figure_style():
        figure, axes = plt.subplots(3, 1, figsize=(9.0, 7.5), height_ratios=[2, 1, 2])
        options = dict(n_initialization=N_INIT, y_label="level (V)")
        SimulationDisplay.from_predictions(y, runs, ax=axes[:2], **options)
        axes[2].plot(y[-2 * N_AHEAD :], color="black", label="measured")
        axes[2].plot(ahead.y_pred, label="forecast")
        axes[2].plot(ahead.time, ahead.paths, color="C0", linewidth=0.4, alpha=0.5)
        label = f"band of 95 %, holds {held:.0%}"
        axes[2].fill_between(ahead.time, lower, upper, alpha=0.3, label=label)
        axes[2].set(xlabel="Time", ylabel="level (V)")
        axes[2].legend()
        figure.savefig("data_scientist.png", dpi=90)


if __name__ == "__main__":
    main()
