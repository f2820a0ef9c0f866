"""Log-likelihoods of a fitted RBM, and its partition function."""

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from .._random import Stream, derived_seed, draw_seed, generator
from .._sklearn import one_blas_thread
from .._validation import check_count, check_sample_weight
from .._warnings import warn_caller
from ..exceptions import MixingWarning
from .likelihood import adaptation, annealing, estimates, exact
from .likelihood.bound import log_partition_bound
from .likelihood.row_weights import followed_weights, log_row_weights
from .model import is_standard

# Enumerate rather than estimate up to so many units of the smaller side (0: a forest).
_ENUMERATED_UNITS = 20
# Chains of the estimates that `score` takes.
_N_CHAINS = 100
# Rows, and draws of their hidden states, of the estimate beside annealing.
_N_ROWS, _N_ROW_DRAWS = 2000, 4000
# Fewer rows of data may all lie in a part of the states that hardly counts.
_MIN_STARTS = 50

_BETTER_MIXING = (
    "with more Gibbs steps in training, smaller weights (regularisation, fewer "
    "updates) or fewer units."
)


_GREY = (
    "X holds values between 0 and 1, which binarize=None takes as probabilities: only "
    "binary rows have a likelihood. The scores are free energies at these values less "
    "the partition function, and cannot be compared with others. Score X > 0.5, or "
    "rows drawn by these probabilities."
)


