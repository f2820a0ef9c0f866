"""Texts of the parameters that several estimators of this half share."""

PARAMETERS = {
    "include_current_input": """
        include_current_input : bool, default=True
            Whether u(t) is a regressor of y(t). It is ignored for inputs that a dict in
            ``input_lags`` gives a list: the list holds a 0 if u(t) is used. A list
            without a dict does not name u(t), which this parameter adds. Set it to
            False where a controller chooses u(t) by y(t): u(t) tells y(t) then.
        """,
    "horizon_schedule": """
        horizon_schedule : "auto" or array-like of int, default="auto"
            For ``focus="simulation"``: number of rows after which a free run starts
            again from measured outputs, for each stage of the fit; None stands for
            whole records. "auto" is ``(1, 8, 32, 128, None)``. From random weights a
            run through the whole record would mostly diverge.
        """,
    "initial_conditions": """
        initial_conditions : {"measured", "estimated"}, default="measured"
            For ``focus="simulation"``: whether the free run through a session starts
            from its first ``max_lag_`` measured outputs, or from outputs before the
            session that are estimated along with the weights (inputs there at their
            first value).
        """,
    "skip_connection": """
        skip_connection : bool, default=True
            A linear path from the regressors to the outputs, beside the hidden layers
            and with priors of its own, so that the hidden units need not reproduce
            what is linear.
        """,
    "activation": """
        activation : {"tanh", "relu", "logistic"}, default="tanh"
            Activation of the hidden units. The output is linear.
        """,
    "groups": r"""
        groups : {"element", "row", "column", "layer"} or sequence of these, \
                default=("row", "column")
            Which weights share a prior variance (Table 1 of [1]_): each has its own
            ("element", called shape-wise in the paper), all that leave a unit ("row":
            prunes inputs and units), all that enter a unit ("column": prunes units),
            or all of a layer ("layer"). With several, a weight's prior is the product
            of its groups' priors.
        """,
    "lagged_groups": r"""
        groups : "auto", {"element", "row", "column", "layer"} or sequence of these, \
                default="auto"
            Which weights share a prior variance (Table 1 of [1]_): each has its own
            ("element", called shape-wise in the paper), all that leave a unit ("row":
            prunes lags and units), all that enter a unit ("column": prunes units), or
            all of a layer ("layer": prunes whole layers only, and gives the smoothest
            network). With several, a weight's prior is the product of its groups'
            priors. "auto" is ``("row", "column")``, or ``("layer",)`` for
            ``focus="simulation"``.
        """,
    "kappa_variance": """
        kappa_variance : float, default=1e-6
            A weight whose prior variance falls below this is pruned. In units of the
            scaled regressors and outputs.
        """,
    "kappa_weight": """
        kappa_weight : float, default=1e-3
            A weight whose magnitude falls below this is pruned. Units as above.
        """,
    "reweight": r"""
        reweight : bool, default=True
            False keeps the penalty of the first cycle: the conventional group lasso
            (the lasso for ``groups="element"``) with the penalty
            :math:`2 \lambda \sum_g \|W_g\|_2` beside
            :math:`\|y - \hat y\|^2 / \sigma^2`. The noise variance is then the mean
            squared error of the fit, and standard deviations are too small where
            weights are many beside the rows.
        """,
    "noise": """
        noise : {"gaussian", "student_t"}, default="gaussian"
            Distribution of the errors. "student_t" has heavy tails, whose degrees of
            freedom are learned (between 2.5 and 200): gross errors, such as those of
            a sensor that sticks, then count little. Standard deviations are those of
            the t distribution, which is why it has more than 2 degrees of freedom.
        """,
    "outliers": """
        outliers : {"replace", "keep"}, default="replace"
            What becomes of outputs that are wrong: gross errors, and those of a sensor
            that sticks or reads far off. "replace" looks for them before the search,
            puts the values in their place that fit best between their neighbours, and
            marks them in ``outliers_``; see the notes of
            :class:`SparseBayesNARXRegressorCV`. "keep" takes all outputs as they are.
        """,
    "noise_variance": r"""
        noise_variance : "auto", float or array-like of shape (n_outputs,), \
                default="auto"
            Variance of the observation noise, in squared units of y. "auto" learns it
            with the prior variances, for each output. With ``noise="student_t"`` a
            given one is the square of the scale of that distribution, which is less
            than its variance.
        """,
    "curvature": """
        curvature : {"auto", "full", "diag"}, default="auto"
            Gauss-Newton matrix that the updates use: the full matrix (by its N x N
            dual where weights outnumber samples), or its exact diagonal. "auto" takes
            the full one up to 4096 unknowns.
        """,
    "solver": """
        solver : {"lm", "lbfgs", "adam"}, default="lm"
            Fit of the weights within a cycle: Levenberg-Marquardt, the best for
            networks of up to some thousand weights; L-BFGS or Adam for larger ones.
        """,
    "max_cycles": """
        max_cycles : int, default=200
            Largest number of cycles.
        """,
    "max_iter": """
        max_iter : "auto" or int, default="auto"
            Iterations of the solver per cycle (steps, or epochs of Adam). "auto" is 3
            for "lm", 50 for "lbfgs" and 20 for "adam".
        """,
    "tol": """
        tol : float, default=1e-3
            A fit ends when ten consecutive cycles prune nothing and do not improve the
            best objective by more than ``tol`` per observation.
        """,
    "normalize": """
        normalize : bool, default=True
            Scale regressors and outputs to zero mean and unit variance inside the
            model. ``coefs_``, ``prior_variance_``, ``posterior_covariance_`` and the
            thresholds then refer to the scaled variables; everything else is in the
            user's units.
        """,
    "n_jobs": """
        n_jobs : int or None, default=None
            Number of fits that run in parallel (joblib). It does not change the
            result.
        """,
    "random_state": """
        random_state : int, RandomState instance or None, default=None
            Source of the initial weights and of Adam's mini-batches.
        """,
    "verbose": """
        verbose : bool or int, default=False
            Print one line per cycle.
        """,
}

