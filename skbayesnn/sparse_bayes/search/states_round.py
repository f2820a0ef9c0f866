"""The round of networks of hidden states.

Their fits take longer than those of lags, and where the outputs show the state of the
system they are far behind. So a few of them are tried first, others only where these
come close, and each of the others on a single fold where it is behind there.
"""

from operator import attrgetter

import numpy as np

from .candidates import Candidate
from .comparison import HOPEFUL
from .members import leading, simplest
from .search_space import strengths_beyond

# Numbers of states grow by two, up to this, as long as the last step has made the error
# smaller by this factor.
MAX_STATES = 10
WORTH_MORE_STATES = 1.1
# What makes one candidate smaller than another, the first of these before the others.
_SIZE = attrgetter("n_states", "n_units", "max_cycles")


def first_states(outputs, space):
    """Networks of hidden states that decide whether others are tried.

    They have the first activation, and few cycles.
    """
    settings = space.activations[0], space.states_cycles[0]
    base = Candidate("states", "simulation", 0, 0.0, True, 0, *settings)
    base = base._replace(n_units=space.units.values[0])
    return [
        base._replace(output=output, n_states=n, reg_lambda=strength)
        for output in outputs
        for n in _numbers_of_states(output, space)
        for strength in space.strengths_of_states
    ]


def _numbers_of_states(output, space):
    """The first numbers of states to try, for levels or for differences.

    For differences each output needs a state for its level. As these keep networks from
    losing states that do not pay, such networks also begin with one state more than
    there are outputs.
    """
    if output == "level":
        return space.states.values
    n_outputs = space.limits.n_outputs
    few = [n_outputs + 1] if space.states.grows else []
    return sorted({n for n in [*few, *space.states.values] if n >= n_outputs})


def states_round(first, comparison, space):
    """Try networks of hidden states on a few folds: the first ones, and others.

    Others are tried while the best is not far behind models of lags. They are those
    next to the best, see `_neighbours`. Of several that are as good as the best, the
    one with the fewest states is taken for it, and then with the fewest units and
    cycles: fits of more take longer, and so do those that follow; and where a test
    leaves the range of the record, networks of few units go astray less.

    Parameters
    ----------
    first : list of Candidate
        See `first_states`.
    comparison : Comparison
    space : SearchSpace

    Returns
    -------
    tried : list of Candidate
    """
    error = comparison.error
    rivals = [c for c in comparison.table.errors if c.model != "states"]
    least = min(map(error, comparison.ranked(rivals)), default=np.inf)
    tried = list(first)
    comparison.try_on(tried, comparison.few_folds)
    ranked = comparison.ranked(tried)
    # farther behind where another activation may be better
    hopeless = HOPEFUL ** min(len(space.activations), 2)
    # bound: all candidates differ, and all grids have ends
    while ranked and error(ranked[0]) <= hopeless * least:
        output = leading(ranked, error).output
        alike = [c for c in ranked if c.output == output]
        best = simplest(alike, error, _SIZE)
        new = _neighbours(best, tried, comparison, space)
        if not new:
            break
        tried += new
        comparison.try_hopeful(new, [best])
        ranked, hopeless = comparison.ranked(tried), HOPEFUL
    return tried


def _neighbours(best, tried, comparison, space):
    """What is tried next to the best: the first of five that has something new.

    Other activations, half of the units, other numbers of cycles, more states, other
    strengths. Fewer units come early, because what follows takes less time with them.
    More states come before strengths, because the best strength depends on their
    number.
    """
    tried = [c for c in tried if c.output == best.output]
    seen = {c.activation for c in tried}
    new = [best._replace(activation=a) for a in space.activations if a not in seen]
    if new:
        return new
    alike = [c for c in tried if c.activation == best.activation]
    fewer = best._replace(n_units=best.n_units // 2)
    is_last = best.n_units == min(c.n_units for c in alike)
    if space.units.grows and is_last and fewer.n_units:
        return [fewer]
    seen = {c.max_cycles for c in tried}
    new = [best._replace(max_cycles=n) for n in space.states_cycles if n not in seen]
    if new:
        return new
    alike = [c for c in alike if c.max_cycles == best.max_cycles]
    more = best._replace(n_states=best.n_states + 2)
    may_grow = space.states.grows and more.n_states <= MAX_STATES and more not in tried
    if may_grow and _are_more_worth_it(best, alike, comparison):
        return [more]
    if not space.strengths.grows:
        return []
    size = best.n_states, best.n_units
    strengths = [c.reg_lambda for c in alike if (c.n_states, c.n_units) == size]
    following = strengths_beyond(best.reg_lambda, strengths)
    new = [best._replace(reg_lambda=s) for s in following]
    return [c for c in new if c not in tried]


def _are_more_worth_it(best, alike, comparison):
    """Whether the last states have made the error smaller."""
    fewer = [c for c in alike if c.n_states < best.n_states]
    before = min(map(comparison.error, fewer), default=np.inf)
    return WORTH_MORE_STATES * comparison.error(best) <= before
