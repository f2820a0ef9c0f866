"""The record that a search is about, and the rows of it that fits see."""

import numpy as np

from ..._parallel import Shared
from ..._warnings import warn_caller
from ...exceptions import OutlierWarning
from ..learning.dense_rows import choose_fraction
from ..learning.outliers import screen_outputs
from ..training_record import first_rows

# Rows of a record that the search fits networks and linear models to, at most; the
# free runs that are scored pass through all of it. And rows for the ensemble, whose
# networks of hidden states take longer, unless the rows are dense.
NETWORK_ROWS = 2000
LINEAR_ROWS = 10_000
MEMBER_ROWS = 20_000
STATES_ROWS = 5000
DENSE_ROWS = 30_000


def without_outliers(data, outliers, noise):
    """The `CutRecord` that a search is about, and what it says of wrong outputs.

    With ``outliers="replace"``, wrong outputs are replaced. Whoever expects them, and
    so asks for heavy tails, is not warned of them.

    Returns
    -------
    data : CutRecord
    attributes : dict, with ``outliers_`` for ``outliers="replace"``
    """
    if outliers == "keep":
        return data, {}
    given = data.given
    Y, found, doubtful = screen_outputs(given.U, given.Y, given.starts)
    if found.any() and noise == "gaussian":
        _warn_of(found)
    data = data._replace(given=given._replace(Y=Y), doubtful=doubtful)
    return data, {"outliers_": found[:, 0] if given.single_output else found}


def _warn_of(found):
    rows = np.flatnonzero(found.any(axis=1))
    warn_caller(
        f"{np.count_nonzero(found)} values of y are held to be wrong and were replaced "
        f"for the search and its fits, in row {first_rows(rows)} (see outliers_). Look "
        "at them. outliers='keep' takes all values as they are; noise='student_t' "
        "expects further ones, and does not warn.",
        OutlierWarning,
    )


def samples_to_score(data):
    """What candidates are fitted to, by their model."""
    return {
        "linear": Shared(data.thinned(LINEAR_ROWS)),
        "network": Shared(data.thinned(NETWORK_ROWS)),
        "states": Shared(rows_for_states(data, NETWORK_ROWS)),
    }


def samples_to_fit(data):
    """What the members of an ensemble are fitted to, by their model."""
    sample = Shared(data.thinned(MEMBER_ROWS))
    of_states = Shared(rows_for_states(data, STATES_ROWS))
    return {"linear": sample, "network": sample, "states": of_states}


def has_more_rows(of_states, data):
    """Whether what hidden states are fitted to has more rows than were scored."""
    return len(of_states.Y) > len(rows_for_states(data, NETWORK_ROWS).Y)


def rows_for_states(data, n_rows):
    """What networks of hidden states are fitted to: all rows where these are dense.

    A fit takes most of its time for a fraction of such rows, and their first ones show
    too little of what the system does.
    """
    dense = choose_fraction(data.Y, data.starts) > 1
    return data if dense and len(data.Y) <= DENSE_ROWS else data.thinned(n_rows)
