"""The RBM of a given size: contrastive divergence, plain and persistent."""

from functools import partial
from numbers import Integral, Real

from .._docstrings import shared_parameters
from .._fitting import FitInterrupted, restore_on_failure
from .._saved_state import public
from .._sklearn import HasMethods, Interval, StrOptions, fit_context
from .inference import NOT_NEGATIVE, POSITIVE, RBM_CONSTRAINTS, BaseRBM
from .learning import contrastive
from .rbm_texts import TEXTS
from .training import automatic, automatic_settings, epochs, lone_states
from .training.candidate_trainings import Candidate
from .training.failure import warn_if_worse
from .training.job import ModelCallbacks, Start, open_job, open_partial_job
from .training.outcome import Seen, model_attributes, store
from .training.start import start_model, start_training
from .training.training_result import Result, Training


@public
@shared_parameters(TEXTS)
class ContrastiveDivergenceRBM(BaseRBM):
    r"""Binary restricted Boltzmann machine trained by contrastive divergence.

    The gradient of the mean log-likelihood with respect to the weights is
    :math:`E_{data}[h v^T] - E_{model}[h v^T]` (4) [1]_. The second expectation is
    estimated by Markov chains. In plain contrastive divergence they start at the data
    in each step [2]_, in the persistent variant they continue from step to step [3]_.
    The gradient is centred [4]_, which makes it independent of which state is called 1.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units. Ignored if ``init`` is given.
    learning_rate : "auto" or float, default="auto"
        Step size at the start, per mean gradient. "auto" is 0.2, or with
        ``max_iter="auto"`` 0.03 / (p (1 - p)) where features are rare, so that this is
        larger; p (1 - p) is a mean of the features' variances, weighted by them. With
        ``max_iter="auto"``, the step size falls as one over the root of the number of
        updates after the first 2000, falls to 0 in the end, and is halved when the
        chains do not follow. With "auto", each update is also limited, so that it
        changes the log probability of data and chains by at most 1 nat (standard
        deviation), or 1.5 % of its spread over the rows under independent features.
    max_iter : "auto" or int, default="auto"
        Number of epochs: passes over the data, newly shuffled each. With "auto",
        training goes in rounds of updates, and ends when rows that it has not seen
        (``X_val`` or rows that are held out) gain no more; see Notes.
    {{early_stopping}}
    {{binarize}}
    {{n_jobs}}
    {{random_state}}
    verbose : bool or int, default=False
        Whether to print one line per epoch, with the remaining time; with
        ``max_iter="auto"``, one line per round, and in the end what was chosen.

    Other Parameters
    ----------------
    schedule : {"linear", "constant", "inverse"}, default="linear"
        Course of the step size with a number of epochs: linearly down to 0 at
        ``max_iter``; constant; or divided by 1 + 10 t, with t from 0 to 1 over the fit.
    {{batch_size}}
    n_gibbs_steps : "auto" or int, default="auto"
        Steps of the chains per update, the k of CD-k. "auto" is 1 with a number of
        epochs. Else chains that mix too slowly get 10 temperatures, with one step each.
        Where chains start at the data (``persistent=False``), or the model is
        fractional, they get 10 steps instead. A number means that many steps
        throughout, at one temperature.
    persistent : bool, default=True
        Whether the chains continue from one update to the next.
    momentum : float, default=0.0
        Fraction of the last update that is added to the next, in [0, 1).
    weight_decay : "auto" or float, default="auto"
        Strength of the penalty ``weight_decay / 2`` times the sum of squared weights
        on the mean log-likelihood. "auto" is 0 with a number of epochs; else 0 until
        the model overfits, and then increased until the validation rows gain no more.
    centered : bool, default=True
        Whether to centre the gradient. It is better for the likelihood. Without it,
        fewer units are on at a time, which is better for a linear classifier of the
        features.
    averaging : float, default=0.1
        {{averaging}}
    init : "random", tuple of arrays or RBM estimator, default="random"
        Initial model. "random": normal weights with a standard deviation of
        0.01, visible biases at the base rates; with ``max_iter="auto"``,
        training begins again from larger weights if it ends without a gain, has
        not left these after 5000 updates, or needs no chains. Arrays:
        ``(components, intercept_hidden, intercept_visible)``. An estimator is cloned
        and fitted first; wrap one that is already fitted into
        :class:`~sklearn.frozen.FrozenEstimator`.
    max_updates : int, default=30000
        Largest number of updates with ``max_iter="auto"``, without the last ones in
        which the step size falls to 0.
    refit : bool, default=True
        Whether to train on all rows in the end, by the updates that were best, if
        ``max_iter="auto"`` and rows were held out.
    {{validation_fraction}}
    max_gap : float, default=10.0
        {{max_gap}}
    {{checkpoint}}
    max_time : float or None, default=None
        Seconds that a fit with ``max_iter="auto"`` may take.
        {{max_time}}
    warm_start : bool, default=False
        Whether to continue from the previous fit, with its units whatever
        ``n_components`` is now, for ``max_iter`` more epochs, or, with "auto", until
        the validation rows gain no more; that is not repeated on all rows. A fit that
        is interrupted by Ctrl-C then keeps the last finished epoch, or the model of the
        best round.

    Attributes
    ----------
    {{components_}}
    {{intercept_hidden_}}
    {{intercept_visible_}}
    unit_weights_ : ndarray of shape (n_components_,)
        Weights of the hidden units: 1, unless ``init`` was fractional.
    {{base_intercept_}}
    {{lone_states_}}
    {{log_partition_}}
    {{n_components_}}
    n_iter_ : int
        Number of epochs, or of rounds with ``max_iter="auto"``.
    n_updates_, n_gibbs_steps_ : int
        Number of updates of the last fit that led to the model, and the Gibbs steps of
        the last ones.
    n_replicas_ : int
        Number of temperatures of the chains in the last updates: 1, or with
        ``max_iter="auto"`` 10 if the chains mixed too slowly.
    weight_decay_ : float
        The weight decay of the last updates.
    history_ : dict of ndarray, one entry per epoch or round
        ``learning_rate`` at its end, ``seconds`` since the start, ``mean_error`` (mean
        squared difference between the mean visible states of data and chains), and,
        of epochs with validation data, ``gap`` (nats). Of rounds, in which
        ``learning_rate`` is the mean (NaN without chains): ``n_updates`` on the path to
        this model, ``n_gibbs_steps``, ``n_replicas``, ``weight_decay``,
        ``log_likelihood`` of training rows and ``validation_log_likelihood`` (nats per
        sample, estimated), ``log_partition_error`` (standard error of both, nats), and
        ``correlation`` of the chains' states with those after as many steps as a fifth
        of the round has updates, 20 to 100 (NaN if they have several temperatures or
        steps; left out without chains).
        A smaller ``n_updates`` than in the round before shows that training returned
        to the best model.
    {{n_features_in_}}
    {{feature_names_in_}}

    See Also
    --------
    FrankWolfeRBM : Finds the number of units itself.
    sklearn.neural_network.BernoulliRBM : Persistent contrastive divergence.

    Notes
    -----
    The random number of a unit depends only on the seed, the step, the row and the
    unit, and products with states are sums in a fixed order: the result is the same
    regardless of the number of BLAS threads. With ``binarize=None`` and values between
    0 and 1, products go through BLAS, which may round differently with another number
    of threads. A state then flips if its random number lies within the rounding error
    of its probability, and the chains separate, with the same distribution.

    With ``max_iter="auto"``, updates go in rounds, each a third of all before and at
    most 2000. After each, log-likelihoods are estimated by a short annealed importance
    sampling and by states of the chains before and after the round, which tell what it
    has gained [5]_ (exactly up to 16 units or features). While the validation rows
    gain, training continues. With ``learning_rate="auto"``, updates follow the natural
    gradient of the hidden units [8]_, and with ``n_gibbs_steps="auto"``, too,
    persistent chains jump between modes by Metropolis steps of their hidden states. If
    the chains remember their states after as many steps as a fifth of a round has
    updates (20 to 100), they get several temperatures [6]_ [7]_. After two rounds with
    a loss, training returns to the best model: with several temperatures, or half of
    the step size if there are some or chains forget their states, if the training rows
    lost as well; with a larger weight decay if they did not, or if the later half of
    four or more rounds with one gained next to nothing. A decay that both lose by is
    weakened. Behind 2000 updates, the step size falls with the root of their number. It
    ends when four times the updates gain next to nothing, less than 0.4 % of what all
    have gained, when two changes in a row gained no more than that (three at the
    beginning), or at ``max_updates``. From the best model, the step size then falls to
    0, over 30 % more updates.

    The model is the best one by annealing in both directions and by the hidden states
    of rows (see `log_partition`); if these differ by more than 1 nat, a `MixingWarning`
    says so. If rows were held out, the updates that led to it are repeated on all rows
    (``refit``); the result is kept unless the rows that were held out became clearly
    less likely by it. Last, the visible biases are shifted along leading principal
    components, where the model makes its modes more or less likely than the rows ask
    for by more than chance. A model below independent features is never returned: the
    weights
    are 0 then, with a `MixingWarning`, or a ConvergenceWarning where nothing was there
    to be learned. ``schedule``, ``early_stopping`` and ``max_gap``
    are for a number of epochs.

    Rows of 0 and 1 with up to 12 features need no chains: with ``max_iter="auto"``,
    "auto" for ``learning_rate`` and ``n_gibbs_steps``, and ``persistent=True``, all
    states of the features are listed, and L-BFGS follows the gradient of the likelihood
    itself. A step counts as 20 updates; ``batch_size``, ``momentum``, ``centered`` and
    ``averaging`` have no effect. Training also begins from larger weights, and the
    better end counts. Against independent features, the model has to gain more on the
    validation rows than one standard error.

    ``fit`` supports scikit-learn's callbacks: ``set_callbacks(ProgressBar())`` of
    ``sklearn.callback`` shows a bar for the epochs, with the remaining time (it needs
    rich). Callbacks get ``X`` and ``y`` as ``fit`` got them, and the model after each
    epoch or the best one so far after each round. If one asks to stop, the fit ends
    and counts as finished.

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
    .. [5] G. Desjardins, A. Courville, Y. Bengio, "On tracking the partition
       function", NIPS, 2011.
    .. [6] G. Desjardins, A. Courville, Y. Bengio, P. Vincent, O. Delalleau, "Tempered
       Markov chain Monte Carlo for training of restricted Boltzmann machines",
       AISTATS, 2010.
    .. [7] K. Cho, T. Raiko, A. Ilin, "Parallel tempering is efficient for learning
       restricted Boltzmann machines", IJCNN, 2010.
    .. [8] R. Grosse, R. Salakhutdinov, "Scaling up natural gradient by sparsely
       factorizing the inverse Fisher matrix", ICML, 2015.

    Examples
    --------
    With a number of epochs, a fit takes a time that is known:

    >>> from sklearn.datasets import load_digits
    >>> from skbayesnn import ContrastiveDivergenceRBM
    >>> X = load_digits().data > 7
    >>> rbm = ContrastiveDivergenceRBM(32, max_iter=20, random_state=0).fit(X)
    >>> rbm.transform(X).shape
    (1797, 32)
    >>> bool(rbm.score(X) > -25.0)
    True

    By default, training decides for itself when to end, here after 500 updates and the
    last ones with a falling step size at the latest:

    >>> rbm = ContrastiveDivergenceRBM(32, max_updates=500, random_state=0).fit(X)
    >>> len(rbm.history_["validation_log_likelihood"]) == rbm.n_iter_
    True
    >>> rbm.n_updates_ <= 650
    True
    """

    _trains_like_bernoulli_rbm = True
    _parameter_constraints: dict = {
        **RBM_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "schedule": [StrOptions({"linear", "constant", "inverse"})],
        "learning_rate": [StrOptions({"auto"}), POSITIVE],
        "max_iter": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "n_gibbs_steps": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "max_updates": [Interval(Integral, 1, None, closed="left")],
        "refit": ["boolean"],
        "persistent": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [StrOptions({"auto"}), NOT_NEGATIVE],
        "centered": ["boolean"],
        "init": [StrOptions({"random"}), tuple, list, HasMethods("fit")],
    }

    def __init__(
        self,
        n_components=256,
        *,
        learning_rate="auto",
        max_iter="auto",
        early_stopping=False,
        binarize=0.5,
        n_jobs=None,
        random_state=None,
        verbose=False,
        schedule="linear",
        batch_size=100,
        n_gibbs_steps="auto",
        persistent=True,
        momentum=0.0,
        weight_decay="auto",
        centered=True,
        averaging=0.1,
        init="random",
        max_updates=30000,
        refit=True,
        validation_fraction=0.1,
        max_gap=10.0,
        checkpoint=None,
        max_time=None,
        warm_start=False,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.schedule = schedule
        self.batch_size = batch_size
        self.n_gibbs_steps = n_gibbs_steps
        self.persistent = persistent
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.centered = centered
        self.averaging = averaging
        self.init = init
        self.max_updates = max_updates
        self.refit = refit
        self.validation_fraction = validation_fraction
        self.max_gap = max_gap
        self.checkpoint = checkpoint
        self.max_time = max_time
        self.warm_start = warm_start

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=False)
    @shared_parameters(TEXTS)
    def fit(self, X, y=None, sample_weight=None, *, X_val=None):
        """Train a model.

        Parameters
        ----------
        {{X_fit}}
        {{y}}
        {{sample_weight}}
        {{X_val}}

        Returns
        -------
        self : ContrastiveDivergenceRBM
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            is kept as it was.

        Raises
        ------
        {{raises}}
        """
        resumes = self.warm_start and hasattr(self, "components_")
        check_max_time(self)
        holds_out = self.max_iter == "auto" or self.early_stopping
        job = open_job(self, X, y, X_val, resumes, holds_out, sample_weight)
        with job.checkpoint:
            self._fit(X, y, job, resumes)
        return self

    def _fit(self, X, y, job, resumes):
        """The fit after the checks of its data."""
        lone, automatic_end = lone_states.none(job.train), self.max_iter == "auto"
        if automatic_end:
            job, lone = lone_states.set_aside(job, self.verbose)
        seen = Seen.by_fit(job, automatic_end and self.refit)
        attributes = partial(model_attributes, seen, job.dtype, job.seed)
        job = job._replace(callbacks=ModelCallbacks(self, X, y, attributes))
        start = partial(self._start, resumes=resumes)
        train = train_epochs
        if automatic_end:
            begins_anew = not resumes and isinstance(self.init, str)
            train = partial(train_rounds, retries=begins_anew)
        result, rbm = train(self, job, start)
        training, rbm, given = lone_states.finish(
            result.training, rbm, lone, job, self.n_jobs
        )
        store(self, training, attributes(rbm, lone_states=given) | result.decisions)
        if result.training.interrupted:
            raise FitInterrupted
        result.warn()
        if not automatic_end:
            warn_if_worse(rbm, job.train, job.seed)

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=False)
    @shared_parameters(TEXTS)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Run one epoch over some rows, at a constant learning rate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any number of visible states.
        y : None
            Ignored.
        {{sample_weight}}

        Returns
        -------
        self : ContrastiveDivergenceRBM
            The estimator.

        Raises
        ------
        ValueError
            As ``fit``, and where the model has ``lone_states_``, which no chain finds.
        """
        resumes = hasattr(self, "components_")
        job = open_partial_job(self, X, resumes, sample_weight)
        seen = self._seen.add(job.train) if resumes else Seen.of(job.train)
        start, settings = self._start(job, resumes), epochs.settings_of(self)
        state = contrastive.copy(start.make_state())
        state, _ = epochs.run_epoch(settings, job, state, start.n_iter)
        contrastive.settle(settings.update, state)
        training = Training(state, start.history, start.n_iter + 1)
        rbm = epochs.model(settings, training)
        attributes = model_attributes(seen, job.dtype, job.seed, rbm)
        attributes |= epochs.decisions(settings, training)
        store(self, training, attributes, continues=True)
        return self

    def _fitted_attributes(self, seen, dtype, seed, rbm, lone_states=()):
        # as scikit-learn trains, if it was not trained here
        trained = {"n_updates_": 0, "n_gibbs_steps_": 1, "n_replicas_": 1}
        trained["weight_decay_"] = 0.0
        own = super()._fitted_attributes(seen, dtype, seed, rbm, lone_states)
        return trained | own

    def _start(self, job, resumes):
        """Where training begins: anew, or where an earlier fit has left it."""
        if not resumes:
            return Start(partial(self._first_state, job), {}, 0)
        return Start(partial(self._last_state, job), self.history_, self.n_iter_)

    def _first_state(self, job):
        rbm = start_model(self.init, self.n_components, job.train, job.seed)
        return start_training(rbm, job.train, self.batch_size, job.seed)

    def _last_state(self, job):
        """Of training here, or that of a model that came otherwise.

        Without the units of lone states, whose weights no training gives.
        """
        if self._training is not None:
            n_rows = len(job.train)
            return contrastive.with_chains(self._training, self.batch_size, n_rows)
        rbm = self._rbm_of_others()
        return start_training(rbm, job.train, self.batch_size, job.seed)


def check_max_time(estimator):
    """Refuse a time for a number of epochs, which take as long as they do."""
    if estimator.max_time is not None and estimator.max_iter != "auto":
        raise ValueError(
            "max_time is for max_iter='auto', where training decides how long it goes "
            f"on; got max_time={estimator.max_time!r} and max_iter="
            f"{estimator.max_iter!r}. Set one of them only."
        )


def train_epochs(estimator, job, make_start, stage="epochs"):
    """Run a given number of epochs; returns the `Result`, and its model."""
    settings = epochs.settings_of(estimator)
    training = epochs.train(settings, job, make_start(job), stage)
    result = Result(training, None, epochs.decisions(settings, training))
    return result, epochs.model(settings, training)


def train_rounds(estimator, job, make_start, stage="training", retries=False):
    """The same with rounds that decide for themselves."""
    settings = automatic_settings.settings_of(estimator, job.train)
    task = job.callbacks.begin_fit(None)
    # a fit that is continued has seen the rows that it would be repeated on
    refit = estimator.refit and not make_start(job).n_iter
    settings = settings._replace(refit=refit)
    begins_at = "random" if retries else "model"
    candidate = Candidate(make_start, stage, retries=retries, begins_at=begins_at)
    result = automatic.train(settings, job, candidate, task)
    rbm = automatic.model(settings, result)
    job.callbacks.end(task, rbm)
    return result, rbm
