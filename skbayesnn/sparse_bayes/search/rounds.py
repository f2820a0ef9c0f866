"""The rounds of a search for lags, strength of the prior and kind of model.

Every candidate is judged alike: it is fitted without the outputs of a stretch of the
record, and its free run through that stretch is scored (its single steps for
``focus="prediction"``). The search begins with what is cheap, and spends fits only
where they may still change the choice:

1. `linear_round`: linear ARX models with more and more lags, with and without u(t),
   from now on or behind dead times, of levels and of differences of the outputs. They
   tell which of these are worth a network.
2. The first networks of lags and of hidden states, on a few of the stretches: a part of
   both, because the time may be limited.
3. `lag_networks_round`: networks of lags of other strengths, and what continues the
   grids of lags and strengths.
4. `states_round`: other networks of hidden states where one of them comes close, those
   of another activation first.
5. The finalists, which are still close to the best, on more stretches.

Where linear models of levels and of differences are close, both are searched, and the
error of a candidate includes its drift, see `drift`.
"""

from .comparison import HOPEFUL
from .lag_networks_round import first_networks, lag_networks_round
from .linear_round import linear_round
from .states_round import first_states, states_round

# Candidates that are tried on all folds, and how many of each kind are among them.
N_FINALISTS = 6
N_OF_EACH_KIND = 2


def run_rounds(comparison, space):
    """Try candidates round by round, until the table of the comparison tells the best.

    Parameters
    ----------
    comparison : Comparison
    space : SearchSpace
    """
    outputs, tried, networks, states = space.outputs, [], [], []
    # with both outputs, linear models tell first whether differences are tried
    comparison.measures_drift = outputs == ("difference",)
    if {"linear", "network"} & set(space.kinds) or len(outputs) > 1:
        linear = linear_round(comparison, space)
        outputs = tuple(linear)
        if "difference" in outputs:
            comparison.measure_drift()
        if "network" in space.kinds:
            networks = first_networks(linear, comparison, space)
    if "states" in space.kinds:
        states = first_states(outputs, space)
    # a part of both, before the time may be over
    first = [c for c in networks if c.reg_lambda == space.strengths.values[0]]
    comparison.try_on([*first, *states], comparison.few_folds)
    if networks:
        tried += lag_networks_round(networks, outputs, comparison, space)
    # those linear models have told what they were asked for
    comparison.remove([c for c in comparison.table.errors if not space.asks_for(c)])
    if states:
        tried += states_round(states, comparison, space)
    finalists = _finalists(tried, outputs, comparison, space)
    comparison.try_on(finalists, comparison.all_folds)


def _finalists(tried, outputs, comparison, space):
    """Candidates for all folds: those that may still be close to the best.

    Half of them are models of levels and half of differences, if both are tried. The
    best of lags and of hidden states are among them, however many of the other kind are
    better: a few folds do not tell which kind is.
    """
    ranked, error = comparison.ranked(tried), comparison.error
    hopeful = [c for c in ranked if error(c) <= HOPEFUL * error(ranked[0])]
    finalists = []
    for output in outputs:
        of_output = [c for c in hopeful if c.output == output]
        of_kinds = [[c for c in of_output if c.model == kind] for kind in space.kinds]
        best = [c for alike in of_kinds for c in alike[:N_OF_EACH_KIND]]
        rest = [c for c in of_output if c not in best]
        finalists += [*best, *rest][: N_FINALISTS // len(outputs)]
    return finalists
