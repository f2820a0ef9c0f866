"""A fitted model with hidden states as one file of C99: its extended Kalman filter.

The code does what `kernels.state_filter` does row by row. Jacobians are carried forward
through the layers, one state after the other, where the kernel goes backward, so
outputs are those of a stream but for rounding.
"""

from functools import partial
from string import Template

import numpy as np

from ..kernels.activations import RELU, TANH
from ..records.state_runs import STATE_LIMIT
from ..scaling import DIVERGENCE_LIMIT
from .c_frame import Precision, Templates, common_values, framed, integers

USAGE = Template("""\
   ${name}_state s;            ${name}_statef is the same in single precision
   ${name}_init(&s);           hidden states at their mean in the training record
   ${name}_step(&s, u, y);     predicts the outputs y of the row whose inputs are u
   ${name}_update(&s, y);      takes what was measured in this row; NaN: not measured

   An extended Kalman filter. Without an update the next step goes on freely; a second
   one of the same row counts as another measurement. s.mean and s.covariance hold what
   is known of the states: to start elsewhere, write those of a StateEstimate there
   behind ${name}_init. Outputs are NaN where an input is missing, and from where a run
   leaves the plausible range on, until all outputs of a row are measured.""")

DEFINES = Template("""\
#define ${macro}_N_STATES $n_hidden
#define ${macro}_N_VALUES (${macro}_N_STATES + ${macro}_N_OUTPUTS)""")

STATE = Template("""\
typedef struct {
    $real mean[${macro}_N_NETWORKS][${macro}_N_STATES];
    $real covariance[${macro}_N_NETWORKS][${macro}_N_STATES][${macro}_N_STATES];
    $real u[${macro}_N_INPUTS + 1];
    $real y[${macro}_N_NETWORKS][${macro}_N_OUTPUTS];
    $real values[${macro}_N_NETWORKS][${macro}_N_VALUES];
    $real jacobian[${macro}_N_NETWORKS][${macro}_N_VALUES][${macro}_N_STATES];
    int begun;
    unsigned char lost[${macro}_N_NETWORKS];
} ${name}_state$f;
""")

CONSTANTS = Template("""
static const $real ${name}_y_offset$f[] = {$y_offset};
static const $real ${name}_y_scale$f[] = {$y_scale};
/* Of each network: where the states begin, and the noise of both equations; 0 degrees
   of freedom stand for a normal distribution. */
static const $real ${name}_means$f[] = {$means};
static const $real ${name}_covariances$f[] = {$covariances};
static const $real ${name}_process$f[] = {$process};
static const $real ${name}_measurement$f[] = {$measurement};
static const $real ${name}_nu$f[] = {$nu};
""")

STARTS = Template("""
/* Where the first row begins, if not where the states begin. */
static const $real ${name}_first_means$f[] = {$means};
static const $real ${name}_first_covariances$f[] = {$covariances};
""")

NETWORK = Template("""
/* Network $k: the row at the mean of its states; 0 if it is missing or diverged. */
static int ${name}_network_$k$f(${name}_state$f *state)
{
    static const int state_of[] = {$state_of};
    static const int input_of[] = {$input_of};
    static const $real x_offset[] = {$x_offset};
    static const $real x_scale[] = {$x_scale};
    static const $real theta[] = {
        $theta};
    $real $units;
    $real $tangents;
    int i, s;
    for (i = 0; i < $n_features; i++) {
        const $real value = state_of[i] < 0 ? state->u[input_of[i]]
                                            : state->mean[$k][state_of[i]];
        a0[i] = (value - x_offset[i]) / x_scale[i];
    }
$layers
    for (i = 0; i < ${macro}_N_VALUES; i++) {
        const $real limit = i < ${macro}_N_STATES ? $state_limit : $limit;
        if (!($last[i] <= limit && $last[i] >= -limit))
            return 0;
    }
    for (i = 0; i < ${macro}_N_VALUES; i++)
        state->values[$k][i] = $last[i];
    for (s = 0; s < ${macro}_N_STATES; s++) {
        for (i = 0; i < $n_features; i++)
            t0[i] = state_of[i] == s ? $one / x_scale[i] : $zero;
$slopes
        for (i = 0; i < ${macro}_N_VALUES; i++)
            state->jacobian[$k][i][s] = $last_tangent[i];
    }
    return 1;
}
""")

