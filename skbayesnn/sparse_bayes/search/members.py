"""The candidates of a search that stay, and their numbers in the ensemble."""

import numpy as np

# Members of the ensemble are those whose error is at most so many times the least one;
# or farther, if the errors of the stretches scatter so much that it is within a
# standard error of the least one: then another cut into stretches changes the order.
CLOSE = 1.2
FARTHEST = 1.4
# Candidates are equal whose errors differ by less.
EQUAL = 1.02


def first_of(candidates, output):
    """The first of the candidates of levels or of differences; None without any."""
    return next((c for c in candidates if c.output == output), None)


def leading(ranked, error):
    """The best candidate: that of differences if it errs at most 1.4 times as much."""
    best, of_steps = ranked[0], first_of(ranked, "difference")
    return of_steps if of_steps and error(of_steps) <= FARTHEST * error(best) else best


def simplest(candidates, error, size):
    """The smallest of the candidates whose errors are within 2 % of the least one."""
    most = EQUAL * min(map(error, candidates))
    return min((c for c in candidates if error(c) <= most), key=size)


def rivals(table):
    """Candidates of a comparable table that could be in one ensemble, best first.

    All are models of levels, or all of differences, because members of both could not
    be exported together. Differences are chosen where the best of them errs at most 1.4
    times as much as the best of all: a model of levels has learned those of the record,
    and errs beyond them.
    A network, of lags or of states, has only other networks beside it: they could not
    make up for what a linear model lacks on some rows.
    """
    ranked = table.best_first()
    linear = ranked[0].model == "linear"
    alike = [c for c in ranked if (c.model == "linear") == linear]
    best = leading(alike, table.error)
    return [c for c in alike if c.output == best.output]


def close_to_best(table):
    """Candidates for the ensemble: those close to the best, the best first.

    Close is a fifth, or what the errors cannot tell apart, up to a factor of 1.4.
    A linear model that is best stands alone: a network would add nothing but its
    variance. Of those within 2 % of the least error it is the one with the shortest
    lags.

    Parameters
    ----------
    table : Table
        Whose candidates are `comparable`.
    """
    alike = rivals(table)
    best = alike[0]
    if best.is_arx:
        return [simplest(alike, table.error, lambda c: (c.lag, c.current_input))]
    least = table.error(best)
    return [
        c
        for c in alike
        if table.error(c) <= CLOSE * least
        or (table.error(c) <= FARTHEST * least and not table.clearly_worse(c, best))
    ]


def share_out(close, table, n_members):
    """How many members each candidate has: dict of Candidate to int.

    Networks of one kind have similar errors, and the kind with more candidates would
    outvote the other. So where both kinds are close to the best, each gets a number in
    proportion to the inverse square of its least error, however many candidates it has.

    Parameters
    ----------
    close : list of Candidate, the best first
    """
    best = {}
    for candidate in close:
        best.setdefault(candidate.model, candidate)
    precision = np.array([table.error(c) ** -2 for c in best.values()])
    # of at most two kinds; the worse one has no more than half
    last = int(n_members * precision[-1] / precision.sum() + 0.5)
    numbers = {}
    for model, n in zip(best, [n_members - last, last][-len(best) :], strict=True):
        alike = [c for c in close if c.model == model][:n]
        numbers |= zip(alike, evenly(n, len(alike)), strict=True)
    return {c: numbers[c] for c in close if c in numbers}


def evenly(n, n_parts):
    """Whole numbers whose sum is n; the first may be greater by one."""
    return [n // n_parts + (k < n % n_parts) for k in range(n_parts)]
