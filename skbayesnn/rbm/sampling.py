"""Samples of a fitted RBM: Markov chains, draws, imputation of missing values."""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from .._frames import column_names
from .._random import Stream, derived_seed, draw_seed, generator
from .._validation import check_array, check_container, check_count
from . import few_missing, listed_states
from . import model as rbm_model
from .learning import jumps
from .likelihood import annealing
from .states import by_feature, product
from .training.given_rows import check_range, check_rows
from .training.rows import Rows

# Gibbs steps from one jump to the next, and chains that jump at a time: the memory of
# their probabilities by all rows.
_STEPS_PER_JUMP, _BLOCK = 20, 500
# Chains whose average is the expectation of a row's missing values, and steps that each
# of them has at least: what is given may leave several modes, and a chain stays in one.
_CHAINS_PER_ROW, _LEAST_STEPS = 8, 25
# How a clamp is read, of any shape: what pandas marks as missing becomes NaN.
_NUMBERS_OR_NAN = {
    "dtype": np.float64,
    "ensure_all_finite": False,
    "ensure_2d": False,
    "allow_nd": True,
    "ensure_min_samples": 0,
    "ensure_min_features": 0,
}


class _Average(NamedTuple):
    """What several chains of each row say of it.

    means : (n_rows, n_features) of the second halves of all
    log_masses : (n_rows,), as `annealing.annealed_chains` tells them, of all
    ends : list of ndarray (n_rows, n_features), the last states of each
    """

    means: np.ndarray
    log_masses: np.ndarray
    ends: list


