"""What the callbacks of scikit-learn are told of a fit."""


class Callbacks:
    """The callbacks of an estimator, which get ``X`` and ``y`` as ``fit`` got them."""

    def __init__(self, estimator, X, y):
        self._of_fit = {"estimator": estimator, "X": X, "y": y}
        self._estimator = estimator

    def begin_fit(self, n_subtasks):
        """Begin the task of the whole fit, of so many parts; None if not known."""
        context = self._estimator._init_callback_context(max_subtasks=n_subtasks)
        return self.begin(context)

    def begin(self, context):
        """Tell that a part of the fit begins."""
        return context.call_on_fit_task_begin(**self._of_fit)

    def end(self, context, attributes=None):
        """Tell that a part ends; whether a callback asks to stop.

        ``attributes`` gives the fitted attributes of the model so far, if there is one;
        it is called only if a callback asks for it.
        """
        return context.call_on_fit_task_end(
            **self._of_fit, reconstruction_attributes=attributes
        )
