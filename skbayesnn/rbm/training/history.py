"""The history of a fit: its entries, remaining time, and lines of ``verbose``."""

import numpy as np

# Epochs whose median duration is that of the next ones.
_RECENT_EPOCHS = 10
# Settings of a round: their usual values, and how they are printed.
_EFFORTS = (
    ("n_gibbs_steps", 1, "Gibbs steps"),
    ("n_replicas", 1, "temperatures"),
    ("weight_decay", 0.0, "weight decay"),
)


def append_record(history, record):
    """``history`` with one more entry; NaN where a column starts late, or ends."""
    n_before = max((len(values) for values in history.values()), default=0)
    names = {**history, **record}
    return {
        name: np.append(
            history.get(name, np.full(n_before, np.nan)), record.get(name, np.nan)
        )
        for name in names
    }


def join_histories(first, second):
    """The entries of both, one after the other."""
    n_second = max((len(values) for values in second.values()), default=0)
    for k in range(n_second):
        first = append_record(first, {name: second[name][k] for name in second})
    return first


def time_of_epochs(seconds, n_left):
    """Seconds that so many epochs will take, from the times at which others ended."""
    return float(np.median(np.diff(seconds, prepend=0.0)[-_RECENT_EPOCHS:])) * n_left


def time_of_growth(seconds, sizes, n_left):
    """Seconds that so many more units will take, each more than the one before.

    A line through the durations of the later half of the steps, by the number of units.
    """
    durations = np.diff(seconds, prepend=0.0)[len(seconds) // 2 :]
    sizes = sizes[len(seconds) // 2 :] - sizes[-1]
    spread = sizes - sizes.mean()
    slope = max(0.0, spread @ durations / max(spread @ spread, 1.0))
    pace = durations.mean() - slope * sizes.mean()
    return float(pace * n_left + slope * n_left * (n_left + 1) / 2)


def format_duration(seconds):
    """A duration in the unit that suits it: 35 s, 12 min, 3.4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def print_epoch(record, seconds, number, last):
    """Print an epoch's entry; ``seconds`` are the times of this fit's epochs."""
    text = ", ".join(f"{name} {value:.4g}" for name, value in record.items())
    left = time_of_epochs(seconds, last - number)
    print(f"epoch {number} of {last}: {text}, {format_duration(left)} left")


def print_step(history, number, n_before, n_components):
    """Print the last entry of a growth; ``n_before`` entries are of earlier calls."""
    last = {name: values[-1] for name, values in history.items()}
    sizes = history["n_components"][n_before:]
    left = time_of_growth(
        history["seconds"][n_before:], sizes, n_components - sizes[-1]
    )
    print(
        f"step {number}: {last['n_components']:.0f} of at most {n_components} units, "
        f"gain {last['gain']:.3g}, norm {last['norm']:.3g}, "
        f"{format_duration(left)} left"
    )


def print_round(stage, record):
    """Print an entry of an adaptive training."""
    print(f"{stage}: {text_of_round(record)}")


def print_return(stage, before, plan, n_updates):
    """Print that, and why, a round with a plan begins at the best model so far.

    before : the plan of the round that has ended
    n_updates : the updates that led to the best model
    """
    if not plan.reason:
        return
    text = f"back to the model of {n_updates} updates"
    if plan.cools:
        text = f"last round, from the model of {n_updates} updates to a step size of 0"
    for name, _, words in (*_EFFORTS, ("rate", None, "step size")):
        if getattr(plan, name) != getattr(before, name):
            text += f", {words} {getattr(plan, name):.2g}"
    print(f"{stage}: {text}, because {plan.reason}")


def text_of_round(record):
    """What a round has reached, and the effort and time that it took so far.

    Settings that most trainings never change are told where they differ.
    """
    parts = [
        f"{record['n_updates']:.0f} updates",
        f"{record['log_likelihood']:.2f} nats on training rows",
        f"{record['validation_log_likelihood']:.2f} on validation rows",
    ]
    for name, usual, text in _EFFORTS:
        if record[name] != usual:
            parts.append(f"{text} {record[name]:.2g}")
    return ", ".join([*parts, format_duration(record["seconds"])])