FILTER = Template("""
static int ${name}_network$f(${name}_state$f *state, int k)
{
    switch (k) {
$cases
    default:
        return 0;
    }
}

static void ${name}_begin$f(${name}_state$f *state, int k, const $real *means,
    const $real *covariances)
{
    const int n = ${macro}_N_STATES;
    int i, j;
    for (i = 0; i < n; i++) {
        state->mean[k][i] = means[k * n + i];
        for (j = 0; j < n; j++)
            state->covariance[k][i][j] = covariances[(k * n + i) * n + j];
    }
    state->lost[k] = 0;
}

/* From the row predicted last to the next one: x = f(x, u), P = A P A' + Q. */
static void ${name}_go_on$f(${name}_state$f *state, int k)
{
    const int n = ${macro}_N_STATES;
    $real product[${macro}_N_STATES][${macro}_N_STATES];
    int i, j, h;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) {
            product[i][j] = $zero;
            for (h = 0; h < n; h++)
                product[i][j] += state->jacobian[k][i][h] * state->covariance[k][h][j];
        }
    for (i = 0; i < n; i++) {
        state->mean[k][i] = state->values[k][i];
        for (j = 0; j <= i; j++) {
            $real total = ${name}_process$f[(k * n + i) * n + j];
            for (h = 0; h < n; h++)
                total += product[i][h] * state->jacobian[k][j][h];
            state->covariance[k][i][j] = total;
            state->covariance[k][j][i] = total;
        }
    }
}

/* Take the measured outputs of the row predicted last, one after the other. */
static int ${name}_take$f(${name}_state$f *state, int k, const $real *y)
{
    const int n = ${macro}_N_STATES;
    $real before[${macro}_N_STATES], gain[${macro}_N_STATES];
    int taken = 0, o, i, j;
    for (i = 0; i < n; i++)
        before[i] = state->mean[k][i];
    for (o = 0; o < ${macro}_N_OUTPUTS; o++) {
        const $real *c = state->jacobian[k][n + o];
        const $real noise = ${name}_measurement$f[k * ${macro}_N_OUTPUTS + o];
        const $real nu = ${name}_nu$f[k];
        $real error = (y[o] - ${name}_y_offset$f[o]) / ${name}_y_scale$f[o];
        $real of_state = $zero, variance, weight = $one;
        if (!(y[o] - y[o] == $zero))
            continue;
        taken = 1;
        error -= state->values[k][n + o];
        for (i = 0; i < n; i++) {
            error -= c[i] * (state->mean[k][i] - before[i]);
            gain[i] = $zero;
            for (j = 0; j < n; j++)
                gain[i] += state->covariance[k][i][j] * c[j];
        }
        for (i = 0; i < n; i++)
            of_state += c[i] * gain[i];
        variance = of_state + noise;
        if (nu > $zero)
            weight = (nu + $one) / (nu - $two + error * error / variance);
        variance = of_state + noise / weight;
        if (!(variance > $zero))
            continue;
        for (i = 0; i < n; i++) {
            state->mean[k][i] += gain[i] / variance * error;
            for (j = 0; j < n; j++)
                state->covariance[k][i][j] -= gain[i] * gain[j] / variance;
        }
    }
    return taken;
}

${static}void ${name}_init$f(${name}_state$f *state)
{
    int k;
    memset(state, 0, sizeof *state);
    for (k = 0; k < ${macro}_N_NETWORKS; k++)
        ${name}_begin$f(state, k, ${name}_${first}means$f,
                        ${name}_${first}covariances$f);
}

${static}void ${name}_step$f(${name}_state$f *state, const $real *u, $real *y)
{
    int k, i;
    (void)u;
    for (k = 0; k < ${macro}_N_NETWORKS; k++)
        if (state->begun && !state->lost[k])
            ${name}_go_on$f(state, k);
    for (i = 0; i < ${macro}_N_INPUTS; i++)
        state->u[i] = u[i];
    state->begun = 1;
    for (k = 0; k < ${macro}_N_NETWORKS; k++) {
        if (state->lost[k] || !${name}_network$f(state, k))
            state->lost[k] = 1;
        for (i = 0; i < ${macro}_N_OUTPUTS; i++)
            state->y[k][i] = state->lost[k] ? ($real)$nan
                : ${file_macro}_FMA$F(state->values[k][${macro}_N_STATES + i],
                                      ${name}_y_scale$f[i], ${name}_y_offset$f[i]);
    }
$said
}

${static}void ${name}_update$f(${name}_state$f *state, const $real *y)
{
    int complete = state->begun, k, i;
    for (i = 0; i < ${macro}_N_OUTPUTS; i++)
        complete = complete && y[i] - y[i] == $zero;
    for (k = 0; state->begun && k < ${macro}_N_NETWORKS; k++) {
        if (state->lost[k]) {
            if (!complete)
                continue;
            ${name}_begin$f(state, k, ${name}_means$f, ${name}_covariances$f);
            if (!${name}_network$f(state, k)) {
                state->lost[k] = 1;
                continue;
            }
        }
        if (${name}_take$f(state, k, y) && !${name}_network$f(state, k))
            state->lost[k] = 1;
    }
}
""")