class ScoringMixin:
    """Methods that need the partition function."""

    @property
    def log_partition_(self):
        """Log partition function in nats, computed once, when first asked for.

        Exact if a side has at most 20 units or the weights other than zero form a
        forest, else ``log_partition("both")`` with its defaults and random numbers that
        depend on ``random_state`` alone.

        Warns
        -----
        MixingWarning
            If the estimate is unreliable; see Warns of ``log_partition``.
        """
        check_is_fitted(self)
        # a dict set in fit: what a score looks up is no change of the estimator
        if "log_partition" not in self._estimates:
            self._estimates.update(self._first_estimate())
        return self._estimates["log_partition"]

    def __dir__(self):
        """Names of attributes, ``log_partition_`` once it has been computed.

        For the table of a notebook, and to complete a name, scikit-learn 1.9 gets the
        value of each.
        """
        is_open = "log_partition" not in vars(self).get("_estimates", ())
        names = set(object.__dir__(self)) - ({"log_partition_"} if is_open else set())
        return [name for name in names if hasattr(self, name)]

    def log_partition(
        self,
        method="ais",
        *,
        X=None,
        betas="auto",
        n_chains=100,
        n_jobs=None,
        random_state=0,
    ):
        """Estimate the log partition function.

        Parameters
        ----------
        method : {"ais", "reverse_ais", "both", "exact"}, default="ais"
            Annealed importance sampling [1]_ from independent units with the base rates
            of the training data; the same from the model back to them; both directions,
            combined by Bennett's acceptance ratio [2]_, which errs less than either; or
            exactly: by enumeration of the smaller side, of at most 25 units (the
            visible side, if units have weights other than 1), or unit by unit, if the
            weights other than zero join them without cycles. The expectation of "ais"
            lies below the true value, that of "reverse_ais" above it: where they agree,
            both are reliable.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows at which the chains of the reverse run start, best training data. By
            default they start at states that the forward run has led to the model,
            and so cannot reveal a mode that the forward run misses. A reverse estimate
            from ``X`` that is higher than the forward one reveals it; one that is
            lower shows that the rows are not distributed as the model is. The sum over
            the states in ``X`` is a lower bound: with "both", the result is not below.
            Their hidden states stand for those of the training rows, see Notes.
        betas : int, "auto", "paper" or array-like of shape (n_temperatures,), \
default="auto"
            Inverse temperatures from 0 to 1. With "auto", 201 uniformly spaced ones
            show where the weights vary; a second run has 801, placed so that they vary
            equally from one to the next. Runs of two to four times as many follow while
            the interval of "both" is wider than 1 nat, the directions differ (see
            Warns), or both lie above the estimate by rows (see Notes) by more than 0.1
            nats, but not by more than their error, up to 12,801 in each direction and
            50,000 in all. If a single direction then errs by more than half a nat
            (three standard errors of "ais"), four times as many chains follow along the
            last ones. An integer is a number of uniformly spaced ones; "paper"
            stands for the 14,500 of [1]_ and [3]_; an array holds the values
            themselves, not decreasing.
        n_chains : int, default=100
            Independent chains, at least 2, in each direction.
        n_jobs : int or None, default=None
            Blocks of at most 128 chains that run side by side (joblib; threads, unless
            a backend is chosen by ``joblib.parallel_config``). It does not change the
            result. None stands for the ``n_jobs`` of the estimator.
        random_state : int, RandomState instance or None, default=0
            Source of the chains' random numbers.

        Returns
        -------
        result : LogPartition or TwoWayLogPartition
            Named tuple of ``log_partition`` (nats), ``interval`` (three standard
            errors to both sides), ``log_weight_std`` (nats) and
            ``effective_sample_size`` (chains). If ``log_weight_std`` exceeds 2 or 3,
            the interval is too narrow: use more temperatures. With "both", the
            interval covers that of the forward run and the value of the reverse one as
            well, the last two fields are those of the worse direction, and three fields
            follow: the results ``forward`` and ``reverse``, and ``n_betas``, the number
            of temperatures. The last field, ``rows``, is the estimate by the hidden
            states of rows of data, see Notes; None for units with weights other than 1.

        Raises
        ------
        ValueError
            For an unknown method, fewer than two chains, temperatures that do not
            rise from 0 to 1, an enumeration of more than 25 units, ``X`` with a
            method that has no reverse run, or ``X`` with no rows but ``lone_states_``.

        Warns
        -----
        MixingWarning
            With "both", if the directions differ by more than 1 nat, or by more than
            0.1 nats and their intervals do not overlap; if the hidden states of rows
            say that both have missed more than 1 nat; or if the interval is wider than
            2 nats in all.

        Notes
        -----
        Annealing misses a mode of the model that only few chains reach, in both
        directions, however much of the mass it holds. Where it is a mode of the data,
        importance sampling finds it: with q(h) the mean of p(h | v) over (at most
        2,000) training rows v, which a fitted model keeps,

            Z = E_q[exp(b . h) prod_i (1 + exp(a_i + (h W)_i)) / q(h)].

        Where their error leaves open that annealing has missed half a nat, or where the
        interval of annealing is wider than 2 nats, 16 rounds follow in which q moves to
        the model: half of its rows are then draws of the round before, resampled by
        their weights, and 100 Gibbs steps later (population Monte Carlo [4]_). The
        second half of the rounds is the estimate, if its interval is shorter, or above
        the first value.

        "both" is this value where it is larger than that of annealing, by more than
        three standard errors or with a shorter interval. A smaller value counts for
        nothing: draws that are all far from a mode agree, and err. With many units, q
        is too narrow, and annealing is better.

        References
        ----------
        .. [1] R. Salakhutdinov, I. Murray, "On the quantitative analysis of deep
           belief networks", ICML, 2008.
        .. [2] C. H. Bennett, "Efficient estimation of free energy differences from
           Monte Carlo data", Journal of Computational Physics 22, 1976.
        .. [3] W. Ping, Q. Liu, A. Ihler, "Learning Infinite RBMs with Frank-Wolfe",
           NIPS, 2016.
        .. [4] O. Cappe, A. Guillin, J.-M. Marin, C. P. Robert, "Population Monte
           Carlo", Journal of Computational and Graphical Statistics 13, 2004.
        """
        check_is_fitted(self)
        rows = None if X is None else self._check_rows(X)
        _check_method(method, rows)
        starts = None if rows is None else self._reverse_starts(rows)
        if method == "exact":
            return _enumerate(self._training_rbm())
        betas = _check_betas(betas)
        n_chains = check_count(n_chains, "n_chains", 2)
        seed = draw_seed(random_state)
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        if method == "ais" and betas is not None:
            # nothing needs a run back
            return self._forward(betas, n_chains, seed, n_jobs)
        states = self._row_states(rows) if method == "both" else None
        pair, beside = self._estimate(betas, n_chains, seed, n_jobs, states)
        if starts is not None:
            pair = self._reverse_from(starts, pair, seed, n_jobs)
        result = self._combine(pair, beside)
        if method != "both":
            return result.forward if method == "ais" else result.reverse
        _compare(result, rows is not None)
        return result if rows is None else self._raise_to_bound(result, rows)

    def score_samples(self, X):
        """Compute the log-likelihood of each sample.

        If ``log_partition_`` is an estimate, the first call with at least 50 rows
        compares it with chains that start at rows of ``X``. The result does not depend
        on them: they only reveal whether the estimate misses modes in which the rows
        lie, so that it is too low and all likelihoods are too high.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,), float64
            Log probability of each sample, in nats, with ``log_partition_``.

        Raises
        ------
        ValueError
            As ``transform`` does.

        Warns
        -----
        MixingWarning
            When ``log_partition_`` is estimated, if its forward and reverse estimates
            differ by more than 1 nat, or by more than their intervals and 0.1 nats; or
            if the estimate from chains that start at rows of ``X`` is higher by more
            than 1 nat; if its interval is wider than 2 nats; or if the states in ``X``
            alone sum up to more than ``log_partition_``, by more than 1 nat. One
            warning for a fitted model.
        DataConversionWarning
            With ``binarize=None``, if ``X`` holds values between 0 and 1: only binary
            rows have a probability.
        """
        return self._score_rows(self._check_rows(X))

    def _score_rows(self, rows):
        if rows.hold_grey_values():
            warn_caller(_GREY, DataConversionWarning)
        log_partition = self.log_partition_
        log_probabilities = -self._free_energies(rows)
        if self._estimates.get("is_trusted"):
            bound = log_partition_bound(log_probabilities, rows.are_states)
            warned = _check_bound(bound, log_partition) or self._check_modes(rows)
            self._estimates["is_trusted"] = not warned
        return log_probabilities - log_partition

    def staged_score_samples(self, X):
        """Yield the log-likelihoods by the first unit, by the first two, and so on.

        Each is the score of ``truncate(k)``, with its own partition function, which is
        estimated unless k or the number of features is small: all of them may take
        longer than the fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Yields
        ------
        log_likelihood : ndarray of shape (n_samples,)
            By the first k units, in nats, k = 1 to ``n_components_``.

        Raises
        ------
        ValueError
            As ``transform`` does.
        """
        check_is_fitted(self)
        rows = self._check_rows(X)
        for k in range(1, self.n_components_ + 1):
            yield self.truncate(k)._score_rows(rows)

    def score(self, X, y=None, sample_weight=None):
        """Compute the mean log-likelihood.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the mean, in any unit.

        Returns
        -------
        score : float
            Mean of ``score_samples(X)``, in nats per sample.

        Raises
        ------
        ValueError
            As ``transform`` does; for weights that are negative, not finite or all
            zero, or not one for each row.

        Warns
        -----
        MixingWarning, DataConversionWarning
            As ``score_samples`` does.
        """
        rows = self._check_rows(X)
        weights = check_sample_weight(sample_weight, rows.X)
        return float(np.average(self._score_rows(rows), weights=weights))

    def _first_estimate(self):
        """What `log_partition_` and the check of its modes need."""
        rbm = self._training_rbm()
        if exact.size(rbm) <= _ENUMERATED_UNITS:
            return {"log_partition": _enumerate(rbm).log_partition}
        seed = draw_seed(self._seed)
        states = self._row_states()
        pair, beside = self._estimate(None, _N_CHAINS, seed, self.n_jobs, states)
        result = self._combine(pair, beside)
        found = {"log_partition": result.log_partition}
        if _compare(result):
            # known to be uncertain, it needs no further check
            return found
        return found | {"is_trusted": True, "unchecked": pair}

    def _check_modes(self, rows):
        """Warn if chains that start at data find modes that the estimate misses.

        Once, with rows enough that are no lone states; returns whether it warned.
        """
        if "unchecked" not in self._estimates:
            return False
        rows = self._without_lone_states(rows)
        if len(rows) < _MIN_STARTS:
            return False
        pair = self._estimates.pop("unchecked")
        pair = self._reverse_from(rows, pair, self._seed, self.n_jobs)
        result, value = self._combine(pair), self.log_partition_
        if result.log_partition <= value + estimates.MAX_DIFFERENCE:
            return False
        warn_caller(
            f"The log partition function is estimated as {value:.2f} nats, but "
            "chains that start at rows of X and move back to independent units "
            f"estimate {_text(result.reverse)}. Either the estimate misses modes "
            "of the model in which these rows lie, and log-likelihoods are too "
            "high, or the model gives these rows hardly any probability. Compare "
            "log_partition('both', X=X), whose interval covers both, or fit a "
            f"model that mixes better: {_BETTER_MIXING}",
            MixingWarning,
        )
        return True

    def _forward(self, betas, n_chains, seed, n_jobs):
        rbm, base = self._rbm_of_others(), self.base_intercept_
        with one_blas_thread():
            result = annealing.ais(rbm, base, betas, n_chains, seed, n_jobs)
        return self._with_lone_states(result)

    def _estimate(self, betas, n_chains, seed, n_jobs, states):
        """Runs in both directions, and beside them the estimate by rows, ``states``.

        Without lone states. The latter is None if there are no rows.
        """
        beside = None if states is None else self._by_rows(states)
        pair = self._both_directions(betas, n_chains, seed, n_jobs, beside)
        result = self._annealed(pair)
        if beside is not None:
            if estimates.leaves_open(result, beside):
                followed = self._by_rows(states, seed)
                beside = estimates.better_rows(beside, followed)
            result = estimates.with_rows(result, beside)
        is_by_annealing = beside is None or result.log_partition > beside.log_partition
        if betas is None and is_by_annealing and estimates.rests_on_few(result):
            rbm, base = self._rbm_of_others(), self.base_intercept_
            with one_blas_thread():
                pair = adaptation.run_more_chains(rbm, base, pair, seed, n_jobs)
        return pair, beside

    def _both_directions(self, betas, n_chains, seed, n_jobs, beside=None):
        """Runs along given temperatures, or adapted ones."""
        rbm, base = self._rbm_of_others(), self.base_intercept_
        if beside is not None:
            beside = estimates.shifted(beside, -annealing.base_log_partition(rbm, base))
        with one_blas_thread():
            if betas is None:
                return adaptation.run_adapted(rbm, base, n_chains, seed, n_jobs, beside)
            path = annealing.make_path(rbm, base, betas)
            return annealing.run_both(path, n_chains, seed, n_jobs)

    def _without_lone_states(self, rows):
        """The rows at which chains of the other states may start."""
        return rows.without(self.lone_states_) if len(self.lone_states_) else rows

    def _reverse_starts(self, rows):
        """The same of the ``X`` of a user, who needs some."""
        others = self._without_lone_states(rows)
        if not len(others):
            raise ValueError(
                "X needs rows at which a reverse run can start: each of its "
                f"{len(rows)} rows is one of the lone_states_, whose probabilities are "
                "known without chains. Add other rows, or leave X out."
            )
        return others

    def _reverse_from(self, rows, pair, seed, n_jobs):
        """The same runs, but with a reverse one that starts at rows of data.

        Without lone states.
        """
        n_chains = len(pair.forward)
        rng = generator(seed, Stream.REVERSE_STARTS)
        index = rng.choice(len(rows), n_chains, replace=len(rows) < n_chains)
        starts = rows.states(index)
        if starts.dtype != np.uint8:
            # probabilities
            starts = (rng.random(starts.shape) < starts).astype(np.uint8)
        path = annealing.make_path(
            self._rbm_of_others(), self.base_intercept_, pair.betas
        )
        seed = int(derived_seed(seed, Stream.REVERSE_STARTS))
        with one_blas_thread():
            back = annealing.run_back(path, starts, seed, n_jobs)
        return pair._replace(reverse=back.log_weights)

    def _raise_to_bound(self, result, rows):
        """The result, or the lower bound by rows of data if that is higher."""
        bound = log_partition_bound(-self._free_energies(rows), rows.are_states)
        _check_bound(bound, result.log_partition)
        low, high = result.interval
        return result._replace(
            log_partition=max(result.log_partition, bound),
            interval=(low, max(high, bound)),
        )

    def _combine(self, pair, beside=None):
        """Both directions of annealing, and the estimate by rows beside them."""
        result = self._annealed(pair)
        if beside is not None:
            result = estimates.with_rows(result, beside)
        return self._with_lone_states(result)

    def _annealed(self, pair):
        rbm = self._rbm_of_others()
        offset = annealing.base_log_partition(rbm, self.base_intercept_)
        return estimates.with_forward_error(estimates.combine(pair, offset))

    def _row_states(self, rows=None):
        """States of rows, or of those that the fit saw, whose hidden states are drawn.

        None if there are none, or the model is none of whose hidden states are.
        """
        rbm = self._rbm_of_others()
        states = self._seen.states if rows is None else rows.spread(_N_ROWS)
        has_draws = len(states) and len(rbm.weights) and is_standard(rbm)
        return states if has_draws else None

    def _by_rows(self, states, seed=None):
        """The estimate by the hidden states of rows.

        With a seed, by draws that follow the model from there.
        """
        rbm = self._rbm_of_others()
        with one_blas_thread():
            if seed is not None:
                followed = followed_weights(rbm, states, _N_ROW_DRAWS, seed)
                return estimates.summarise_rounds(followed)
            log_weights = log_row_weights(rbm, states, _N_ROW_DRAWS, self._seed)
        return estimates.summarise(log_weights, 0.0, 1.0)

    def _with_lone_states(self, result):
        """The estimate with the states that annealing misses, if there are any."""
        if not len(self.lone_states_):
            return result
        known = self._log_probabilities_of_lone_states()
        return estimates.with_known(result, logsumexp(known))


