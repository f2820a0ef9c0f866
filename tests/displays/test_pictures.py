"""Displays look as they did: pictures of given numbers, and their texts.

Releases of matplotlib draw letters differently, and a layout makes room for them. So
the pictures have no texts, and the places of axes that subplots have without a layout.
Texts are compared as texts.

``python tests/displays/test_pictures.py`` draws the pictures anew; look at them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")

from matplotlib.image import imread  # noqa: E402
from matplotlib.legend import Legend  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from skbayesnn.displays import (  # noqa: E402
    ConvergenceDisplay,
    LagRelevanceDisplay,
    ResidualAnalysisDisplay,
    SimulationDisplay,
    figure_style,
)

FOLDER = Path(__file__).parent / "pictures"
TEXTS = FOLDER / "texts.json"
# Root mean square difference of the brightness, 0 to 1, of blurred pictures. Releases
# 3.10.8 and 3.11.2 of matplotlib draw the same; a line that is 30 % thinner makes 0.01.
TOLERANCE = 0.005
BLUR = 8


def record():
    rng = np.random.default_rng(0)
    t = np.arange(120.0)
    y = np.stack([np.sin(t / 9) + 2, np.cos(t / 14)], axis=1)
    return y, y + 0.15 * np.cumsum(rng.standard_normal(y.shape), axis=0) / 4


def simulation():
    y, run = record()
    std = np.linspace(0.02, 0.6, len(y))[:, None] * [1.0, 0.5]
    options = dict(n_initialization=12, sampling_time=0.5, y_range=(-1.0, 3.0))
    return SimulationDisplay.from_predictions(y, run, std, **options)


def comparison():
    y, run = record()
    start = np.datetime64("2026-05-01T08:00")
    models = {"network": run, "linear ARX": 0.8 * y + 0.2, "mean": 0 * y + y.mean(0)}
    display = SimulationDisplay.from_predictions(y, models, n_initialization=12)
    display.time = start + 4 * np.arange(len(y)).astype("timedelta64[s]")
    display.output_names = ["level", "flow"]
    plt.close(display.figure_)
    return display.plot()


def convergence():
    n = 60
    rmse = np.geomspace(9.0, 0.3, n)
    horizons = np.repeat([np.nan, 8.0, 32.0, np.inf], n // 4)
    curves = dict(objective=1e3 * rmse, rmse=rmse, n_active_weights=100 - np.arange(n))
    curves = {name: [values] for name, values in curves.items()}
    return ConvergenceDisplay(
        [np.arange(1.0, n + 1)], curves, horizons=[horizons]
    ).plot()


def lags():
    signals, relevance = ["pump"] * 4 + ["level"] * 3, [0.0, 0.2, 0.5, 0.1, 1.2, 0.7, 0]
    lag = np.array([0, 1, 2, 3, 1, 2, 3])
    return LagRelevanceDisplay(signals, lag, np.array(relevance)).plot()


def residuals():
    y, run = record()
    u = np.random.default_rng(1).standard_normal((len(y), 1))
    return ResidualAnalysisDisplay.from_predictions(y[:, 0], run[:, 0], u)


def style():
    with figure_style():
        figure, axes = plt.subplots(figsize=(5.0, 3.0))
        for k in range(4):
            axes.plot(np.sin(np.arange(20) / 4 + k), label=f"curve {k}")
        axes.set(xlabel="time (s)", ylabel="level (V)", title="Style")
        axes.legend()
    axes.figure_ = figure
    return axes


PICTURES = [simulation, comparison, convergence, lags, residuals, style]


def draw(make, path):
    """Save the picture without texts; returns the texts, but for those of ticks."""
    figure = make().figure_
    texts = [written(axes) for axes in figure.axes]
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(axes.get_subplotspec().get_position(figure))
    for artist in figure.findobj(Text) + figure.findobj(Legend):
        artist.set_visible(False)
    figure.savefig(path, dpi=50)
    plt.close(figure)
    return texts


def written(axes):
    """Title, labels, texts and legend of axes."""
    found = [axes.get_title(loc) for loc in ("left", "center", "right")]
    found += [axes.get_xlabel(), axes.get_ylabel()]
    found += [text.get_text() for text in axes.texts]
    legend = axes.get_legend()
    found += [text.get_text() for text in legend.get_texts()] if legend else []
    return found


def blurred(path):
    """Brightness, averaged over squares."""
    grey = imread(path)[..., :3].mean(axis=2)
    height, width = (n // BLUR for n in grey.shape)
    grey = grey[: height * BLUR, : width * BLUR]
    return grey.reshape(height, BLUR, width, BLUR).mean(axis=(1, 3))


def difference(one, other):
    one, other = blurred(one), blurred(other)
    if one.shape != other.shape:
        return 1.0
    return float(np.sqrt(np.mean((one - other) ** 2)))


@pytest.mark.parametrize("make", PICTURES)
def test_picture(make, tmp_path):
    texts = draw(make, tmp_path / "now.png")
    found = difference(tmp_path / "now.png", FOLDER / f"{make.__name__}.png")
    assert found < TOLERANCE
    assert texts == json.loads(TEXTS.read_text(encoding="utf-8"))[make.__name__]


def test_another_picture_is_told(tmp_path):
    def without_band():
        display = simulation()
        plt.close(display.figure_)
        display.n_sigmas = 0.0
        return display.plot(sampling_time=0.5)

    def other_colours():
        axes = style()
        for line in axes.get_lines():
            line.set(color="black", linewidth=4)
        return axes

    def thinner_lines():
        axes = style()
        for line in axes.get_lines():
            line.set(linewidth=0.7 * line.get_linewidth())
        return axes

    for make, name in (
        (without_band, "simulation"),
        (other_colours, "style"),
        (thinner_lines, "style"),
    ):
        draw(make, tmp_path / "now.png")
        assert difference(tmp_path / "now.png", FOLDER / f"{name}.png") > TOLERANCE


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    drawn = {p.__name__: draw(p, FOLDER / f"{p.__name__}.png") for p in PICTURES}
    text = json.dumps(drawn, indent=1, ensure_ascii=False)
    TEXTS.write_text(text + "\n", encoding="utf-8")
