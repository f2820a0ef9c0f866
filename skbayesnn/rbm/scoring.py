"""Log-likelihoods of a fitted RBM, and its partition function."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._random import draw_seed
from .._sklearn import one_blas_thread
from .._validation import check_count
from .likelihood import annealing, exact

# Enumerate rather than estimate up to so many units of the smaller side.
_ENUMERATED_UNITS = 14


class ScoringMixin:
    """Methods that need the partition function."""

    @property
    def log_partition_(self):
        """Log partition function in nats, estimated once, when first asked for.

        Enumerated if a side has at most 14 units, else annealed importance sampling
        with the defaults of ``log_partition`` and random numbers that depend on
        ``random_state`` alone.
        """
        check_is_fitted(self)
        if not self._estimates:
            rbm = self._training_rbm()
            few = exact.size(rbm) <= _ENUMERATED_UNITS
            # a dict set in fit: what a score looks up is no change of the estimator
            self._estimates["log_partition"] = self.log_partition(
                "exact" if few else "ais", random_state=self._seed
            ).log_partition
        return self._estimates["log_partition"]

    def log_partition(
        self,
        method="ais",
        *,
        betas=2000,
        n_chains=100,
        n_jobs=None,
        random_state=0,
    ):
        """Estimate the log partition function.

        Parameters
        ----------
        method : {"ais", "reverse_ais", "exact"}, default="ais"
            Annealed importance sampling [1]_ from independent units with the base
            rates of the training data; the same from the model back to them, starting
            at states that a forward run has led to the model; or enumeration of the
            smaller side, of at most 25 units (the visible side, if units have weights
            other than 1). The expectation of "ais" lies below the true value, that of
            "reverse_ais" above it: where they agree, both are reliable.
        betas : int, "paper" or array-like of shape (n_temperatures,), default=2000
            Inverse temperatures from 0 to 1: their number, uniformly spaced; "paper",
            the 14,500 of [1]_ and [2]_; or the values themselves, not decreasing.
        n_chains : int, default=100
            Independent chains.
        n_jobs : int or None, default=None
            Blocks of 50 chains that run side by side (joblib; threads, unless a
            backend is chosen by ``joblib.parallel_config``). It does not change the
            result.
        random_state : int, RandomState instance or None, default=0
            Source of the chains' random numbers.

        Returns
        -------
        result : LogPartition
            Named tuple of ``log_partition`` (nats), ``interval`` (three standard
            errors of the mean weight to both sides), ``log_weight_std`` (nats) and
            ``effective_sample_size`` (chains). If ``log_weight_std`` exceeds 2 or 3,
            the interval is too narrow: use more temperatures.

        Raises
        ------
        ValueError
            For an unknown method, fewer than two chains, temperatures that do not
            rise from 0 to 1, or an enumeration of more than 25 units.

        References
        ----------
        .. [1] R. Salakhutdinov, I. Murray, "On the quantitative analysis of deep
           belief networks", ICML, 2008.
        .. [2] W. Ping, Q. Liu, A. Ihler, "Learning Infinite RBMs with Frank-Wolfe",
           NIPS, 2016.
        """
        check_is_fitted(self)
        rbm = self._training_rbm()
        if method == "exact":
            return _enumerate(rbm)
        if method not in ("ais", "reverse_ais"):
            raise ValueError(
                f"method must be 'ais', 'reverse_ais' or 'exact'; got {method!r}."
            )
        betas = _check_betas(betas)
        n_chains = check_count(n_chains, "n_chains", 2)
        with one_blas_thread():
            return annealing.ais(
                rbm,
                self.base_intercept_,
                betas,
                n_chains,
                draw_seed(random_state),
                n_jobs,
                reverse=method == "reverse_ais",
            )

    def score_samples(self, X):
        """Compute the log-likelihood of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,), float64
            Log probability of each sample, in nats, with ``log_partition_``.
        """
        return -self.free_energy(X) - self.log_partition_

    def staged_score_samples(self, X):
        """Yield the log-likelihoods by the first unit, by the first two, and so on.

        Each is the score of ``truncate(k)``, with its own partition function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Yields
        ------
        log_likelihood : ndarray of shape (n_samples,)
            By the first k units, in nats, k = 1 to ``n_components_``.
        """
        check_is_fitted(self)
        for k in range(1, self.n_components_ + 1):
            yield self.truncate(k).score_samples(X)

    def score(self, X, y=None):
        """Compute the mean log-likelihood.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of ``score_samples(X)``, in nats per sample.
        """
        return float(self.score_samples(X).mean())


def _enumerate(rbm):
    size = exact.size(rbm)
    if size > exact.MAX_UNITS:
        raise ValueError(
            f"method='exact' sums over the states of {size} units, expected at most "
            f"{exact.MAX_UNITS}. Use method='ais'."
        )
    value = exact.log_partition(rbm)
    return annealing.LogPartition(value, (value, value), 0.0, np.inf)


def _check_betas(betas):
    if isinstance(betas, str) and betas != "paper":
        raise ValueError(f"betas must be a number, an array or 'paper'; got {betas!r}.")
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