def _check_bound(bound, log_partition):
    """Warn if the states in data alone sum up to more; returns whether it warned."""
    if bound <= log_partition + estimates.MAX_DIFFERENCE:
        return False
    warn_caller(
        f"The log partition function is estimated as {log_partition:.2f} nats, but "
        f"the states in X alone sum up to {bound:.2f}: annealing has missed likely "
        "states of the model, and log-likelihoods are too high by the difference or "
        "more. The result of log_partition('both', X=X) is not below this bound. Fit "
        f"a model that mixes better: {_BETTER_MIXING}",
        MixingWarning,
    )
    return True


def _compare(result, from_rows=False):
    """Warn if the directions differ; returns whether they do."""
    if estimates.misses_rows(result):
        _warn_of_rows(result)
        return True
    if not estimates.differ(result):
        return _warn_if_wide(result)
    ahead, back = result.forward, result.reverse
    if from_rows and back.log_partition < ahead.log_partition:
        advice = "The rows of X are not distributed as the model is."
    else:
        advice = (
            "The chains do not reach all modes of the model in proportion to their "
            "probabilities, and likelihoods are as uncertain as that. Pass more "
            "temperatures (betas) to log_partition, or fit a model that mixes better: "
            + _BETTER_MIXING
        )
    warn_caller(
        "Annealed importance sampling estimates the log partition function as "
        f"{_text(ahead)} on the way to the model and as {_text(back)} on the way back, "
        f"with {result.n_betas} temperatures; both together as "
        f"{result.log_partition:.2f}. {advice}",
        MixingWarning,
    )
    return True


