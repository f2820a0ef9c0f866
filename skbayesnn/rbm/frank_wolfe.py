"""The RBM that finds its own size: by comparing sizes, or growing unit by unit."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._clock import Clock
from .._docstrings import shared_parameters
from .._fitting import FitInterrupted, restore_on_failure
from .._random import Stream, derived_seed
from .._saved_state import public
from .._sklearn import HasMethods, Interval, StrOptions, fit_context, with_callbacks
from .._warnings import warn_caller
from . import model as rbm_model
from .contrastive_divergence import (
    ContrastiveDivergenceRBM,
    check_max_time,
    train_epochs,
    train_rounds,
)
from .inference import NOT_NEGATIVE, POSITIVE, RBM_CONSTRAINTS, BaseRBM
from .learning import contrastive, growth
from .rbm_texts import TEXTS
from .training import (
    automatic,
    automatic_settings,
    automatic_size,
    growing,
    lone_states,
    sizes,
)
from .training.candidate_trainings import Candidate
from .training.failure import warn_if_worse
from .training.job import (
    ModelCallbacks,
    Start,
    computing,
    hold_out,
    open_job,
    open_partial_job,
)
from .training.outcome import Seen, model_attributes, store
from .training.size_starts import Search
from .training.start import base_of, independent_model, model_of_init, start_training
from .training.training_result import Training

# What is to be done where a standard model cannot go on from a fractional one.
_OTHER_ALPHA = "Set alpha='learn' or a number."
_ANEW = "A fit with warm_start=False begins anew."


@public
@shared_parameters(TEXTS)
class FrankWolfeRBM(BaseRBM):
    r"""Binary restricted Boltzmann machine that chooses its number of hidden units.

    By default nothing has to be set: sizes are compared on rows that are held out, and
    the best one is trained until those rows gain no more; see Notes. With a number of
    units, the model grows as in [1]_, one unit per step. The RBM with a distribution q
    over hidden units,

    .. math:: \log p(v) = \alpha E_{q(w)}[\log(1 + e^{w^T v})] + b^T v - \log Z,

    has a log-likelihood that is concave in q (5) [1]_. A Frank-Wolfe step adds the
    unit that gains most, found by L-BFGS on fixed samples of data and model
    (Algorithm 1). Corrective steps of persistent contrastive divergence on all units
    follow each insertion.

    Parameters
    ----------
    n_components : "auto" or int, default="auto"
        Number of hidden units. With "auto", the likelihood of held-out rows decides:
        16, 32, ... up to 1024 units are tried, fewer where 16 are best, and a tree,
        which may have more; never more than there are rows, beside those of
        ``lone_states_``. This needs ``alpha="count"`` and ``init=None``. A number is
        the largest size of a model that grows unit by unit. If no unit gains anything,
        one idle unit with zero weights is kept.
    unit_penalty : "auto" or float, default="auto"
        Strength λ of the penalty :math:`\frac{\lambda}{2} \|(w, b)\|^2` on the gain of
        a new unit. With "auto", the first search tries seven values from 1 to 0.001,
        and takes the largest whose unit gains at least 90 % of the best on held-out
        chains and rows; each later one tries the last value and one that is three times
        as large or as small.
    learning_rate : float, default=0.1
        Step size of bias steps, and of the first corrective step after each unit; that
        of the last is near 0. Ignored with ``n_components="auto"``.
    fine_tune : None or ContrastiveDivergenceRBM, default=None
        With ``n_components="auto"``, the estimator whose parameters the training takes;
        its ``max_iter`` must be "auto". None stands for the defaults of
        `ContrastiveDivergenceRBM` with this ``batch_size``. Its ``n_components``,
        ``init``, ``binarize``, ``n_jobs``, ``random_state``, ``verbose``,
        ``validation_fraction`` and ``warm_start`` are ignored in favour of those here.
        With a number of units, a clone of it trains the grown model further, from that
        model in place of its ``init``; None means no such training. Its ``checkpoint``
        must be None.
    {{early_stopping}}
    {{binarize}}
    {{n_jobs}}
    {{random_state}}
    verbose : bool or int, default=False
        Whether to print one line per step, with the remaining time if all units are
        found; with ``n_components="auto"``, one line per round of updates, one per size
        that was tried, and in the end what was chosen.

    Other Parameters
    ----------------
    objective : {"likelihood", "linearized"}, default="likelihood"
        What a new unit maximises: the exact gain in mean log-likelihood,
        :math:`E_{data}[\log(1 + e^x)] - \log E_{model}[1 + e^x]` with
        :math:`x = w^T v`; or its linearisation (9), which overestimates it. The mean
        over the model is one over hidden states, with the visible ones summed out, for
        one unit of weight 1, else one over visible states. With "likelihood", the unit
        is checked on held-out chains and rows: of the iterates 1, 2, 3, 5, 10 and the
        last of its search, the one that gains most there is taken. It enters scaled by
        the fraction (1, 1/2, ..., 1/16) that gains most there, or not at all.
    radius : float or None, default=None
        Radius of the ball that is searched, in addition to the penalty. None means the
        whole space.
    alpha : "count", "learn" or float, default="count"
        Temperature: the sum of the unit weights. "count" is the number of units, which
        gives a standard RBM. A number or "learn" (the appendix's gradient, by Newton
        steps) gives a fractional RBM (11), sampled by Metropolis-Hastings steps. With
        a number, each new unit takes weight from the others, and none is refused.
    away_steps : bool, default=False
        Whether to remove a unit if that gains more than adding one (Guelat and
        Marcotte).
    units_per_step : int, default=1
        Number of units that a step adds. Each is searched on rows of its own against
        the same model, and all enter together, scaled by the fraction that gains most
        on held-out chains. ``n_components`` of them, with ``fine_tune``, are a quick
        and diverse start.
    n_chains : int, default=1000
        Markov chains of the current model. Half of them are held out from the search.
        A growth that goes on with another number keeps the first of each half, or
        begins the new ones as copies of them.
    n_gibbs_steps : int, default=5
        Steps of all chains before each search. In a standard RBM, a jump follows to
        hidden states that training rows have, as with every fourth corrective step;
        not before the searches of the linearised objective.
    n_search_rows : int, default=1000
        Training rows of a search, newly drawn each time, and as many for the check.
    max_search_iter : int, default=10
        L-BFGS iterations of a search.
    n_bias_steps : int, default=1
        Gradient steps (10) on the visible biases after each unit.
    n_corrective_steps : int, default=100
        Steps of persistent contrastive divergence on all parameters after each unit.
        0 gives Algorithm 1.
    {{batch_size}}
    averaging : float, default=0.02
        {{averaging}}
    init : None or RBM estimator, default=None
        Model that grows, this package's or scikit-learn's. All its units but those of
        ``lone_states_`` count, and are kept. It is cloned and fitted first; wrap one
        that is already fitted into :class:`~sklearn.frozen.FrozenEstimator`. None
        starts without hidden units, at the base rates.
    fine_tune_norm : float or None, default=None
        Largest norm of a unit's weights before the fine-tuning of a grown model (it is
        always 0.5 with ``n_components="auto"``); inputs of units with larger
        weights are scaled down. 0.5 is a good value. Grown units are near saturation,
        above all the first ones. From small weights in their directions, a fine-tuning
        as long as a training from random weights ends at a better likelihood, a short
        one at a worse. None starts from the grown model as it is.
    tol : float, default=0.0
        A unit is added if it gains more than this, in nats per sample.
    n_iter_no_change : int, default=10
        Number of consecutive searches without such a unit after which growth ends.
    {{validation_fraction}}
    max_gap : float, default=2.0
        {{max_gap}}
    {{checkpoint}}
    max_time : float or None, default=None
        Seconds that a fit with ``n_components="auto"`` may take.
        {{max_time}}
    warm_start : bool, default=False
        Whether to continue from the previous fit, up to a raised ``n_components``, or,
        with "auto", by training the earlier units further. Fewer units than those of
        the previous fit raise a ValueError. From weights of units other than 1, no fit
        goes on with ``alpha="count"``. A fit that is interrupted by Ctrl-C then keeps
        the last finished step of a growth, or the best round of a training.

    Attributes
    ----------
    {{components_}}
    {{intercept_hidden_}}
    {{intercept_visible_}}
    unit_weights_ : ndarray of shape (n_components_,)
        Weights c of the hidden units in (11), all 1 with ``alpha="count"``.
    alpha_ : float
        Temperature, the sum of ``unit_weights_``.
    {{base_intercept_}}
    {{lone_states_}}
    {{log_partition_}}
    {{n_components_}}
    n_iter_ : int
        Number of Frank-Wolfe steps; with ``n_components="auto"``, of the entries of
        ``history_``.
    n_updates_, n_gibbs_steps_, n_replicas_ : int
        With ``n_components="auto"``: number of updates that led to the model, and the
        Gibbs steps and temperatures of the last ones.
    weight_decay_ : float
        The weight decay of the last updates, with ``n_components="auto"``.
    history_ : dict of ndarray, one entry per step
        Of a growth: ``n_components`` after it; ``change`` (number of units added; -1:
        one removed; 0: none found); ``gain`` of the unit on held-out chains (nats per
        sample), its ``norm``, the ``effective_sample_size`` of those chains after
        reweighting to the model with the unit; ``frank_wolfe_gap`` of the linearised
        objective (nats); ``acceptance`` of the chains; ``unit_penalty`` of the search;
        mean ``free_energy`` of training rows and, with validation data,
        ``validation_free_energy`` and ``gap`` (nats); ``seconds`` since the start. If
        ``init`` has all units already, the one entry is about no step, with a
        ``change`` of 0.

        With ``n_components="auto"``, the first entries are the starts that were
        compared: ``n_components``, the ``change`` from the best one before, its
        ``gain`` over that one, whether it started ``from_small_weights`` (1 or 0), the
        ``n_updates`` that it had got when it was compared, and the
        ``log_likelihood`` and ``validation_log_likelihood`` that it had reached by then
        (nats per sample). Sizes get as many updates, unless they end before. The last
        are the other starts, a tree and units found by searches; their gain is over the
        winner before, after as many rounds. Halves of the smallest size, which follow
        where a model overfits, have no entry. The entries of the rounds follow, with
        the columns of `ContrastiveDivergenceRBM`; the first of them belong to the
        comparison. A column is NaN where it does not apply.
    fine_tune_ : ContrastiveDivergenceRBM
        The fitted fine-tuner, if ``fine_tune`` is given and ``n_components`` is a
        number.
    {{n_features_in_}}
    {{feature_names_in_}}

    See Also
    --------
    ContrastiveDivergenceRBM : Trains a given number of units.

    Notes
    -----
    **Automatic size.** With ``n_components="auto"``, rows are held out
    (``validation_fraction``, or ``X_val`` in ``fit``), and what they say decides:

    1. Models with 16, 32, 64, ... units are trained from small random weights, one
       after the other, with 1681 updates each, or with more where the first one has
       not learned anything by then. Doubling stops when two doublings of a size that
       equals the best have brought nothing. The smallest of equal sizes wins, or the
       next one while much is still gained.
    2. Two other starts are compared with the winner after the same number of updates:
       units for the pairs of a spanning tree, the best that pairs can tell [5]_, and
       units found by Frank-Wolfe searches, each on rows of its own and scaled down to a
       norm of 0.5. With a unit for each pair that is more than chance (by the extended
       BIC), an RBM is exactly this tree. It may have more than 1024 units, but no more
       than rows, and there is none beyond 3000 features.
    3. The best of them goes on from where it is, as `ContrastiveDivergenceRBM` does
       with ``max_iter="auto"``: log-likelihoods are tracked during training [2]_, and
       chains that mix too slowly get several temperatures [3]_ [4]_.
    4. If it overfits, so that it needs weight decay, random weights of its size, larger
       sizes while these are better, and smaller ones go on to where they overfit as
       well, and the best of them is trained further. If nothing was gained in the end,
       as with parities, training begins again from larger random weights.
    5. If annealing in both directions contradicts itself in the end, or the rows, by
       more than 1 % of what training has gained (at least 1 nat), up to two smaller
       sizes go on from where they are, too, and the model with the highest likelihood
       is returned.
    6. If rows were held out, the training is repeated on all rows (``refit`` of
       ``fine_tune``). Last, the probabilities of the modes are corrected, as
       `ContrastiveDivergenceRBM` does.

    ``unit_penalty``, ``objective``, ``radius``, ``n_chains``, ``n_search_rows`` and
    ``max_search_iter`` belong to the searches; other parameters of the growth, and
    ``early_stopping``, are ignored. Units then have no order.

    **Growth.** With a number of units, they are kept in the order in which they were
    added. Without ``early_stopping``, growth usually continues to ``n_components``:
    corrective steps fit the rows on which units are checked.

    See `ContrastiveDivergenceRBM` for what can change a result in its last digits.

    ``fit`` supports scikit-learn's callbacks: ``set_callbacks(ProgressBar())`` of
    ``sklearn.callback`` shows bars for the growth, by units, and for the epochs of
    fine-tuning, with the remaining time (it needs rich). Callbacks get ``X`` and ``y``
    as ``fit`` got them, and the model after each unit, or after each round. One that
    asks to stop at the end of a unit ends the growth; at the end of the growth, the
    fit, without fine-tuning; during the comparison of sizes or the training, the fit.
    Such a fit counts as finished.

    References
    ----------
    .. [1] W. Ping, Q. Liu, A. Ihler, "Learning Infinite RBMs with Frank-Wolfe", NIPS,
       2016.
    .. [2] G. Desjardins, A. Courville, Y. Bengio, "On tracking the partition
       function", NIPS, 2011.
    .. [3] G. Desjardins, A. Courville, Y. Bengio, P. Vincent, O. Delalleau, "Tempered
       Markov chain Monte Carlo for training of restricted Boltzmann machines",
       AISTATS, 2010.
    .. [4] K. Cho, T. Raiko, A. Ilin, "Parallel tempering is efficient for learning
       restricted Boltzmann machines", IJCNN, 2010.

    .. [5] C. Chow, C. Liu, "Approximating discrete probability distributions with
       dependence trees", IEEE Transactions on Information Theory 14(3), 1968.

    Examples
    --------
    With the defaults, a fit of all these images takes some minutes on one core. Few
    rows and few updates make the example short:

    >>> from sklearn.datasets import load_digits
    >>> from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
    >>> X = load_digits().data > 7
    >>> trainer = ContrastiveDivergenceRBM(max_updates=20)
    >>> rbm = FrankWolfeRBM(fine_tune=trainer, random_state=0).fit(X[:200])
    >>> rbm.transform(X).shape == (1797, rbm.n_components_)
    True

    With a number of units:

    >>> rbm = FrankWolfeRBM(10, random_state=0).fit(X[:200])
    >>> rbm.n_components_, rbm.transform(X).shape
    (10, (1797, 10))
    """

    _parameter_constraints: dict = {
        **RBM_CONSTRAINTS,
        "n_components": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "objective": [StrOptions({"likelihood", "linearized"})],
        "unit_penalty": [StrOptions({"auto"}), NOT_NEGATIVE],
        "radius": [POSITIVE, None],
        "alpha": [
            StrOptions({"count", "learn"}),
            # a step of the chains costs as much as this many units
            Interval(Real, 1e-15, 1e5, closed="both"),
        ],
        "away_steps": ["boolean"],
        "units_per_step": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 4, None, closed="left")],
        "n_gibbs_steps": [Interval(Integral, 1, None, closed="left")],
        "n_search_rows": [Interval(Integral, 1, None, closed="left")],
        "max_search_iter": [Interval(Integral, 1, None, closed="left")],
        "n_bias_steps": [Interval(Integral, 0, None, closed="left")],
        "n_corrective_steps": [Interval(Integral, 0, None, closed="left")],
        "init": [None, HasMethods("fit")],
        "fine_tune": [None, ContrastiveDivergenceRBM],
        "fine_tune_norm": [POSITIVE, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        unit_penalty="auto",
        learning_rate=0.1,
        fine_tune=None,
        early_stopping=False,
        binarize=0.5,
        n_jobs=None,
        random_state=None,
        verbose=False,
        objective="likelihood",
        radius=None,
        alpha="count",
        away_steps=False,
        units_per_step=1,
        n_chains=1000,
        n_gibbs_steps=5,
        n_search_rows=1000,
        max_search_iter=10,
        n_bias_steps=1,
        n_corrective_steps=100,
        batch_size=100,
        averaging=0.02,
        init=None,
        fine_tune_norm=None,
        tol=0.0,
        n_iter_no_change=10,
        validation_fraction=0.1,
        max_gap=2.0,
        checkpoint=None,
        max_time=None,
        warm_start=False,
    ):
        self.n_components = n_components
        self.unit_penalty = unit_penalty
        self.learning_rate = learning_rate
        self.fine_tune = fine_tune
        self.early_stopping = early_stopping
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.objective = objective
        self.radius = radius
        self.alpha = alpha
        self.away_steps = away_steps
        self.units_per_step = units_per_step
        self.n_chains = n_chains
        self.n_gibbs_steps = n_gibbs_steps
        self.n_search_rows = n_search_rows
        self.max_search_iter = max_search_iter
        self.n_bias_steps = n_bias_steps
        self.n_corrective_steps = n_corrective_steps
        self.batch_size = batch_size
        self.averaging = averaging
        self.init = init
        self.fine_tune_norm = fine_tune_norm
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.max_gap = max_gap
        self.checkpoint = checkpoint
        self.max_time = max_time
        self.warm_start = warm_start

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=False)
    @shared_parameters(TEXTS)
    def fit(self, X, y=None, sample_weight=None, *, X_val=None):
        """Learn a model, and its number of units.

        Parameters
        ----------
        {{X_fit}}
        {{y}}
        {{sample_weight}}
        {{X_val}}

        Returns
        -------
        self : FrankWolfeRBM
            The fitted estimator. If the fit fails or is interrupted, an earlier fit
            is kept as it was.

        Raises
        ------
        {{raises}}
        """
        resumes = self.warm_start and hasattr(self, "components_")
        automatic_size = self.n_components == "auto"
        self._check_parameters(automatic_size)
        holds_out = automatic_size or self.early_stopping
        job = open_job(self, X, y, X_val, resumes, holds_out, sample_weight)
        with job.checkpoint:
            self._fit(X, y, job, resumes)
        return self

    def _fit(self, X, y, job, resumes):
        """The fit after the checks of its parameters and data."""
        lone, automatic_size = None, self.n_components == "auto"
        if automatic_size:
            job, lone = lone_states.set_aside(job, self.verbose)
        seen = Seen.by_fit(job, automatic_size and self._trainer().refit)
        attributes = partial(self._fitted_attributes, seen, job.dtype, job.seed)
        job = job._replace(callbacks=ModelCallbacks(self, X, y, attributes))
        if automatic_size:
            self._choose(job, lone, attributes, resumes)
        else:
            self._grow(X, y, job, attributes, resumes)
        job.checkpoint.finish()

    def _choose(self, job, lone, attributes, resumes):
        """Fit as many units as the held-out rows ask for."""
        trainer = self._trainer()
        settings = automatic_settings.settings_of(trainer, job.train)
        task = job.callbacks.begin_fit(None)
        if resumes:
            candidate = Candidate(partial(self._last_start, trainer))
            settings = settings._replace(refit=False)
            result = automatic.train(settings, job, candidate, task)
        else:
            search = Search(growing.step_settings(self), self.n_chains)
            result = automatic_size.train(settings, search, job, task)
        rbm = automatic.model(settings, result)
        training, rbm, given = lone_states.finish(
            result.training, rbm, lone, job, self.n_jobs
        )
        store(self, training, attributes(rbm, lone_states=given) | result.decisions)
        if training.interrupted:
            raise FitInterrupted
        job.callbacks.end(task, rbm)
        result.warn()

    def _grow(self, X, y, job, attributes, resumes):
        """Grow to ``n_components``, and fine-tune."""
        fit_task = job.callbacks.begin_fit(1 if self.fine_tune is None else 2)
        start, settings = self._start(job, resumes), growing.settings_of(self)
        grown = growing.grow(settings, job, start, fit_task)
        store(self, grown, attributes(growing.model(grown)))
        _warn_if_empty(grown.state.rbm)
        if grown.interrupted:
            raise FitInterrupted
        if self.fine_tune is not None and not grown.stopped:
            tuner, tuned = self._fine_tune(X, y, job, grown, fit_task)
            self.fine_tune_ = tuner
            store(self, tuned, attributes(growing.model(tuned)))
            grown = tuned
        rbm = growing.model(grown)
        job.callbacks.end(fit_task, rbm)
        warn_if_worse(rbm, job.train, job.seed)

    @restore_on_failure
    @fit_context(prefer_skip_nested_validation=False)
    @shared_parameters(TEXTS)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Take one Frank-Wolfe step, then corrective steps once through the rows.

        A unit is added only up to ``n_components``, with "auto" up to 1024. There is
        no fine-tuning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any number of visible states.
        y : None
            Ignored.
        {{sample_weight}}

        Returns
        -------
        self : FrankWolfeRBM
            The estimator.

        Raises
        ------
        ValueError
            As ``fit``, and where the model has ``lone_states_``, which no chain finds.
        """
        resumes = hasattr(self, "components_")
        job = open_partial_job(self, X, resumes, sample_weight)
        seen = self._seen.add(job.train) if resumes else Seen.of(job.train)
        start, settings = self._start(job, resumes), growing.settings_of(self)
        if self.n_components == "auto":
            settings = settings._replace(n_components=sizes.MAX_UNITS)
        training = Training(start.make_state(), start.history, start.n_iter)
        training = growing.take_partial_step(settings, job, training, seen.rates)
        rbm = growing.model(training)
        attributes = self._fitted_attributes(seen, job.dtype, job.seed, rbm)
        store(self, training, attributes, continues=True)
        return self

    def _start(self, job, resumes):
        """Where growth begins: anew, or where an earlier fit has left it."""
        if not resumes:
            return Start(partial(self._first_state, job), {}, 0)
        return Start(partial(self._last_state, job), self.history_, self.n_iter_)

    def _first_state(self, job):
        if self.init is None:
            rbm = independent_model(job.train)
        else:
            rbm = model_of_init(self.init, job.train)
        self._check_unit_weights(rbm, "init", _OTHER_ALPHA)
        return growing.start_growth(rbm, job.train, self.n_chains, job.seed)

    def _check_unit_weights(self, rbm, name, remedy):
        """Refuse weights to which a standard unit would be added."""
        if self.alpha == "count" and not rbm_model.is_standard(rbm):
            raise ValueError(
                f"alpha='count' continues from a standard RBM; {name} has "
                f"unit_weights_ other than 1. {remedy}"
            )

    def _last_state(self, job):
        """Of growth here, or that of a model that came otherwise.

        Without the units of lone states, whose weights no training gives.
        """
        rbm = self._rbm_of_others()
        self._check_unit_weights(rbm, "the earlier fit", f"{_OTHER_ALPHA} {_ANEW}")
        if isinstance(self._training, growth.State):
            return growth.with_chains(self._training, self.n_chains)
        return growing.start_growth(rbm, job.train, self.n_chains, job.seed)

    def _last_start(self, trainer, job):
        """Where an automatic training of an earlier model begins."""

        def make_state():
            if isinstance(self._training, contrastive.State):
                chains = trainer.batch_size, len(job.train)
                return contrastive.with_chains(self._training, *chains)
            rbm = self._rbm_of_others()
            self._check_unit_weights(rbm, "the earlier fit", _ANEW)
            return start_training(rbm, job.train, trainer.batch_size, job.seed)

        return Start(make_state, self.history_, self.n_iter_)

    def _trainer(self):
        """The estimator whose parameters an automatic training takes."""
        if self.fine_tune is None:
            trainer = ContrastiveDivergenceRBM(batch_size=self.batch_size)
        else:
            trainer = clone(self.fine_tune)
        return trainer.set_params(
            binarize=self.binarize,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            warm_start=self.warm_start,
        )

    def _check_number_of_units(self):
        """Refuse a warm start that would have to take units away."""
        fitted = getattr(self, "n_components_", 0)
        if self.warm_start and self.n_components < fitted:
            raise ValueError(
                f"With warm_start=True, n_components={self.n_components} must be at "
                f"least the {fitted} units of the earlier fit, to which units are "
                "added. Give at least as many, or set warm_start=False to begin anew."
            )

    def _check_parameters(self, automatic_size):
        """Refuse what cannot be combined."""
        if self.fine_tune is not None:
            _check_tuner(self.fine_tune)
        if not automatic_size:
            if self.max_time is not None:
                raise ValueError(
                    "max_time is for n_components='auto', where the fit decides how "
                    f"long it goes on; got max_time={self.max_time!r} and "
                    f"n_components={self.n_components!r}. Set one of them only, or "
                    "max_time of fine_tune."
                )
            self._check_number_of_units()
            return
        if self.alpha != "count" or self.init is not None:
            raise ValueError(
                "n_components='auto' trains a standard RBM from nothing: it needs "
                f"alpha='count' and init=None; got alpha={self.alpha!r} and "
                f"init={self.init!r}. Set n_components to a number of units."
            )
        if self.fine_tune is not None and self.fine_tune.max_iter != "auto":
            raise ValueError(
                "n_components='auto' trains until held-out rows gain no more: "
                "fine_tune needs max_iter='auto'; got max_iter="
                f"{self.fine_tune.max_iter!r}. Or set n_components to a number."
            )
        if self.fine_tune is not None and self.fine_tune.max_time is not None:
            raise ValueError(
                "With n_components='auto', max_time of FrankWolfeRBM is that of the "
                "whole fit: set it there, and max_time=None of fine_tune."
            )

    def _fine_tune(self, X, y, job, grown, fit_task):
        """Train the grown model by a clone of the fine-tuner.

        Returns the fitted clone, and the growth with the model that it has trained.
        """
        rows = job.train
        tuner, job = self._make_tuner(job)

        def first_state(job):
            rbm, chains = grown.state.average, grown.state.chains.states
            if self.fine_tune_norm is not None:
                rbm, chains = self._shrink(rbm, rows), None
            return start_training(rbm, job.train, tuner.batch_size, job.seed, chains)

        def make_start(job):
            return Start(partial(first_state, job), {}, 0)

        task = fit_task.subcontext("fine-tuning")
        try:
            with task.propagate_callback_context(tuner):
                job.callbacks.begin(task)
                rbm = _train_tuner(tuner, X, y, job, make_start)
                job.callbacks.end(task, rbm)
        except KeyboardInterrupt:
            if not self.warm_start:
                raise
            # the grown model is stored, and is kept
            raise FitInterrupted from None
        # growth that is resumed by warm_start starts from the tuned model
        state = grown.state._replace(rbm=rbm, average=rbm)
        return tuner, grown._replace(state=state)

    def _make_tuner(self, job):
        """A clone of the fine-tuner, and its job."""
        tuner = clone(self.fine_tune).set_params(binarize=self.binarize)
        tuner.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            tuner.feature_names_in_ = self.feature_names_in_
        # its steps count from one, as those of the growth did
        seed = int(derived_seed(job.seed, Stream.FINE_TUNING, dtype=np.uint32))
        job = job._replace(seed=seed, clock=Clock(tuner.max_time))
        if job.validation is None and (
            tuner.early_stopping or tuner.max_iter == "auto"
        ):
            train, validation = hold_out(job.train, tuner.validation_fraction, seed)
            job = job._replace(train=train, validation=validation, whole=job.train)
        return tuner, job

    def _shrink(self, rbm, rows):
        """The model with small weights, to be trained anew in their directions."""
        some = rows.states(slice(growing.MONITORED_ROWS))
        with computing(self.n_jobs, self.learning_rate):
            return rbm_model.shrink(rbm, self.fine_tune_norm, base_of(rows), some)

    def _fitted_attributes(self, seen, dtype, seed, rbm, lone_states=()):
        attributes = super()._fitted_attributes(seen, dtype, seed, rbm, lone_states)
        return {**attributes, "alpha_": float(attributes["unit_weights_"].sum())}


