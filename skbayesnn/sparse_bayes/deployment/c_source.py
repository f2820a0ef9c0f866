"""A fitted lagged model as one file of C99, without dependencies or allocation.

The code does what `kernels.packed` does, in the same order, its tanh included, so that
in double precision the outputs are those of a stream bit for bit where both fuse
multiplications and additions, or none does. A network is a function over its own
constant tables; the rest is the same text for every model.
"""

from functools import partial
from string import Template

import numpy as np

from .c_frame import Precision, Templates, common_values, framed, integers

ADVICE = """\
For the same bits as StreamingPredictor, compile with -std=c99 and, on x86
   with FMA, -mfma. """

USAGE = Template("""\
   ${name}_state s;            ${name}_statef is the same in single precision
   ${name}_init(&s);           inputs and outputs at their training means
   ${name}_step(&s, u, y);     predicts the outputs y of the row whose inputs are u
   ${name}_update(&s, y);      replaces them by what was measured; NaN: not measured

   Without an update the next step works on the predicted outputs (free run). After
   $max_lag updates, nothing is left of the start. Where a value is missing, and from
   where a run leaves the plausible range on, outputs are NaN.""")

DEFINES = Template("""\
#define ${macro}_N_ROWS $n_rows
#define ${macro}_WIDTH (${macro}_N_INPUTS + ${macro}_N_OUTPUTS)""")

HELPERS = Template("""
/* Place of the row so many rows before the newest one, in a ring of rows. */
static int ${name}_row(int now, int lag)
{
    const int place = now - lag;
    return place < 0 ? place + ${macro}_N_ROWS : place;
}
""")

STATE = Template("""\
typedef struct {
    $real history[${macro}_N_NETWORKS][${macro}_N_ROWS][${macro}_WIDTH];
    int now;
    unsigned char diverged[${macro}_N_NETWORKS];
} ${name}_state$f;
""")

NETWORK = Template("""
/* Network $k: the outputs of the newest row; 0 if they are missing or diverged. */
static int ${name}_network_$k$f(${name}_state$f *state)
{
    static const int signal[] = {$signal};
    static const int lag[] = {$lag};
    static const int taken[] = {$taken};
    static const $real x_offset[] = {$x_offset};
    static const $real x_scale[] = {$x_scale};
    static const $real theta[] = {
        $theta};
    static const $real y_offset[] = {$y_offset};
    static const $real y_scale[] = {$y_scale};
    $real (*history)[${macro}_WIDTH] = state->history[$k];
    $real *row = history[state->now];
    $real $units;
    int i;
    if (state->diverged[$k])
        return 0;
    for (i = 0; i < $n_regressors; i++) {
        $real value = history[${name}_row(state->now, lag[i])][signal[i]];
        if (taken[i])
            value -= history[${name}_row(state->now, lag[i] + 1)][signal[i]];
        if (!(value - value == $zero))
            return 0;
        a0[i] = (value - x_offset[i]) / x_scale[i];
    }
$layers
    for (i = 0; i < ${macro}_N_OUTPUTS; i++)
        if (!($last[i] <= $limit && $last[i] >= -$limit)) {
            state->diverged[$k] = 1;
            return 0;
        }
    for (i = 0; i < ${macro}_N_OUTPUTS; i++) {
        $real value = ${file_macro}_FMA$F($last[i], y_scale[i], y_offset[i]);
$added        row[${macro}_N_INPUTS + i] = value;
    }
    return 1;
}
""")

STEP = Template("""
${static}void ${name}_init$f(${name}_state$f *state)
{
    static const $real mean[] = {$means};
    int k, t, i;
    for (k = 0; k < ${macro}_N_NETWORKS; k++) {
        state->diverged[k] = 0;
        for (t = 0; t < ${macro}_N_ROWS; t++)
            for (i = 0; i < ${macro}_WIDTH; i++)
                state->history[k][t][i] = mean[i];
    }
    state->now = ${macro}_N_ROWS - 1;
}

${static}void ${name}_step$f(${name}_state$f *state, const $real *u, $real *y)
{
    int known[${macro}_N_NETWORKS], k, i;
    (void)u;
    state->now = state->now + 1 < ${macro}_N_ROWS ? state->now + 1 : 0;
    for (k = 0; k < ${macro}_N_NETWORKS; k++)
        for (i = 0; i < ${macro}_N_INPUTS; i++)
            state->history[k][state->now][i] = u[i];
$calls
    for (k = 0; k < ${macro}_N_NETWORKS; k++)
        for (i = 0; !known[k] && i < ${macro}_N_OUTPUTS; i++)
            state->history[k][state->now][${macro}_N_INPUTS + i] = ($real)$nan;
$said
}

${static}void ${name}_update$f(${name}_state$f *state, const $real *y)
{
    int k, i;
    for (k = 0; k < ${macro}_N_NETWORKS; k++) {
        $real *row = state->history[k][state->now] + ${macro}_N_INPUTS;
        int complete = 1;
        for (i = 0; i < ${macro}_N_OUTPUTS; i++) {
            if (y[i] - y[i] == $zero)
                row[i] = y[i];
            complete = complete && row[i] - row[i] == $zero;
        }
        if (complete)
            state->diverged[k] = 0;
    }
}
""")


def values_of(equations, name):
    """What the templates know of the model."""
    max_lag = equations.ensemble.max_lag
    rows = {"n_rows": max_lag + 1, "max_lag": max_lag}
    return common_values(equations, name) | rows


def source(equations, name):
    """The text of the file."""
    return framed(partial(OnLags, common=values_of(equations, name)), equations)


class OnLags(Precision):
    """Those of networks on lags."""

    kind, advice = "lagged model", ADVICE
    templates = Templates(USAGE, STATE, DEFINES, HELPERS)

    def implementation(self, equations):
        """All functions."""
        members = equations.ensemble.members
        text = ""
        for k, member in enumerate(members):
            text += self._network(k, member)
        value = "state->history[{{k}}][state->now][{macro}_N_INPUTS + {{o}}]"
        functions, said = self.outputs(equations.weights, value.format(**self.values))
        name, f = self.values["name"], self.suffix
        calls = [
            f"    known[{k}] = {name}_network_{k}{f}(state);"
            for k in range(len(members))
        ]
        text += functions + self.fill(
            STEP,
            means=self.numbers(np.concatenate(equations.means)),
            calls="\n".join(calls),
            said=said,
        )
        return text

    def _network(self, k, member):
        fitted, lags = member
        network, scaling = fitted.network, fitted.scaling
        used = network.units[0]
        fed = lags.difference & (lags.signal[used] >= lags.n_inputs)
        sizes = network.sizes.tolist()
        units = ", ".join(f"a{i}[{max(1, n)}]" for i, n in enumerate(sizes))
        last = f"a{len(sizes) - 1}"
        added = ""
        if lags.difference:
            macro, name = self.values["macro"], self.values["name"]
            added = (
                f"        value += history[{name}_row(state->now, 1)]"
                f"[{macro}_N_INPUTS + i];\n"
            )
        return self.fill(
            NETWORK,
            k=k,
            signal=integers(lags.signal[used]),
            lag=integers(lags.lag[used]),
            taken=integers(fed),
            x_offset=self.numbers(scaling.x_offset[used]),
            x_scale=self.numbers(scaling.x_scale[used]),
            theta=self.numbers(network.theta),
            y_offset=self.numbers(scaling.y_offset),
            y_scale=self.numbers(scaling.y_scale),
            units=units,
            n_regressors=sizes[0],
            layers=self.layers(network, sizes),
            last=last,
            limit=self.number(scaling.limit),
            added=added,
        )