ATTRIBUTES = {
    "coefs": """
        coefs_ : list of ndarray of shape (n_units_in, n_units_out)
            Posterior mode of the weights, zero where pruned.
        intercepts_ : list of ndarray of shape (n_units_out,)
            Biases.
        masks_ : list of ndarray of bool, shapes as ``coefs_``
            True where a weight was kept.
        prior_variance_ : list of ndarray, shapes as ``coefs_``
            Learned prior variance of each weight, zero where pruned.
        """,
    "degrees_of_freedom": """
        degrees_of_freedom_ : float
            Learned degrees of freedom of the errors, the fewer the heavier their
            tails. Only with ``noise="student_t"``.
        """,
    "posterior": """
        posterior_covariance_ : ndarray of shape (n_kept, n_kept) or (n_kept,)
            Posterior covariance (11) of the kept parameters, layer after layer, each
            with its weights in C order and then its biases; its diagonal with
            ``curvature="diag"`` or more than 4096 kept parameters.
        log_marginal_likelihood_ : float
            Laplace approximation of the log evidence of y, in nats.
        """,
    "band_factor": """
        band_factor_ : ndarray of shape (n_outputs_,)
            Factor by which the standard deviations of free runs are multiplied: the
            median, over the stretches that were held out, of the factor with which the
            95 % band holds 95 % of the rows there, made larger where the errors there
            are few, or alike from row to row. It is not below 1 for a linear model, and
            after an input has left the range of the training record; nor where models
            of differences were tried, where it is larger by what the candidates drift.
            Bands are never narrower than the noise, and uncertain hidden states at the
            start, would give alone.
        """,
    "counts": """
        n_cycles_ : int
            Number of cycles.
        n_iter_ : int
            Number of solver iterations over all cycles.
        n_outputs_ : int
            Number of outputs.
        """,
    "inputs": """
        n_features_in_ : int
            Number of inputs seen during fit, 0 for an autoregression.
        feature_names_in_ : ndarray of shape (n_features_in_,)
            Names of the inputs, when they are all strings.
        """,
    "signals": """
        output_names_ : ndarray of shape (n_outputs_,)
            Names of the outputs, when y was a data frame or a series whose names are
            strings. Later outputs with names must have these, in this order.
        sampling_time_ : float
            Time between rows in seconds, or in the unit of a column "time" of numbers.
            Only for data with times.
        """,
}

NOTES = {
    "equally_spaced": """
        Rows are equally spaced in time. Times are read from an index of times, of
        pandas, or from a column named "time" of X or y, which is no input; within a
        session they must rise, and a step of more than 1.5 times the median one is a
        hole. An index of numbers that does not count up evenly is warned of.
        """,
    "in_order": """
        ``fit`` refuses a ``sample_weight``: each row is also the past of the next rows,
        so it cannot be copied or left out. Set outputs that shall not count to NaN. A
        record that is appended k times, each time with an id of its own in
        ``sessions``, counts k times.

        Cross-validation must keep rows in order, as ``TimeSeriesSplit`` does, or
        group-wise splits with the groups as ``sessions``. ``KFold`` joins the rows
        around a fold; ``ShuffleSplit`` and the bagging of rows leave no record at all.
        """,
}

TEXTS = PARAMETERS | ATTRIBUTES | NOTES
