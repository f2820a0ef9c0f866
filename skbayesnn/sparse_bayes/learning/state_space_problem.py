"""The problem of a state-space network: its records, its scaling, and its starts."""

from typing import NamedTuple

import numpy as np

from ..network import init_network, join_layers, prune, split_layers
from ..records.lags import usual_length
from ..records.layout import Stage
from ..records.state_runs import lay_out_for_fit
from . import prior as priors
from .dense_rows import choose_fraction, take_fraction
from .problem import Problem, is_constant, make_scaling, settings_of, warn_if_constant
from .realization import LinearSystem, realize
from .state_order import reduce_order
from .unneeded_units import remove_hidden_units

# Of the weights that lead from hidden units to states: the recursion begins close to a
# linear one, which is stable.
HIDDEN_TO_STATES = 0.1
# Largest modulus of random dynamics, and the standard deviation of what an input adds.
RANDOM_MODULUS = 0.8
RANDOM_INPUT = 0.4
# A magnitude, a saturation or an overflow is made of pieces, other systems are smooth.
AUTOMATIC_ACTIVATIONS = "tanh", "relu"


class StateSpaceStarts(NamedTuple):
    """Draws networks to begin with, and their prior.

    Every second one begins at the linear model, the others with random dynamics: where
    the output is an even function of the state, a linear model explains nothing. Every
    activation is tried with both.

    activations : names, those of the starts in turn
    sizes : units in each layer, features first
    n_states, n_sessions : the first and the last features
    n_read : states that networks begin with; the others are pruned
    n_levels : number of the first states that are the levels of outputs, which the
        network says the differences of
    """

    linear: LinearSystem
    sizes: tuple
    activations: tuple
    groups: tuple
    skip: bool
    n_states: int
    n_sessions: int
    constant_inputs: np.ndarray
    n_read: int
    n_levels: int

    def draw(self, rng, number):
        """Network and prior of the start with this number."""
        activation = self.activations[(number + number // 2) % len(self.activations)]
        network = init_network(self.sizes, activation, rng, self.skip)
        layers = split_layers(network.theta, network.sizes, self.skip)
        if self.skip:
            hidden = layers[-2][0]
            hidden[:, : self.n_states] *= HIDDEN_TO_STATES
            layers[0][1][:] = rng.uniform(-1.0, 1.0, len(layers[0][1]))
        linear = layers[-1][0]
        linear[:] = 0.0
        if number % 2:
            self._set_random(linear, rng)
        else:
            self._set_linear(linear, rng)
        levels = np.arange(self.n_levels)
        linear[levels, self.n_states + levels] = 1.0
        network = network._replace(theta=join_layers(layers))
        prior = priors.init_prior(self.sizes, self.groups, self.skip)
        network, index = prune(network, self._not_needed(network))
        return network, priors.take(prior, index)

    def _set_linear(self, weights, rng):
        """The linear model; states that it does not have decay."""
        A, B, C, D = self.linear
        first, n_states = self.n_levels, self.n_states
        n = min(len(A), self.n_read - first)
        states, outputs = slice(first, first + n), self._outputs(len(C))
        inputs = slice(n_states, n_states + B.shape[1])
        weights[states, states] = A[:n, :n].T
        weights[inputs, states] = B[:n].T
        weights[states, outputs] = C[:, :n].T
        weights[inputs, outputs] = D.T
        rest = np.arange(first + n, n_states)
        weights[rest, rest] = 0.5
        weights[inputs, rest] = RANDOM_INPUT * rng.standard_normal(
            (B.shape[1], len(rest))
        )

    def _set_random(self, weights, rng):
        """Rotations that decay."""
        first, last, n_inputs = self.n_levels, self.n_read, self.linear.B.shape[1]
        rotation, _ = np.linalg.qr(rng.standard_normal((last - first, last - first)))
        weights[first:last, first:last] = RANDOM_MODULUS * rotation
        inputs = slice(self.n_states, self.n_states + n_inputs)
        weights[inputs, first:last] = RANDOM_INPUT * rng.standard_normal(
            (n_inputs, last - first)
        )

    def _outputs(self, n_outputs):
        """What the linear model describes: outputs, or the differences of levels."""
        first = 0 if self.n_levels else self.n_states
        return slice(first, first + n_outputs)

    def _not_needed(self, network):
        """Weights of constant inputs, and of sessions to all but the next state.

        With those of states that are too many.
        """
        drop = np.zeros(len(network.theta), dtype=bool)
        layers = split_layers(drop, network.sizes, self.skip)
        absent = slice(self.n_read, self.n_states)
        for weights, _ in (layers[0], layers[-1]):
            weights[absent] = True
        for weights, biases in (layers[-1 - self.skip], layers[-1]):
            weights[:, absent] = True
            biases[absent] = True
        first_session = self.sizes[0] - self.n_sessions
        for weights, _ in (layers[0], layers[-1]):
            weights[self.n_states : first_session][self.constant_inputs] = True
        layers[-1][0][first_session:, self.n_states :] = True
        if self.skip:
            layers[0][0][first_session:] = True
        if self.n_levels:
            self._drop_all_but_levels(layers)
        return drop

    def _drop_all_but_levels(self, layers):
        """Levels are what the outputs show, and lead nowhere else."""
        levels = np.arange(self.n_levels)
        outputs = self.n_states + levels
        for weights, _ in (layers[0], layers[-1]):
            weights[levels] = True
        for weights, biases in (layers[-1 - self.skip], layers[-1]):
            weights[:, outputs] = True
            biases[outputs[: len(biases)]] = True
        layers[-1][0][levels, outputs] = False


def pose_state_space(
    options, U, Y, starts, n_states, lag, difference=False, scaling=None
):
    """The problem of a state-space network of outputs Y (n, n_outputs), NaN missing.

    Its data are all rows, its stages those of a fraction of them, see `dense_rows`.

    Parameters
    ----------
    options : Options
    U : (n, n_inputs) array, finite
    lag : int
        Of the ARX model behind the linear starts.
    difference : bool
        Whether the first states are the levels of the outputs, which sum up what the
        network says.
    scaling : Scaling or None
        Of an earlier fit, from which this one goes on; None for that of the record.
    """
    n_inputs, n_outputs, n_sessions = U.shape[1], Y.shape[1], len(starts) - 1
    scaling = _scaling(U, Y, n_states, n_sessions, scaling)
    inputs = slice(n_states, n_states + n_inputs)
    warn_if_constant(Y)
    constant = is_constant(U)
    U = (U - scaling.x_offset[inputs]) / scaling.x_scale[inputs]
    Y = (Y - scaling.y_offset) / scaling.y_scale
    likelihood, weights = options.likelihood.scaled(scaling.y_scale)
    every, n_levels = choose_fraction(Y, starts), n_outputs if difference else 0
    layout = n_states, weights
    data = lay_out_for_fit(U, Y, starts, *layout, 1.0 / every, n_levels)
    U, Y, starts = take_fraction(U, Y, starts, every)
    first = lay_out_for_fit(U, Y, starts, *layout, 1.0, n_levels)
    n_features = n_states + n_inputs + n_sessions
    sizes = (n_features, *options.hidden_layer_sizes, n_states + n_outputs)
    named = options.activation
    activations = AUTOMATIC_ACTIVATIONS if named == "auto" else (named,)
    draws = StateSpaceStarts(
        linear=_linear_model(U, Y, starts, n_states, lag, difference),
        sizes=sizes,
        activations=activations,
        groups=options.groups,
        skip=options.skip,
        n_states=n_states,
        n_sessions=n_sessions,
        constant_inputs=constant,
        n_read=n_states,
        n_levels=n_levels,
    )
    return Problem(
        data=data,
        # nothing is pruned in the first
        stages=(Stage(first, np.inf), Stage(first, np.inf)),
        settings=settings_of(options, likelihood, sizes, data.n_observations),
        scaling=scaling,
        start=None,
        groups=options.groups,
        sizes=sizes,
        skip=options.skip,
        activation=options.activation,
        constant_inputs=constant,
        constant_output=False,
        max_cycles=options.max_cycles,
        verbose=options.verbose,
        starts=draws,
        n_screening=1,
        reduce=_reduction(n_sessions, difference),
    )


def _reduction(n_sessions, difference):
    """`Problem.reduce`: what takes states and hidden units away behind a fit.

    Another basis of the states would mix levels with other states. And where there are
    several sessions, the states at their starts, which predictions do not know, could
    make up for units: of batches of 40 rows, networks with fewer units predicted worse.
    """
    if n_sessions > 1:
        return None if difference else reduce_order
    return remove_hidden_units if difference else _remove_states_and_units


def _remove_states_and_units(settings, stage, state, max_cycles, rng):
    """Yield the cycles of every smaller network; as `Problem.reduce`."""
    for smaller, info in reduce_order(settings, stage, state, max_cycles, rng):
        state = smaller
        yield state, info
    yield from remove_hidden_units(settings, stage, state, max_cycles, rng)


def _linear_model(U, Y, starts, n_states, lag, difference):
    """`LinearSystem` of the outputs, or of what is added to them in each row."""
    if difference:
        n_states -= Y.shape[1]
        last = np.zeros(len(Y), dtype=bool)
        last[starts[1:] - 1] = True
        U, Y = U[~last], np.diff(Y, axis=0)[~last[:-1]]
        starts = starts - np.arange(len(starts))
    # nothing is left where all sessions have one row and differences are asked for
    lag = min(lag, usual_length(starts)) if len(Y) else 1
    return realize(U, Y, starts, n_states, lag)


def _scaling(U, Y, n_states, n_sessions, earlier):
    """Of signals with mean 0 and variance 1, or as earlier; states are as they are."""
    if earlier is None:
        mean = np.nanmean(Y, axis=0)
        of_signals = make_scaling(U, np.where(np.isnan(Y), mean, Y), normalize=True)
    else:
        inputs = slice(n_states, n_states + U.shape[1])
        of_signals = earlier._replace(
            x_offset=earlier.x_offset[inputs], x_scale=earlier.x_scale[inputs]
        )
    before, behind = np.zeros(n_states), np.zeros(n_sessions)
    offset = np.concatenate([before, of_signals.x_offset, behind])
    scale = np.concatenate([before + 1.0, of_signals.x_scale, behind + 1.0])
    return of_signals._replace(x_offset=offset, x_scale=scale)
