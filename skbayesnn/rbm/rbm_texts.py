"""Documentation that the RBM estimators share, entry by entry."""

TEXTS = {
    # parameters of the estimators
    "binarize": """
        binarize : float or None, default=0.5
            Threshold above which a value is 1. With None, values are probabilities.
        """,
    "early_stopping": """
        early_stopping : bool, default=False
            Whether to hold rows out, and to stop when the gap between the mean
            log-likelihoods of the training rows and of the held-out rows has risen by
            more than ``max_gap``. The partition function cancels from this gap. Ignored
            by automatic training, which always holds rows out and tracks their
            likelihood.
        """,
    "n_jobs": """
        n_jobs : int or None, default=None
            Number of threads for large products. It does not change the result. None
            means 1 unless in a :obj:`joblib.parallel_config` context, -1 all cores.
        """,
    "random_state": """
        random_state : int, RandomState instance or None, default=None
            Source of all random numbers of a fit: initial values, the order of the
            data, Markov chains, held-out rows. Pass an integer for reproducible fits.
        """,
    "batch_size": """
        batch_size : int, default=100
            Rows of a mini-batch, and number of persistent chains: at most as many as
            there are rows, or 1000 chains if there are fewer. A training that goes on
            with another number keeps the first chains, or begins the new ones as copies
            of them.
        """,
    "validation_fraction": """
        validation_fraction : float, default=0.1
            Fraction of the rows that automatic training or ``early_stopping`` holds
            out, unless ``fit`` gets validation data.
        """,
    "max_gap": """
        Largest rise of the gap above its lowest value, in nats per sample.
        """,
    "averaging": """
        Fraction of the updates so far, in [0, 1], over which the parameters are
        averaged. The fitted model is this average; training continues from the last
        parameters. 0 means no average.
        """,
    "checkpoint": """
        checkpoint : str, path-like or None, default=None
            File to which ``fit`` writes the state of training after an epoch, a round
            or a step of growth, at most once per second. If a fit was killed, calling
            the same ``fit`` again resumes it, with the same result, bit for bit; if it
            had finished, the model is returned at once. A file of another fit (other
            parameters, data or version of this package) is refused. If
            ``random_state`` is not an integer, the seed in the file is used. Each fit
            needs its own file. Cannot be combined with ``warm_start``; ``partial_fit``
            neither reads nor writes the file.
        """,
    "max_time": """
        Behind two fifths of them, no other size or start is tried. The best one trains
        on until there is just time left to let the step size fall and to repeat the
        training on all rows, and corrects how likely its modes are if that ends in
        time. At least one round of updates is made, and the estimates at the end take
        as long as they do. What is found in a limited time depends on the machine and
        on ``n_jobs``. With a ``checkpoint``, it counts from the beginning of each call;
        a fit that it has ended is complete, and more time does not go on with it.
        """,
    # attributes
    "components_": """
        components_ : ndarray of shape (n_components_, n_features_in_)
            Weights; float64 if X is float64, else float32. Training computes in
            float32.
        """,
    "intercept_hidden_": """
        intercept_hidden_ : ndarray of shape (n_components_,)
            Biases of the hidden units.
        """,
    "intercept_visible_": """
        intercept_visible_ : ndarray of shape (n_features_in_,)
            Biases of the visible units.
        """,
    "base_intercept_": """
        base_intercept_ : ndarray of shape (n_features_in_,)
            Log-odds of the smoothed base rates of the training data, from which
            annealed importance sampling starts.
        """,
    "lone_states_": """
        lone_states_ : ndarray of shape (n_lone_states, n_features_in_), bool
            States that many rows share, ten features or more from all others, which
            automatic training found: the last units of the model are theirs, beyond
            the number asked for.
            Estimates of the partition function count them exactly. A fit that goes on
            from such a model begins without these units: automatic training gives them
            anew, and with a number of epochs or units, the rows of these states are
            learned like all others.
        """,
    "log_partition_": """
        log_partition_ : float
            Log partition function in nats, computed when first asked for: exact if
            there are at most 20 units or features, or if the weights other than zero
            join them without cycles, else an estimate.
        """,
    "n_components_": """
        n_components_ : int
            Number of hidden units.
        """,
    "n_features_in_": """
        n_features_in_ : int
            Number of features seen during fit.
        """,
    "feature_names_in_": """
        feature_names_in_ : ndarray of shape (n_features_in_,)
            Names of the features, if they are all strings.
        """,
    # arguments of methods
    "X": """
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        """,
    "X_fit": """
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states: bool, integer or float, dense or CSR. Constant features
            are allowed.
        """,
    "y": """
        y : None
            Ignored, except that callbacks get it.
        """,
    "sample_weight": """
        sample_weight : array-like of shape (n_samples,), default=None
            How many times each row counts, not negative: a weight of k is the same as k
            copies of the row behind each other, one of 0 as none. Integers count equal
            observations, and held-out rows are drawn from all of them. Other weights
            say how much an observation matters, and it is held out with all of its
            copies. They are rounded up or down at random, once per call, so scale
            weights that are no counts to a mean of about 10, and not to integers: with
            a mean of 1, many rows of small weights would get no copy. The time of an
            epoch is in proportion to the sum of the weights.
        """,
    "X_val": """
        X_val : {array-like, sparse matrix} of shape (n_samples_val, n_features), \
default=None
            Validation data, in place of held-out rows: automatic training is judged on
            them, and then uses all rows of ``X`` from the start. With a number of
            epochs or units, they are for the gap in ``history_`` and for
            ``early_stopping``.
        """,
    "raises": """
        ValueError
            For parameters outside their range, for values that are not finite or, with
            ``binarize=None``, outside [0, 1], if the weights diverge, and for a
            checkpoint that is damaged or belongs to another fit.
        OSError
            For a checkpoint that cannot be written.
        """,
}
