"""A fit that fails or is interrupted leaves the estimator as it was."""

import functools


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C after a usable model has been stored (``warm_start=True``)."""


def restore_on_failure(fit):
    """Leave the estimator as it was when its refit fails or is interrupted."""

    @functools.wraps(fit)
    def wrapper(self, *args, **kwargs):
        before = dict(self.__dict__)
        try:
            return fit(self, *args, **kwargs)
        except FitInterrupted:
            raise
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return wrapper
