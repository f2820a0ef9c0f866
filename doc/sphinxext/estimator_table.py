"""A table of what each estimator takes and can, read from the estimators themselves.

The directive ``estimator-table`` asks the tags of scikit-learn, the methods and the
parameters of every public estimator.
"""

import inspect

from docutils import nodes
from docutils.parsers.rst import Directive
from sklearn.base import BaseEstimator

import skbayesnn

YES, NO = "yes", "–"


def estimators():
    """Public estimators that can be made without arguments, in the order of names."""
    for name in skbayesnn.__all__:
        member = getattr(skbayesnn, name)
        if inspect.isclass(member) and issubclass(member, BaseEstimator):
            yield name, member()


def has(*names):
    """A column: whether an estimator has a method, or a parameter, of these names."""

    def answer(estimator):
        parameters = estimator.get_params(deep=False)
        fit = inspect.signature(estimator.fit).parameters
        return any(hasattr(estimator, n) or n in parameters or n in fit for n in names)

    return answer


def returns(argument):
    """A column: whether ``predict`` has an argument."""

    def answer(estimator):
        predict = getattr(estimator, "predict", None)
        return predict is not None and argument in inspect.signature(predict).parameters

    return answer


# heading -> whether an estimator has it
COLUMNS = {
    "sparse matrices": lambda e: e.__sklearn_tags__().input_tags.sparse,
    "missing values": lambda e: e.__sklearn_tags__().input_tags.allow_nan,
    "several outputs": lambda e: e.__sklearn_tags__().target_tags.multi_output,
    "sample_weight": has("sample_weight"),
    "partial_fit": has("partial_fit"),
    "warm_start": has("warm_start"),
    "return_std": returns("return_std"),
    "sample or sample_y": has("sample", "sample_y"),
    "transform": has("transform"),
    "sessions": has("sessions"),
    "early_stopping": has("early_stopping"),
    "checkpoint": has("checkpoint"),
    "n_jobs": has("n_jobs"),
}


class EstimatorTable(Directive):
    """One row for each capability, one column for each estimator."""

    def run(self):
        columns = list(estimators())
        table = nodes.table(classes=["estimator-table"])
        group = nodes.tgroup(cols=len(columns) + 1)
        table += group
        for _ in range(len(columns) + 1):
            group += nodes.colspec(colwidth=1)
        head = nodes.thead()
        group += head
        head += row([text(""), *[text(name, literal=True) for name, _ in columns]])
        body = nodes.tbody()
        group += body
        for heading, answer in COLUMNS.items():
            literal = "_" in heading and " " not in heading
            cells = [text(YES if answer(e) else NO) for _, e in columns]
            body += row([text(heading, literal=literal), *cells])
        return [table]


def text(content, *, literal=False):
    kind = nodes.literal if literal else nodes.inline
    return nodes.paragraph("", "", kind("", content))


def row(cells):
    line = nodes.row()
    for cell in cells:
        line += nodes.entry("", cell)
    return line


def setup(app):
    app.add_directive("estimator-table", EstimatorTable)
    return {"parallel_read_safe": True}