# Derivatives of activations by their values.
SLOPES = {TANH: "$one - $a * $a", RELU: "$a > $zero ? $one : $zero"}
LOGISTIC_SLOPE = "$a * ($one - $a)"


def values_of(equations, name):
    """What the templates know of the model."""
    return common_values(equations, name) | {"n_hidden": equations.n_hidden}


def source(equations, name):
    """The text of the file, from `Equations` with filters."""
    return framed(partial(OfStates, common=values_of(equations, name)), equations)


class OfStates(Precision):
    """Texts of networks with hidden states.

    ``beliefs`` are the mean and covariance of the states of each network in the first
    row; None if they begin where they begin anew.
    """

    kind, templates = "model with hidden states", Templates(USAGE, STATE, DEFINES)

    def __init__(self, settings, common, is_part=False, beliefs=None):
        super().__init__(settings, common, is_part)
        self.beliefs = beliefs

    def implementation(self, equations):
        """All functions."""
        filters, members = equations.filters, equations.ensemble.members
        scaling = filters[0].fitted.scaling
        nus = np.array([one.fitted.degrees_of_freedom for one in filters])
        text = self.fill(
            CONSTANTS,
            y_offset=self.numbers(scaling.y_offset),
            y_scale=self.numbers(scaling.y_scale),
            means=self.numbers([one.mean for one in filters]),
            covariances=self.numbers([one.covariance for one in filters]),
            process=self.numbers([one.process for one in filters]),
            measurement=self.numbers([one.measurement for one in filters]),
            nu=self.numbers(np.where(np.isfinite(nus), nus, 0.0)),
        )
        for k, member in enumerate(members):
            text += self._network(k, member, equations.n_hidden)
        functions, said = self.outputs(equations.weights, "state->y[{k}][{o}]")
        name, f = self.values["name"], self.suffix
        cases = [
            f"    case {k}:\n        return {name}_network_{k}{f}(state);"
            for k in range(len(members))
        ]
        values = {"cases": "\n".join(cases), "said": said, "first": ""}
        if self.beliefs is not None:
            means, covariances = map(self.numbers, zip(*self.beliefs, strict=True))
            text += self.fill(STARTS, means=means, covariances=covariances)
            values["first"] = "first_"
        return text + functions + self.fill(FILTER, **values)

    def _network(self, k, member, n_hidden):
        network, scaling = member.fitted.network, member.fitted.scaling
        used, sizes = network.units[0], network.sizes.tolist()
        is_state = used < n_hidden
        tangents = ", ".join(f"t{i}[{max(1, n)}]" for i, n in enumerate(sizes))
        return self.fill(
            NETWORK,
            k=k,
            state_of=integers(np.where(is_state, used, -1)),
            input_of=integers(np.where(is_state, 0, used - n_hidden)),
            x_offset=self.numbers(scaling.x_offset[used]),
            x_scale=self.numbers(scaling.x_scale[used]),
            theta=self.numbers(network.theta),
            units=tangents.replace("t", "a"),
            tangents=tangents,
            n_features=sizes[0],
            layers=self.layers(network, sizes),
            slopes=self._tangents(network, sizes),
            last=f"a{len(sizes) - 1}",
            last_tangent=f"t{len(sizes) - 1}",
            state_limit=self.number(STATE_LIMIT),
            limit=self.number(DIVERGENCE_LIMIT),
        )

    def _tangents(self, network, sizes):
        """Calls that carry the derivatives by one state through the layers."""
        slope = SLOPES.get(int(network.activation), LOGISTIC_SLOPE)
        file, f = self.values["file"], self.suffix
        lines, w, n_layers = [], 0, len(sizes) - 1
        for layer in range(n_layers):
            n_in, n_out = sizes[layer : layer + 2]
            above = f"t{layer + 1}"
            lines.append(f"for (i = 0; i < {n_out}; i++)")
            lines.append(f"    {above}[i] = {self.values['zero']};")
            arguments = f"theta + {w}, {n_in}, {n_out}, t{layer}, {above}"
            lines.append(f"{file}_add{f}({arguments});")
            if layer < n_layers - 1:
                text = Template(slope).substitute(self.values, a=f"a{layer + 1}[i]")
                lines.append(f"for (i = 0; i < {n_out}; i++)")
                lines.append(f"    {above}[i] *= {text};")
            w += (n_in + 1) * n_out
        if network.skip:
            arguments = f"theta + {w}, {sizes[0]}, {sizes[-1]}, t0, t{n_layers}"
            lines.append(f"{file}_add{f}({arguments});")
        return "\n".join(f"        {line}" for line in lines)
