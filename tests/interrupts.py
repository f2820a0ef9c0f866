"""Ctrl-C at a given place of a fit."""


def interrupt(monkeypatch, module, n_calls, step=None):
    """Press Ctrl-C after so many calls of ``module.step``, or of the given ``step``."""
    step = step or module.step
    calls = iter(range(n_calls))

    def interrupted_step(*arguments):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(module, "step", interrupted_step)
