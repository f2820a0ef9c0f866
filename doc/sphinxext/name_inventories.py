"""Links to the documentation of other packages, without asking their servers.

Intersphinx reads an inventory from each server. Here the inventories hold the names
that our pages and docstrings use, and are written when the build begins. A name that is
not in the table stays plain text; a new one is added here.
"""

import zlib
from pathlib import Path

SKLEARN_OBJECTS = [
    "sklearn.frozen.FrozenEstimator",
    "sklearn.impute.KNNImputer",
    "sklearn.linear_model.LogisticRegression",
    "sklearn.model_selection.GridSearchCV",
    "sklearn.model_selection.PredefinedSplit",
    "sklearn.model_selection.TimeSeriesSplit",
    "sklearn.neural_network.BernoulliRBM",
    "sklearn.neural_network.MLPRegressor",
    "sklearn.pipeline.Pipeline",
    "sklearn.utils.Bunch",
]
SET_OUTPUT = "sphx_glr_auto_examples_miscellaneous_plot_set_output.py"

# project -> (address, [(name, role, page)]); {} in a page stands for the name
INVENTORIES = {
    "sklearn": (
        "https://scikit-learn.org/stable/",
        [
            *[
                (name, "py:class", "modules/generated/{}.html#{}")
                for name in SKLEARN_OBJECTS
            ],
            ("metadata_routing", "std:label", "metadata_routing.html#metadata-routing"),
            ("df_output_transform", "std:label", "modules/df_output_transform.html"),
            ("r2_score", "std:label", "modules/model_evaluation.html#r2-score"),
            ("meta-estimator", "std:term", "glossary.html#term-meta-estimator"),
            (
                SET_OUTPUT,
                "std:label",
                "auto_examples/miscellaneous/plot_set_output.html",
            ),
        ],
    ),
    "numpy": (
        "https://numpy.org/doc/stable/",
        [("numpy.ndarray", "py:class", "reference/generated/{}.html#{}")],
    ),
}


def inventory(project, names):
    """The bytes of an inventory, format 2 of Sphinx."""
    head = (
        "# Sphinx inventory version 2\n"
        f"# Project: {project}\n# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    lines = [
        f"{name} {role} 1 {page.format(name, name)} -\n" for name, role, page in names
    ]
    return head.encode() + zlib.compress("".join(lines).encode())


def write(app, config):
    folder = Path(app.doctreedir) / "names"
    folder.mkdir(parents=True, exist_ok=True)
    for project, (address, names) in INVENTORIES.items():
        file = folder / f"{project}.inv"
        file.write_bytes(inventory(project, names))
        config.intersphinx_mapping[project] = (address, str(file))


def setup(app):
    # before intersphinx checks its mapping
    app.connect("config-inited", write, priority=100)
    return {"parallel_read_safe": True}