def _warn_of_rows(result):
    annealed = max(result.forward.log_partition, result.reverse.log_partition)
    warn_caller(
        "Annealed importance sampling estimates the log partition function as at most "
        f"{annealed:.2f} nats, but the hidden states of rows of data as "
        f"{_text(result.rows)}: the model prefers some rows, to which annealing does "
        "not come. The result is the larger value. Fit a model that mixes better: "
        + _BETTER_MIXING,
        MixingWarning,
    )


def _warn_if_wide(result):
    """Warn of an interval that tells little; returns whether it did."""
    if not estimates.is_wide(result):
        return False
    low, high = result.interval
    n_effective = result.forward.effective_sample_size
    warn_caller(
        f"The log partition function is estimated as {result.log_partition:.2f} nats, "
        f"but may lie anywhere from {low:.2f} to {high:.2f}: the forward chains of "
        f"annealing count as {n_effective:.0f}, and likelihoods are as uncertain as "
        "the interval. Pass more chains (n_chains) and temperatures (betas) to "
        "log_partition('both'), or fit a model that mixes better: " + _BETTER_MIXING,
        MixingWarning,
    )
    return True


def _text(estimate):
    value = estimate.log_partition
    return f"{value:.2f} +/- {estimate.interval[1] - value:.2f} nats"


