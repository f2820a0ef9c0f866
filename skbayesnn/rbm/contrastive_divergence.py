"""The RBM of a given size: contrastive divergence, plain and persistent."""

import time
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array

from .._fitting import FitInterrupted, restore_on_failure
from .._persistence import Progress, open_checkpoint
from .._random import Stream, draw_seed, generator
from .._sklearn import HasMethods, Interval, StrOptions, fit_context, with_callbacks
from . import model as solver
from .inference import (
    RBM_CONSTRAINTS,
    BaseRBM,
    Job,
    Seen,
    append_record,
    format_duration,
    model_of_estimator,
    time_of_epochs,
)
from .learning import contrastive
from .training.rows import check_rows, result_dtype

# Training rows whose free energy is compared with that of the validation rows.
_MAX_MONITORED = 5000
# Rows from which the first offset of the hidden units is computed.
_MAX_OFFSET_ROWS = 200
_INITIAL_SCALE = 0.01


class ContrastiveDivergenceRBM(BaseRBM):
    r"""Binary restricted Boltzmann machine learned by contrastive divergence.

    The gradient of the mean log-likelihood by the weights is
    :math:`E_{data}[h v^T] - E_{model}[h v^T]` (4) [1]_. The second mean is taken over
    Markov chains: those of plain contrastive divergence start at the data in each step
    [2]_, those of the persistent variant are carried on [3]_. The gradient is centred
    [4]_, which makes it independent of which state is called 1.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units. Ignored with a given ``init``.
    learning_rate : float, default=0.2
        Step size at the start, per mean gradient.
    schedule : {"linear", "constant", "inverse"}, default="linear"
        Course of the step size: down to 0 at ``max_iter``; constant; or divided by
        1 + 10 t, with t from 0 to 1 over the fit.
    batch_size : int, default=100
        Rows of a mini-batch, and number of persistent chains.
    max_iter : int, default=50
        Epochs: passes over the data, newly shuffled each.
    n_gibbs_steps : int, default=1
        Steps of the chains for each update, the k of CD-k.
    persistent : bool, default=True
        Whether the chains are carried on.
    momentum : float, default=0.0
        Share of the last update that is added to the next, in [0, 1).
    weight_decay : float, default=0.0
        Strength of the penalty ``weight_decay / 2`` times the sum of squared weights
        on the mean log-likelihood.
    centered : bool, default=True
        Whether to centre the gradient.
    averaging : float, default=0.1
        Share of the updates so far, in [0, 1], over which the parameters are averaged:
        the fitted model is that average, training goes on from the last ones. 0 for
        the last ones.
    init : "random", tuple of arrays or RBM estimator, default="random"
        Where to start. "random": normal weights with a standard deviation of 0.01,
        visible biases at the base rates. Arrays: ``(components, intercept_hidden,
        intercept_visible)``. An estimator is cloned and fitted first (wrap one that is
        fitted already into :class:`~sklearn.frozen.FrozenEstimator`).
    binarize : float or None, default=0.5
        Threshold above which a value is 1. With None, values are probabilities.
    early_stopping : bool, default=False
        Whether to hold rows out, and stop when the gap between the average
        log-likelihoods of training rows and theirs has risen by more than ``max_gap``.
        The partition function cancels from it.
    validation_fraction : float, default=0.1
        Share of the rows to hold out, unless ``fit`` gets validation data.
    max_gap : float, default=10.0
        Largest rise of the gap above its lowest value, in nats a sample.
    checkpoint : str, path-like or None, default=None
        File for the state of training, which ``fit`` writes after an epoch, at most
        once a second. When a fit was killed, the same ``fit`` goes on from there, and
        ends with the same result, bit for bit; after the end it returns the model at
        once. A file of another fit (other parameters, data or version of this package)
        is refused. With a ``random_state`` that is no integer, the seed is that of the
        file. Each fit needs a file of its own. Not with ``warm_start``; ``partial_fit``
        leaves the file alone.
    warm_start : bool, default=False
        Go on from the previous fit for ``max_iter`` more epochs. A fit that Ctrl-C
        interrupts then keeps the last finished epoch.
    n_jobs : int or None, default=None
        Threads for large products, which change no result: None for 1 unless in a
        :obj:`joblib.parallel_config` context, -1 for all cores.
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights, the order of the data and the chains.
    verbose : bool or int, default=False
        Print a line an epoch, with the time that is left.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        Weights; float64 when X is float64, else float32. Training computes in float32.
    intercept_hidden_ : ndarray of shape (n_components_,)
        Biases of the hidden units.
    intercept_visible_ : ndarray of shape (n_features_in_,)
        Biases of the visible units.
    unit_weights_ : ndarray of shape (n_components_,)
        Multiplicities of the units: 1, unless ``init`` was fractional.
    base_intercept_ : ndarray of shape (n_features_in_,)
        Log-odds of the smoothed base rates of the training data, from which annealed
        importance sampling starts.
    log_partition_ : float
        Log partition function in nats, estimated when first asked for.
    n_components_ : int
        Number of units.
    n_iter_ : int
        Epochs done.
    history_ : dict of ndarray, one entry an epoch
        ``learning_rate`` at its end, ``seconds`` since the start, ``mean_error`` (mean
        squared difference between the mean visible states of data and chains), and
        with validation data ``gap`` (nats).
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when they are all strings.

    See Also
    --------
    FrankWolfeRBM : Finds the number of units by itself.
    sklearn.neural_network.BernoulliRBM : Persistent contrastive divergence.

    Notes
    -----
    The random number of a unit depends on the seed, the step, the row and the unit
    alone, and products with states are sums in a fixed order: the result is the same
    with any number of BLAS threads. With ``binarize=None`` and values between 0 and 1,
    products go through BLAS, which may round differently with another number of
    threads; a state then flips where its random number lies within the rounding error
    of its probability, and the chains go separate ways with the same distribution.

    ``fit`` supports scikit-learn's callbacks: ``set_callbacks(ProgressBar())`` of
    ``sklearn.callback`` shows a bar for the epochs, with the time that is left (it
    needs rich). Callbacks get ``X`` and ``y`` as ``fit`` got them, and the model after
    each epoch. One that asks to stop ends the fit, which then counts as finished.

    References
    ----------
    .. [1] W. Ping, Q. Liu, A. Ihler, "Learning Infinite RBMs with Frank-Wolfe", NIPS,
       2016.
    .. [2] G. Hinton, "Training products of experts by minimizing contrastive
       divergence", Neural Computation, 2002.
    .. [3] T. Tieleman, "Training restricted Boltzmann machines using approximations to
       the likelihood gradient", ICML, 2008.
    .. [4] J. Melchior, A. Fischer, L. Wiskott, "How to center deep Boltzmann
       machines", Journal of Machine Learning Research, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skbayesnn import ContrastiveDivergenceRBM
    >>> X = load_digits().data > 7
    >>> rbm = ContrastiveDivergenceRBM(32, max_iter=20, random_state=0).fit(X)
    >>> rbm.transform(X).shape
    (1797, 32)
    >>> bool(rbm.score(X) > -25.0)
    True
    """

    _parameter_constraints: dict = {
        **RBM_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "schedule": [StrOptions({"linear", "constant", "inverse"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_gibbs_steps": [Interval(Integral, 1, None, closed="left")],
        "persistent": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "centered": ["boolean"],
        "init": [StrOptions({"random"}), tuple, list, HasMethods("fit")],
    }

    def __init__(
        self,
        n_components=256,
        *,
        learning_rate=0.2,
        schedule="linear",
        batch_size=100,
        max_iter=50,
        n_gibbs_steps=1,
        persistent=True,
        momentum=0.0,
        weight_decay=0.0,
        centered=True,
        averaging=0.1,
        init="random",
        binarize=0.5,
        early_stopping=False,
        validation_fraction=0.1,
        max_gap=10.0,
        checkpoint=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=False,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_gibbs_steps = n_gibbs_steps
        self.persistent = persistent
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.centered = centered
        self.averaging = averaging
        self.init = init
        self.binarize = binarize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.max_gap = max_gap
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, X_val=None):
        """Learn from data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states: bool, integer or float, dense or CSR. Constant features
            are fine.
        y : None
            Ignored, but for callbacks.
        X_val : {array-like, sparse matrix} of shape (n_samples_val, n_features), \
                default=None
            Validation data for the gap in ``history_``, and for early stopping in
            place of held-out rows.

        Returns
        -------
        self : ContrastiveDivergenceRBM
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            stays as it was.

        Raises
        ------
        ValueError
            For parameters outside their range, for values that are not finite or, with
            ``binarize=None``, outside [0, 1], when the weights diverge, and for a
            checkpoint of another fit or a damaged one.
        OSError
            For a checkpoint that cannot be written.
        """
        goes_on = self.warm_start and hasattr(self, "components_")
        job = start_job(self, X, y, X_val, goes_on)
        if goes_on:
            start = partial(self._last_state, job.train)
        else:
            start = partial(self._first_state, job.train, job.seed)
            self.history_, self.n_iter_ = {}, 0
        self._train(job, start)
        return self

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X, y=None):
        """Go once through some rows, in mini-batches, at a constant learning rate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any number of visible states.
        y : None
            Ignored.

        Returns
        -------
        self : ContrastiveDivergenceRBM
            The estimator.
        """
        goes_on = hasattr(self, "components_")
        rows = check_rows(self, X, reset=not goes_on)
        if goes_on:
            seed, dtype, seen = self._seed, self.components_.dtype, self._seen
            state = contrastive.copy(self._last_state(rows))
        else:
            seed, dtype = draw_seed(self.random_state), result_dtype(rows.X)
            state = self._first_state(rows, seed)
            seen = Seen(np.zeros(rows.n_features), 0)
            self.history_, self.n_iter_ = {}, 0
        state, _ = self._epoch(rows, state, seed, self.n_iter_, lambda share: 1.0)
        contrastive.settle(self._settings(), state)
        self.n_iter_ += 1
        self._finish(state, seen.add(rows), dtype, seed)
        return self

    def _first_state(self, rows, seed):
        rbm = start_model(self.init, self.n_components, rows, seed)
        return start_training(rbm, rows, self.batch_size, seed)

    def _last_state(self, rows):
        """Where training was left, or a start from a model that came otherwise."""
        if self._training is not None:
            return self._training
        return start_training(self._training_rbm(), rows, self.batch_size, self._seed)

    @with_callbacks
    def _tune(self, rbm, chains, job):
        """Train a given model, for an estimator that has validated its data."""
        if job.validation is None:
            train, validation = split_validation(self, job.train, None, job.seed)
            job = job._replace(train=train, validation=validation)
        self.history_, self.n_iter_ = {}, 0
        self.n_features_in_ = job.train.n_features
        start = partial(
            start_training, rbm, job.train, self.batch_size, job.seed, chains
        )
        self._train(job, start, stage="fine_tune")

    def _train(self, job, start, stage="epochs"):
        """Epochs up to ``max_iter`` more, or to the largest gap; store the last."""
        monitored = monitored_rows(job.train, job.seed, _MAX_MONITORED)
        first, interrupted = self.n_iter_, False
        state, _, _, seconds, done = self._go_on(job, stage, start)
        state = last = contrastive.copy(state)
        began = time.perf_counter() - seconds
        n_left = 0 if done else first + self.max_iter - self.n_iter_
        fit_task = self._init_callback_context(max_subtasks=n_left)
        self._begin_task(fit_task, job)
        while not done:
            task = self._begin_task(fit_task.subcontext("epoch"), job)
            rate = partial(self._rate, self.n_iter_ - first)
            try:
                state, error = self._epoch(
                    job.train, state, job.seed, self.n_iter_, rate
                )
            except KeyboardInterrupt:
                if not (self.warm_start and self.n_iter_ > first):
                    raise
                interrupted = True
                break
            last = contrastive.copy(state) if self.warm_start else state
            record = {
                "learning_rate": self.learning_rate * rate(1.0),
                "mean_error": error,
                "seconds": time.perf_counter() - began,
            }
            rbm = contrastive.model(self._settings(), state)
            if job.validation is not None:
                record["gap"] = free_energy_gap(rbm, monitored, job.validation)
            self._record_epoch(record, first)
            done = self._end_task(task, job, rbm) or self._is_done(first)
            progress = Progress(
                state, self.history_, self.n_iter_, record["seconds"], done
            )
            job.checkpoint.save(stage, progress, finished=done)
        self._finish(last, Seen(job.train.mean(), len(job.train)), job.dtype, job.seed)
        if interrupted:
            raise FitInterrupted
        self._end_task(fit_task, job, contrastive.model(self._settings(), last))

    def _is_done(self, first):
        """Whether the last epoch was the last of this fit."""
        if self.n_iter_ == first + self.max_iter:
            return True
        return self.early_stopping and risen(self.history_["gap"], self.max_gap)

    def _rate(self, n_done, share):
        """Learning rate within an epoch, relative to that at the start of the fit."""
        return _decay(self.schedule, (n_done + share) / self.max_iter)

    def _record_epoch(self, record, first):
        """Enter it in ``history_``, and tell of it."""
        self.history_ = append_record(self.history_, record)
        self.n_iter_ += 1
        if not self.verbose:
            return
        n_done, last = self.n_iter_ - first, first + self.max_iter
        left = time_of_epochs(self.history_["seconds"][-n_done:], last - self.n_iter_)
        print(
            f"epoch {self.n_iter_} of {last}: {_format(record)}, "
            f"{format_duration(left)} left"
        )

    def _epoch(self, rows, state, seed, epoch, rate):
        """Mini-batches in a new order; ``rate(share)`` scales the learning rate."""
        settings = self._settings()
        # from the number of the epoch: a fit that goes on draws what a longer one does
        order = np.random.default_rng((seed, epoch)).permutation(len(rows))
        n_batches = -(-len(rows) // self.batch_size)
        error = 0.0
        with self._threads(limit_blas=self.binarize is not None):
            for number, index in enumerate(np.array_split(order, n_batches)):
                step_size = self.learning_rate * rate(number / n_batches)
                batch = rows.states(index)
                state, info = contrastive.step(settings, state, batch, step_size, seed)
                error += info.mean_error / n_batches
        try:
            contrastive.check(state)
        except contrastive.Diverged as diverged:
            raise divergence(diverged, self.learning_rate) from diverged
        return state, error

    def _settings(self):
        return contrastive.Settings(
            self.n_gibbs_steps,
            self.persistent,
            float(self.momentum),
            float(self.weight_decay),
            self.centered,
            float(self.averaging),
        )

    def _finish(self, state, seen, dtype, seed):
        rbm = contrastive.model(self._settings(), state)
        self._store(rbm, seen, dtype, seed)
        self._training = state


def start_model(init, n_components, rows, seed):
    """The RBM that training starts from."""
    if isinstance(init, str):
        rng = generator(seed, Stream.INITIAL_WEIGHTS)
        shape = n_components, rows.n_features
        weights = _INITIAL_SCALE * rng.standard_normal(shape, dtype=np.float32)
        base = solver.log_odds(rows.mean(), len(rows))
        return solver.make_rbm(weights, np.zeros(n_components), base)
    if isinstance(init, tuple | list):
        return _model_of_arrays(init, rows.n_features)
    return model_of_init(init, rows)


def model_of_init(init, rows):
    """The RBM in an estimator, ours or scikit-learn's, that is fitted here.

    A frozen one stays as it is.
    """
    # a frozen estimator is not fitted, and needs no float copy of all rows; it takes no
    # fit without y
    data = slice(1) if isinstance(init, FrozenEstimator) else slice(None)
    fitted = clone(init).fit(rows.take(data), None)
    # what a FrozenEstimator wraps
    rbm = model_of_estimator(getattr(fitted, "estimator", fitted), "init")
    _model_of_arrays(rbm[:3], rows.n_features)
    return rbm


def _model_of_arrays(arrays, n_features):
    if len(arrays) != 3:
        raise ValueError(
            "init must hold three arrays, (components, intercept_hidden, "
            f"intercept_visible); got {len(arrays)}."
        )
    weights = check_array(arrays[0], dtype=np.float64, input_name="init[0]")
    expected = [weights.shape[:1], (n_features,)]
    biases = [
        check_array(array, dtype=np.float64, ensure_2d=False, input_name="init")
        for array in arrays[1:]
    ]
    if weights.shape[1] != n_features or [b.shape for b in biases] != expected:
        raise ValueError(
            f"init must have the shapes (n_components, {n_features}), (n_components,) "
            f"and ({n_features},); got {weights.shape}, {biases[0].shape} and "
            f"{biases[1].shape}."
        )
    return solver.make_rbm(weights, *biases)


def start_training(rbm, rows, n_chains, seed, chains=None):
    """The state before the first step.

    The persistent chains start at rows of ``chains``, or of the data.
    """
    some = rows.states(slice(_MAX_OFFSET_ROWS))
    hidden_offset = solver.hidden_means(rbm, some).mean(axis=0)
    n_states = len(rows) if chains is None else len(chains)
    index = generator(seed, Stream.INITIAL_CHAINS).integers(n_states, size=n_chains)
    states = rows.states(index) if chains is None else chains[index]
    return contrastive.init(rbm, rows.mean(), hidden_offset, states, seed)


def start_job(estimator, X, y, X_val, goes_on):
    """Check the data of a fit, open its checkpoint, and hold rows out."""
    rows = check_rows(estimator, X, reset=not goes_on)
    given, X_given = None, None
    if X_val is not None:
        given = check_rows(estimator, X_val, reset=False)
        X_given = given.X
    seed = estimator._seed if goes_on else draw_seed(estimator.random_state)
    checkpoint = open_checkpoint(estimator, rows.X, X_given, seed)
    seed = checkpoint.seed
    train, validation = split_validation(estimator, rows, given, seed)
    dtype = estimator.components_.dtype if goes_on else result_dtype(rows.X)
    return Job(X, y, train, validation, dtype, seed, checkpoint)


def split_validation(estimator, rows, given, seed):
    """Training rows, and validation rows or None."""
    if given is not None:
        return rows, given
    if not estimator.early_stopping:
        return rows, None
    order = generator(seed, Stream.VALIDATION_ROWS).permutation(len(rows))
    n_validation = int(np.ceil(estimator.validation_fraction * len(rows)))
    if n_validation >= len(rows):
        raise ValueError(
            f"validation_fraction={estimator.validation_fraction} leaves no training "
            f"rows of n_samples={len(rows)}. Pass more rows, or early_stopping=False."
        )
    held_out, kept = order[:n_validation], order[n_validation:]
    return rows.subset(np.sort(kept)), rows.subset(np.sort(held_out))


def monitored_rows(train, seed, n_rows):
    """At most so many training rows, to compare the validation rows with."""
    if len(train) <= n_rows:
        return train
    order = generator(seed, Stream.MONITORED_ROWS).permutation(len(train))
    return train.subset(np.sort(order[:n_rows]))


def free_energy_gap(rbm, train, validation):
    """Mean log-likelihood of the training rows minus that of the validation rows."""
    return mean_log_probability(rbm, train) - mean_log_probability(rbm, validation)


def risen(gaps, limit):
    """Whether the last gap exceeds the smallest by more than the limit."""
    return bool(gaps[-1] - np.nanmin(gaps) > limit)


def mean_log_probability(rbm, rows):
    """Unnormalised, nats a sample."""
    total = sum(
        solver.unnormalised_log_probability(rbm, V).sum() for V in rows.blocks()
    )
    return float(total / len(rows))


def divergence(error, learning_rate):
    """What the user can do about a `contrastive.Diverged`."""
    return ValueError(
        f"The weights diverged (largest magnitude {error.args[0]:.3g}, expected at "
        f"most {contrastive.MAX_WEIGHT:.0f}). Reduce learning_rate={learning_rate}, "
        "momentum or the scale of init."
    )


def _decay(schedule, share):
    """Learning rate at a share of the fit, relative to that at its start."""
    if schedule == "linear":
        return 1.0 - share
    return 1.0 / (1.0 + 10.0 * share) if schedule == "inverse" else 1.0


def _format(record):
    return ", ".join(f"{name} {value:.4g}" for name, value in record.items())
