"""The RBM of a given size: contrastive divergence, plain and persistent."""

from functools import partial
from numbers import Integral, Real

from .._fitting import FitInterrupted, restore_on_failure
from .._sklearn import HasMethods, Interval, StrOptions, fit_context
from .inference import RBM_CONSTRAINTS, BaseRBM
from .learning import contrastive
from .training import epochs
from .training.job import Callbacks, Start, open_job, open_partial_job
from .training.result import Seen, Training, model_attributes, store
from .training.start import start_model, start_training


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
        resumes = self.warm_start and hasattr(self, "components_")
        job = open_job(self, X, X_val, resumes)
        attributes = partial(model_attributes, Seen.of(job.train), job.dtype, job.seed)
        job = job._replace(callbacks=Callbacks(self, X, y, attributes))
        start, settings = self._start(job, resumes), epochs.settings_of(self)
        training = epochs.train(settings, job, start)
        store(self, training, attributes(epochs.model(settings, training)))
        if training.interrupted:
            raise FitInterrupted
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
        resumes = hasattr(self, "components_")
        job = open_partial_job(self, X, resumes)
        seen = self._seen.add(job.train) if resumes else Seen.of(job.train)
        start, settings = self._start(job, resumes), epochs.settings_of(self)
        state = contrastive.copy(start.make_state())
        state, _ = epochs.run_epoch(settings, job, state, start.n_iter)
        contrastive.settle(settings.update, state)
        training = Training(state, start.history, start.n_iter + 1)
        rbm = epochs.model(settings, training)
        store(self, training, model_attributes(seen, job.dtype, job.seed, rbm))
        return self

    def _start(self, job, resumes):
        """Where training begins: anew, or where an earlier fit has left it."""
        if not resumes:
            return Start(partial(self._first_state, job), {}, 0)
        return Start(partial(self._last_state, job), self.history_, self.n_iter_)

    def _first_state(self, job):
        rbm = start_model(self.init, self.n_components, job.train, job.seed)
        return start_training(rbm, job.train, self.batch_size, job.seed)

    def _last_state(self, job):
        """Of training here, or that of a model that came otherwise."""
        if self._training is not None:
            return self._training
        rbm = self._training_rbm()
        return start_training(rbm, job.train, self.batch_size, job.seed)