def _enumerate(rbm):
    size = exact.size(rbm)
    if size > exact.MAX_UNITS:
        raise ValueError(
            f"method='exact' sums over the states of {size} units, expected at most "
            f"{exact.MAX_UNITS}. Use method='both'."
        )
    with one_blas_thread():
        value = exact.log_partition(rbm)
    return estimates.LogPartition(value, (value, value), 0.0, np.inf)


def _check_method(method, rows):
    if method not in ("ais", "reverse_ais", "both", "exact"):
        raise ValueError(
            f"method must be 'ais', 'reverse_ais', 'both' or 'exact'; got {method!r}."
        )
    if rows is not None and method in ("ais", "exact"):
        raise ValueError(
            f"X is where a reverse run starts, and method={method!r} has none. Use "
            "method='both'."
        )


def _check_betas(betas):
    """The temperatures, or None for "auto"."""
    if isinstance(betas, str) and betas == "auto":
        return None
    if isinstance(betas, str) and betas != "paper":
        raise ValueError(
            "betas must be 'auto', 'paper', a number of temperatures or an array; got "
            f"{betas!r}."
        )
    if not isinstance(betas, str) and np.ndim(betas) == 0:
        betas = check_count(betas, "betas", 2)
    betas = annealing.make_betas(betas)
    rising = betas.ndim == 1 and len(betas) > 1 and (np.diff(betas) >= 0).all()
    if not rising or betas[0] != 0.0 or betas[-1] != 1.0:
        raise ValueError(
            "betas must be inverse temperatures that rise from 0 to 1, or their "
            f"number; got {betas!r}."
        )
    return betas
