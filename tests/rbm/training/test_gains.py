"""What a training has gained, and whether it goes on to gain."""

import numpy as np
import pytest
from training_points import (
    BEST,
    OVERFITTED,
    WORSE,
    adapting,
    path_of,
    point,
    settings_of,
)

from skbayesnn.rbm.training import gains


def test_what_was_gained_since_a_fraction_of_the_updates():
    path = path_of([100, 100, 200, 400], [-40.0, -42.0, -35.0, -30.0])
    last = point(-30.0)._replace(path=path)
    state = adapting(last, last)
    assert gains.gain_since(state, 0.5) == 5.0
    # the best before counts, and only what had ended
    assert gains.gain_since(state, 0.25) == 10.0
    assert gains.gain_since(state, 0.24) == 10.0
    assert np.isnan(gains.gain_since(state, 0.1))
    # back at the start
    start = last._replace(path=())
    assert np.isnan(gains.gain_since(adapting(start, start), 0.5))


@pytest.mark.parametrize("n_more", [0, 2])
def test_a_model_is_out_of_reach_beyond_the_pace_of_its_last_doubling(n_more):
    """Here 3 nats for twice the updates, of which two rounds are at most 16 / 9."""
    path = path_of([1000, 1000], [-33.0, -30.0])
    last = point(-30.0)._replace(path=path)
    state, reach = adapting(last, last), -30.0 + 3.0 * np.log2((4 / 3) ** n_more)
    assert gains.cannot_reach(state, reach + 1e-6, 2 + n_more)
    assert not gains.cannot_reach(state, reach - 1e-6, 2 + n_more)
    # nothing is known of the pace at first, and little where training begins
    start = last._replace(path=())
    early = last._replace(path=path_of([200, 200], [-33.0, -30.0]))
    for one in (start, early):
        assert not gains.cannot_reach(adapting(one, one), 0.0, 2)
    # nor where nothing was gained yet
    waiting = state._replace(first_score=-30.01)
    assert not gains.cannot_reach(waiting, 0.0, 2)


@pytest.mark.parametrize(
    "current, plan, expected",
    [
        (BEST, {}, False),
        # the validation rows lose while the training rows gain
        (OVERFITTED, dict(n_losses=1), True),
        (OVERFITTED, {}, False),
        # both lose: the chains do not follow
        (WORSE, dict(n_losses=1), False),
        (BEST, dict(weight_decay=0.1), True),
        (BEST, dict(cools=True), True),
    ],
)
def test_a_comparison_is_over_for_what_overfits(current, plan, expected):
    state = adapting(current, BEST, **plan)
    assert gains.overfits_or_cools(settings_of(), state) is expected