def _check_tuner(tuner):
    tuner._validate_params()
    check_max_time(tuner)
    if tuner.checkpoint is not None:
        raise ValueError(
            "fine_tune must have checkpoint=None: the checkpoint of FrankWolfeRBM "
            "holds its epochs as well. Set that one instead."
        )


@with_callbacks
def _train_tuner(tuner, X, y, job, make_start):
    """Fit an estimator of contrastive divergence from a given start.

    Returns a copy of its model.
    """
    automatic_end = tuner.max_iter == "auto"
    seen = Seen.by_fit(job, automatic_end and tuner.refit)
    attributes = partial(model_attributes, seen, job.dtype, job.seed)
    job = job._replace(callbacks=ModelCallbacks(tuner, X, y, attributes))
    train = train_rounds if automatic_end else train_epochs
    result, rbm = train(tuner, job, make_start, stage="fine_tune")
    if result.training.interrupted:
        raise FitInterrupted
    store(tuner, result.training, attributes(rbm) | result.decisions)
    result.warn()
    return rbm_model.copy(rbm)


def _warn_if_empty(rbm):
    """Warn of a model without units."""
    if not len(rbm.weights):
        warn_caller(
            "No hidden unit gained anything: the model is that of independent "
            "features, with one idle unit. Change unit_penalty, or increase n_chains "
            "and n_search_rows.",
            ConvergenceWarning,
        )