class SamplingMixin:
    """Methods that run Markov chains."""

    def gibbs(self, V, n_steps=1, *, random_state=None):
        """Advance Markov chains that have the model as their stationary distribution.

        Parameters
        ----------
        V : {array-like, sparse matrix} of shape (n_samples, n_features)
            States to start from, one chain per row.
        n_steps : int, default=1
            Steps of blocked Gibbs sampling, or Metropolis-Hastings steps of a
            fractional RBM.
        random_state : int, RandomState instance or None, default=None
            Source of random numbers. The same integer gives the same numbers in each
            call: pass another one, or a RandomState, to continue a chain.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features), bool
            New states.

        Raises
        ------
        ValueError
            For ``n_steps`` that is no integer or negative, a ``random_state`` that is
            none, and as ``transform`` does.
        """
        rows = self._check_rows(V)
        n_steps = check_count(n_steps, "n_steps", 0)
        seed = derived_seed(draw_seed(random_state), Stream.GIBBS_CHAINS)
        chains = rbm_model.Chains(rows.states(slice(None)), seed, 0, 0)
        rbm = self._training_rbm()
        chains, _ = rbm_model.gibbs(rbm, chains, n_steps)
        return rbm.units.public(chains.states)

    def sample(self, n_samples=1, *, n_steps=1000, clamp=None, random_state=None):
        """Draw visible states from the model.

        Each sample has its own chain, which starts at the base rates of the
        training data, is annealed to the model over half of the steps, and stays at
        the model for the other half. There it may jump to the hidden states of the
        training rows that the model keeps, in proportion to their probabilities, so
        that modes which no chain would leave are drawn as often as they should be.
        Where the model has few hidden units (up to 15 for 64 features), all states of
        these are listed, and no chain is needed: samples are exact and independent.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        n_steps : int, default=1000
            Steps of each chain, if there are chains.
        clamp : array-like of shape (n_features,), (1, n_features) or \
                (n_samples, n_features), default=None
            Values of features that are held, NaN for those that are free: samples of
            the conditional distribution. Turned into 0 and 1 by ``binarize``. The
            columns of a data frame, or the index of a row of one, are those of the fit.
        random_state : int, RandomState instance or None, default=None
            Source of random numbers.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features), bool
            The samples.

        Raises
        ------
        ValueError
            For ``n_samples`` or ``n_steps`` that is no integer or less than 1, a
            ``random_state`` that is none, and a ``clamp`` of another shape, with other
            names of features than those of the fit, or with values that are no states.
        """
        check_is_fitted(self)
        n_samples = check_count(n_samples, "n_samples", 1)
        n_steps = check_count(n_steps, "n_steps", 1)
        held = None if clamp is None else self._check_clamp(clamp, n_samples)
        # chains do not find lone states, but their probabilities are known
        rbm, seed = self._rbm_of_others(), draw_seed(random_state)
        if listed_states.can_list(rbm):
            states, log_masses = listed_states.sample(rbm, n_samples, held, seed)
        else:
            arguments = n_samples, n_steps, held, seed
            states, log_masses = self._states_of_chains(rbm, *arguments)
        V = rbm.units.public(states)
        if len(self.lone_states_):
            if held is None:
                shares = self._shares_of_lone_states()
            else:
                shares = self._shares_given(held, _mean_of_alike(held, log_masses))
            self._draw_lone_states(V, shares, seed)
        return V

    def _states_of_chains(self, rbm, n_samples, n_steps, held, seed):
        """A state of each of so many chains, and what `annealed_chains` tell."""
        chains, log_masses = self._annealed_chains(
            rbm, n_samples, n_steps // 2, held, seed
        )
        jump = self._jumps(rbm)
        for n in _parts(n_steps - n_steps // 2):
            chains = jump(chains, held)
            chains, _ = rbm_model.gibbs(rbm, chains, n, held)
        return chains.states, log_masses

    def impute(self, X, *, strategy="mean", n_steps=400, random_state="auto"):
        """Fill in missing values from the conditional distribution.

        Where so few values of a row are missing that their states are no more than the
        ``n_steps`` (8 of them for 400 steps), all of these are enumerated, and where
        the model has few hidden units (up to 15 for 64 features), all states of these:
        the result is exact. Else expectations come from the hidden states that training
        rows have, weighted by how well they agree with what is given, if the effective
        number of these is at least 100. Where that leaves none, and for draws, Markov
        chains of each row find the missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Visible states, NaN where missing.
        strategy : {"mean", "sample"}, default="mean"
            The conditional expectation of each missing value, averaged over the second
            halves of several chains, or one draw of all of them together.
        n_steps : int, default=400
            Gibbs steps for each row that has chains: those of one chain for a draw, of
            all together for an expectation (8 chains from 200 steps on).
        random_state : "auto", int, RandomState instance or None, default="auto"
            Source of random numbers. "auto" is 0 for an expectation, which is then the
            same in each call, and None for a draw: another one in each call, as
            multiple imputation needs them.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), dtype of ``components_``
            The given values as 0 and 1 by ``binarize`` (unchanged with
            ``binarize=None``), and the missing ones.
            An array for a data frame, too, as of ``inverse_transform``:
            ``pd.DataFrame(rbm.impute(X), X.index, X.columns)`` has its names again.

        Raises
        ------
        ValueError
            For another ``strategy``, fewer than two ``n_steps``, and values that are no
            states.
        TypeError
            For a sparse matrix.
        """
        check_is_fitted(self)
        if strategy not in ("mean", "sample"):
            raise ValueError(f"strategy must be 'mean' or 'sample'; got {strategy!r}.")
        n_steps = check_count(n_steps, "n_steps", 2)
        if isinstance(random_state, str) and random_state == "auto":
            random_state = 0 if strategy == "mean" else None
        rows = check_rows(self, X, reset=False, allow_nan=True)
        if not isinstance(rows.X, np.ndarray):
            raise TypeError(
                "impute needs a dense array: a sparse matrix has no missing values. "
                "Use X.toarray() and set the missing values to NaN."
            )
        missing = np.isnan(rows.X)
        rbm, seed = self._training_rbm(), draw_seed(random_state)
        values = rows.states(slice(None))
        few = few_missing.rows_with_few(self._units, missing, n_steps)
        # a copy: without a threshold the rows may be the caller's
        result = np.array(rows.take(slice(None), self.components_.dtype))
        rng = None
        if strategy == "sample":
            rng = generator(seed, Stream.MISSING_VALUES)
        filled = np.empty(values.shape, dtype=np.float32)
        draws = None if rng is None else rng.random(np.count_nonzero(few))
        filled[few] = few_missing.fill(rbm, values[few], missing[few], draws)
        if not few.all():
            others = values[~few], missing[~few]
            filled[~few] = self._filled(rbm, *others, n_steps, seed, rng)
        np.copyto(result, filled, where=missing, casting="same_kind")
        return result

    def _filled(self, rbm, values, missing, n_steps, seed, rng):
        """Rows with many missing values, by expectations; with ``rng`` by draws."""
        if listed_states.can_list(rbm):
            return listed_states.fill(listed_states.all_of(rbm), values, missing, rng)
        find = self._expectations if rng is None else self._draw_of_chains
        return find(values, missing, n_steps, seed)

    def _expectations(self, values, missing, n_steps, seed):
        """Expectations of all values, by the rows of data where they tell them.

        Chains tell those of other rows, and whether rows know where chains are.
        """
        rbm, held = self._rbm_of_others(), rbm_model.Clamp(~missing, values)
        chains = self._average_of_chains(rbm, held, n_steps, seed)
        means, log_masses = chains.means, chains.log_masses
        of_rows = derived_seed(seed, Stream.MISSING_VALUES, _CHAINS_PER_ROW)
        listed = listed_states.draws_of_rows(rbm, self._seen.states, of_rows)
        if listed is not None:
            found = listed_states.expectations(listed, values, missing, chains.ends)
            known = found.are_known
            means[known] = found.means[known]
            log_masses[known] = found.log_masses[known]
        if not len(self.lone_states_):
            return means
        shares = self._shares_given(held, log_masses)
        others = 1.0 - shares.sum(axis=1, keepdims=True)
        return others * means + shares @ self.lone_states_

    def _average_of_chains(self, rbm, held, n_steps, seed):
        """The `_Average` of several chains of each row."""
        n_chains = int(np.clip(n_steps // _LEAST_STEPS, 1, _CHAINS_PER_ROW))
        jump, total, ends, log_masses = self._jumps(rbm), 0.0, [], []
        for number in range(n_chains):
            of_chain = derived_seed(seed, Stream.MISSING_VALUES, number)
            arguments = held, n_steps // n_chains, of_chain
            means, states, masses = self._run_chains(rbm, jump, *arguments)
            total += means
            ends.append(states)
            log_masses.append(masses)
        log_masses = logsumexp(log_masses, axis=0) - np.log(n_chains)
        return _Average(total / np.float32(n_chains), log_masses, ends)

    def _draw_of_chains(self, values, missing, n_steps, seed):
        """A draw of all missing values of each row, by a chain of its own."""
        held, rbm = rbm_model.Clamp(~missing, values), self._rbm_of_others()
        arguments = held, n_steps, seed
        _, states, log_masses = self._run_chains(rbm, self._jumps(rbm), *arguments)
        if len(self.lone_states_):
            self._draw_lone_states(states, self._shares_given(held, log_masses), seed)
        return states

    def _run_chains(self, rbm, jump, held, n_steps, seed):
        """Of a chain of each row: means of its second half, last states, log masses."""
        chains, log_masses = self._annealed_chains(
            rbm, len(held.mask), n_steps // 2, held, seed
        )
        rest, total = n_steps - n_steps // 2, 0.0
        for n in _parts(rest):
            chains = jump(chains, held)
            part, chains = rbm_model.sum_visible(rbm, chains, n, held)
            total = total + part
        return total / np.float32(rest), chains.states, log_masses

    def _check_clamp(self, clamp, n_samples):
        check_container(clamp, "clamp")
        given = clamp
        try:
            clamp = check_array(given, input_name="clamp", **_NUMBERS_OR_NAN)
        except (TypeError, ValueError) as error:
            if "pandas.NA" in str(error):
                raise
            raise ValueError(
                "clamp must be an array of a number for each feature, NaN where it is "
                f"free; got {clamp!r}.{self._remedy_for_some_features(given)}"
            ) from error
        if clamp.shape not in [
            (self.n_features_in_,),
            (1, self.n_features_in_),
            (n_samples, self.n_features_in_),
        ]:
            raise ValueError(
                "clamp must hold a value or NaN for each feature, shape "
                f"({self.n_features_in_},) or ({n_samples}, {self.n_features_in_}); "
                f"got shape {clamp.shape}.{self._remedy_for_some_features(given)}"
            )
        self._check_clamp_names(given)
        if np.isinf(clamp).any():
            raise ValueError(
                "clamp must hold finite values, or NaN for features that are free; "
                "got infinity."
            )
        check_range(clamp, self.binarize, "clamp")
        held = ~np.isnan(clamp)
        values = Rows(np.atleast_2d(clamp), self.binarize).states(slice(None))
        self._units.check_states(values[np.broadcast_to(held, values.shape)], "clamp")
        return rbm_model.Clamp(np.atleast_2d(held), values)

    def _remedy_for_some_features(self, clamp):
        """How values by name become those of all features, as a sentence; or ""."""
        if not hasattr(self, "feature_names_in_"):
            return ""
        if isinstance(clamp, dict):
            clamp_by_name = "pd.Series(clamp)"
        elif hasattr(clamp, "reindex") and np.ndim(clamp) == 1:
            clamp_by_name = "clamp"
        else:
            return ""
        return (
            " To hold the features that it names and leave the others free, pass "
            f"{clamp_by_name}.reindex(rbm.feature_names_in_)."
        )

    def _check_clamp_names(self, clamp):
        """Refuse a frame, or a row of one, with other names than those of the fit."""
        if hasattr(clamp, "to_frame") and hasattr(clamp, "index"):
            clamp = clamp.to_frame().T
        if column_names(clamp) is None or not hasattr(self, "feature_names_in_"):
            return
        try:
            validate_data(self, clamp, reset=False, skip_check_array=True)
        except ValueError as error:
            raise ValueError(
                f"clamp: {str(error).strip()}\nSelect the features in the order of "
                "feature_names_in_, or pass an array."
            ) from error

    def _annealed_chains(self, rbm, n_chains, n_steps, held, seed):
        betas = np.linspace(0.0, 1.0, n_steps + 1)
        return annealing.annealed_chains(
            rbm, self.base_intercept_, betas, n_chains, seed, held
        )

    def _jumps(self, rbm):
        """A function by which chains may jump to the hidden states of training rows."""
        rows = self._seen.states
        if not rbm_model.is_standard(rbm) or not len(rbm.weights) or not len(rows):
            return lambda chains, held: chains
        transposed = by_feature(rbm.weights)
        return partial(_jump, rbm, transposed, product(rows, transposed))

    def _shares_of_lone_states(self):
        """Their probabilities (1, n_lone)."""
        known = self._log_probabilities_of_lone_states()
        return np.exp(known - self.log_partition_)[None]

    def _shares_given(self, held, log_masses):
        """Their conditional probabilities (n_rows, n_lone), where features are held.

        ``log_masses`` (n_rows,) are the logs of what all other states have there. What
        the others give to a lone state, too, is that of its neighbours.
        """
        states = self.lone_states_.astype(np.uint8)
        known = self._log_probabilities_of_lone_states()
        of_others = rbm_model.unnormalised_log_probability(
            self._rbm_of_others(), states
        )
        with np.errstate(divide="ignore"):
            own = known + np.log(-np.expm1(np.minimum(of_others - known, 0.0)))
        fits = (held.values[:, None] == states) | ~held.mask[:, None]
        own = np.where(fits.all(axis=2), own, -np.inf)
        own = np.broadcast_to(own, (len(log_masses), len(states)))
        return softmax(np.column_stack([own, log_masses]), axis=1)[:, :-1]

    def _draw_lone_states(self, V, shares, seed):
        """Put lone states among samples of the others, each by its probability."""
        place = generator(seed, Stream.LONE_STATES).random((len(V), 1))
        number = (place >= np.cumsum(shares, axis=1)).sum(axis=1)
        drawn = number < shares.shape[1]
        V[drawn] = self.lone_states_[number[drawn]]


def _mean_of_alike(held, log_masses):
    """The same for all rows in which the same values are held: log of their mean."""
    which = np.zeros(len(log_masses), dtype=np.int64)
    if len(held.mask) > 1:
        values = np.where(held.mask, held.values, -1.0)
        which = np.unique(values, axis=0, return_inverse=True)[1].ravel()
    counts = np.bincount(which)
    largest = np.full(len(counts), -np.inf)
    np.maximum.at(largest, which, log_masses)
    sums = np.bincount(which, np.exp(log_masses - largest[which]))
    return (largest + np.log(sums / counts))[which]


def _parts(n_steps):
    """Numbers of Gibbs steps behind each jump."""
    return [
        min(_STEPS_PER_JUMP, n_steps - k) for k in range(0, n_steps, _STEPS_PER_JUMP)
    ]


def _jump(rbm, transposed, x, chains, held):
    """`Chains` behind a jump; ``x`` are the inputs of hidden units at the rows."""
    states, seed = chains.states.copy(), int(chains.seed)
    n_blocks = -(-len(states) // _BLOCK)
    for k in range(n_blocks):
        part = slice(k * _BLOCK, (k + 1) * _BLOCK)
        clamp = None if held is None else rbm_model.part_of(held, part)
        number = chains.step * n_blocks + k
        states[part] = jumps.move_visible(
            rbm, transposed, x, states[part], seed, number, clamp
        )
    return chains._replace(states=states)
