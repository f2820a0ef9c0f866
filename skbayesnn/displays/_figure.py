"""Colours of the displays, and panels in a new figure or in given axes."""

import numpy as np

# The palette of Okabe and Ito, which colour-blind readers can tell apart.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
MAX_COLUMNS = 4
# Size of a panel, in inches, in which titles and ticks are legible.
LEGIBLE = (2.4, 1.6)
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
# Font sizes, in points: of titles, of labels, of ticks and legends.
TITLE, LABEL, SMALL = 11, 10, 9
INK = "#222222"
MUTED = "#8C8C8C"
EMPTY = "#E4E4E4"


def figure_style():
    """The look of all figures of this package, for others beside them.

    Colours of Okabe and Ito, which colour-blind readers can tell apart, font sizes,
    and frames without upper and right lines.

    Returns
    -------
    context : context manager
        Within it matplotlib makes figures of this style.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skbayesnn.displays import figure_style
    >>> with figure_style():
    ...     figure, axes = plt.subplots()
    >>> axes.spines["top"].get_visible()
    False
    """
    check_matplotlib("figure_style")
    import matplotlib

    return matplotlib.rc_context(
        {
            "axes.prop_cycle": matplotlib.cycler(color=CYCLE),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": TITLE,
            "axes.labelsize": LABEL,
            "xtick.labelsize": SMALL,
            "ytick.labelsize": SMALL,
            "legend.fontsize": SMALL,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
        }
    )


def use_log_scale(axes):
    """A logarithmic vertical axis whose ticks are plain numbers: 0.1, 0.2, 0.5, 1."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def check_matplotlib(caller):
    """Raise an ImportError that says how to install matplotlib if it is missing."""
    try:
        import matplotlib.pyplot  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{caller} requires matplotlib: pip install matplotlib"
        ) from error


def make_panels(ax, n_rows, n_columns, size, *, sharex=False, height_ratios=None):
    """A figure and (n_rows, n_columns) axes: new, inside ``ax``, or the given ones.

    ``size`` is that of a new figure, in inches; with ``sharex`` the panels of a column
    share their horizontal axis.
    """
    shape = (n_rows, n_columns)
    if ax is not None and not hasattr(ax, "get_subplotspec"):
        axes = np.asarray(ax, dtype=object)
        if axes.size != n_rows * n_columns:
            raise ValueError(
                f"ax must be one Axes, or hold {n_rows * n_columns} of them, shape "
                f"{shape}; got {axes.size}."
            )
        return axes.flat[0].figure, axes.reshape(shape)
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=size, layout="constrained")
        grid = figure.add_gridspec(n_rows, n_columns, height_ratios=height_ratios)
    elif n_rows * n_columns == 1:
        return ax.figure, np.array([[ax]], dtype=object)
    else:
        figure, grid = ax.figure, _subdivide(ax, n_rows, n_columns, height_ratios)
    axes = np.empty(shape, dtype=object)
    for row, column in np.ndindex(*shape):
        first = axes[0, column] if sharex and row else None
        axes[row, column] = figure.add_subplot(grid[row, column], sharex=first)
        if sharex and row < n_rows - 1:
            axes[row, column].tick_params(labelbottom=False)
    return figure, axes


def make_wrapped_panels(ax, n_groups, n_panels, size):
    """A figure, its axes, and the axes of each group, wrapped into rows.

    ``size`` is that of one panel in a new figure. Unused places at the end of a group
    hold None.
    """
    if ax is None:
        n_columns = min(n_panels, MAX_COLUMNS)
    elif hasattr(ax, "get_subplotspec"):
        n_columns = _fitting_columns(ax, n_groups, n_panels)
    else:
        n_columns = n_panels
    n_rows = -(-n_panels // n_columns)
    n_all = n_groups * n_rows
    figure_size = (0.9 + size[0] * n_columns, 0.4 + size[1] * n_all)
    figure, axes = make_panels(ax, n_all, n_columns, figure_size)
    groups = axes.reshape(n_groups, n_rows * n_columns)
    for panel in groups[:, n_panels:].flat:
        panel.remove()
    groups[:, n_panels:] = None
    return figure, axes, groups[:, :n_panels]


def _subdivide(ax, n_rows, n_columns, height_ratios):
    """A grid in the place of ``ax``, which becomes invisible."""
    from matplotlib.gridspec import GridSpecFromSubplotSpec

    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError(
            "ax must be part of a grid, as those of plt.subplots are, to be divided "
            f"into {n_rows} x {n_columns} panels; pass an array of axes instead."
        )
    ax.set_axis_off()
    # a layout engine makes room for titles and labels by itself
    is_laid_out = ax.get_figure(root=True).get_layout_engine() is not None
    return GridSpecFromSubplotSpec(
        n_rows,
        n_columns,
        subplot_spec=spec,
        height_ratios=height_ratios,
        hspace=None if is_laid_out else 0.6,
        wspace=None if is_laid_out else 0.3,
    )


def _fitting_columns(ax, n_groups, n_panels):
    """Number of columns with the most legible panels inside ``ax``."""
    dpi = ax.get_figure(root=True).dpi
    width, height = ax.bbox.width / dpi, ax.bbox.height / dpi

    def legibility(n_columns):
        n_rows = n_groups * -(-n_panels // n_columns)
        return min(width / n_columns / LEGIBLE[0], height / n_rows / LEGIBLE[1])

    return max(range(1, min(n_panels, MAX_COLUMNS) + 1), key=legibility)


def add_color_bar(drawn, ax, label):
    """The bar of colours beside a picture that fills a panel."""
    bar = ax.figure.colorbar(drawn, ax=ax, label=label, shrink=0.8)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)


def choose_outputs(output, n_outputs):
    """Numbers of the outputs to draw: all of them, or the requested one."""
    if output is None:
        return list(range(n_outputs))
    if output not in range(n_outputs):
        raise ValueError(
            f"output must be None or a number from 0 to {n_outputs - 1}; "
            f"got {output!r}."
        )
    return [int(output)]


def tidy(axes):
    """Give panels the look of all figures: frames, font sizes, legends."""
    for panel in np.ravel(axes):
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=SMALL)
        panel.title.set_fontsize(min(panel.title.get_fontsize(), TITLE))
        legend = panel.get_legend()
        if legend is not None:
            legend.set_frame_on(False)
            for text in legend.get_texts():
                text.set_fontsize(SMALL)
