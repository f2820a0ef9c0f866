"""What every model that is written as C has: its frame, activations, literals.

The tanh is that of `kernels.activations`, operation by operation.
"""

import re
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from ..kernels.activations import RELU, TANH
from ..prediction.ensemble import ROUNDING

# What surrounds the functions of a model of any kind.
FRAME = Template("""\
/* $name: a fitted $kind, written by skbayesnn. C99, no dependencies.

   Inputs:  $inputs
   Outputs: $outputs

$usage

   To declare the functions elsewhere: #define ${macro}_DECLARATIONS, then include this
   file. ${advice}Never compile with -ffast-math: NaN must stay NaN. */

#ifndef ${macro}_INCLUDED
#define ${macro}_INCLUDED

#define ${macro}_N_INPUTS $n_inputs
#define ${macro}_N_OUTPUTS $n_outputs
#define ${macro}_N_NETWORKS $n_networks
$defines

$declarations
$prototypes
#endif

#ifndef ${macro}_DECLARATIONS

#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math removes NaN, by which missing and diverged values are recognised"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__ARM_FEATURE_FMA)
#include <math.h>
#define ${macro}_FMA(a, b, c) fma((a), (b), (c))
#define ${macro}_FMAF(a, b, c) fmaf((a), (b), (c))
#else
#define ${macro}_FMA(a, b, c) ((a) * (b) + (c))
#define ${macro}_FMAF(a, b, c) ((a) * (b) + (c))
#endif
$helpers$implementations
#endif
""")

# The functions of every model.
PROTOTYPES = Template("""\
void ${name}_init$f(${name}_state$f *state);
void ${name}_step$f(${name}_state$f *state, const $real *u, $real *y);
void ${name}_update$f(${name}_state$f *state, const $real *y);
""")

# expm1(2 h) = 2^k expm1(r) + 2^k - 1 and tanh = e / (e + 2): see kernels/activations.py
ACTIVATE = Template("""
static void ${file}_activate$f($real *h, int n)
{
    int s;
    for (s = 0; s < n; s++) {
        $real y = $two * h[s], power, k, r, p, e;
        $integer bits;
        y = y > $clip ? $clip : y;
        y = y < -$clip ? -$clip : y;
        power = ${file_macro}_FMA$F(y, $log2e, $round);
        k = power - $round;
        r = ${file_macro}_FMA$F(-k, $ln2_high, y);
        r = ${file_macro}_FMA$F(-k, $ln2_low, r);
        p = $first;
$polynomial
        e = ${file_macro}_FMA$F(p * r, r, r);
        memcpy(&bits, &power, sizeof bits);
        bits = (bits << $mantissa) + (($integer)$bias << $mantissa);
        memcpy(&power, &bits, sizeof bits);
        e = ${file_macro}_FMA$F(power, e, power - $one);
        h[s] = e / (e + $two);
    }
}
""")

LOGISTIC = Template("""
/* The logistic function is a tanh of half the argument. */
static void ${file}_logistic$f($real *h, int n)
{
    int s;
    for (s = 0; s < n; s++)
        h[s] *= $half;
    ${file}_activate$f(h, n);
    for (s = 0; s < n; s++)
        h[s] = $half + $half * h[s];
}
""")

RELU_TEXT = Template("""
static void ${file}_relu$f($real *h, int n)
{
    int s;
    for (s = 0; s < n; s++)
        h[s] = h[s] < $zero ? $zero : h[s];
}
""")

LAYER = Template("""
/* h += W'x, where W holds the weights of each input side by side. */
static void ${file}_add$f(const $real *w, int n_in, int n_out, const $real *x, $real *h)
{
    int i, j;
    for (i = 0; i < n_in; i++)
        for (j = 0; j < n_out; j++)
            h[j] = ${file_macro}_FMA$F(x[i], w[i * n_out + j], h[j]);
}
""")

MEDIAN = Template("""
/* Weighted median over the networks of one value of the newest row. */
static $real ${name}_median$f(const ${name}_state$f *state, int place)
{
    static const $real weight[] = {$weights};
    $real total = $zero, low = $zero, high = $zero;
    int has_low = 0, has_high = 0, k, j;
    for (k = 0; k < ${macro}_N_NETWORKS; k++) {
        const $real value = $value_k;
        if (value - value == $zero)
            total += weight[k];
    }
    if (total < $half)
        return ($real)$nan;
    for (k = 0; k < ${macro}_N_NETWORKS; k++) {
        const $real value = $value_k;
        $real below = $zero;
        for (j = 0; j < ${macro}_N_NETWORKS; j++)
            if ($value_j <= value)
                below += weight[j];
        if (below >= $less * total && (!has_low || value < low)) {
            low = value;
            has_low = 1;
        }
        if (below > $more * total && (!has_high || value < high)) {
            high = value;
            has_high = 1;
        }
    }
    return $half * (low + high);
}
""")

# What a step says: the outputs of its network, their median, or those of all networks.
ONE = Template("""\
    for (i = 0; i < ${macro}_N_OUTPUTS; i++)
        y[i] = $value;""")

COMBINED = Template("""\
    for (i = 0; i < ${macro}_N_OUTPUTS; i++)
        y[i] = ${name}_median$f(state, i);""")

EVERY = Template("""\
    for (k = 0; k < ${macro}_N_NETWORKS; k++)
        for (i = 0; i < ${macro}_N_OUTPUTS; i++)
            y[k * ${macro}_N_OUTPUTS + i] = $value;""")

# what differs between the precisions, the polynomial of expm1 from the highest power
DOUBLE = {
    "real": "double",
    "f": "",
    "F": "",
    "integer": "uint64_t",
    "mantissa": 52,
    "bias": 1023,
    "clip": 44.0,
    "log2e": 1.4426950408889634,
    "round": 6755399441055744.0,
    "ln2_high": 6.93147180369123816490e-01,
    "ln2_low": 1.90821492927058770002e-10,
    "highest": 13,
}
FLOAT = {
    "real": "float",
    "f": "f",
    "F": "F",
    "integer": "uint32_t",
    "mantissa": 23,
    "bias": 127,
    "clip": 20.0,
    "log2e": 1.4426950408889634,
    "round": 12582912.0,
    "ln2_high": 0.693359375,
    "ln2_low": -2.12194440e-4,
    "highest": 8,
}
WIDTH = 76


def write(source, path, name):
    """Write the text that ``source`` gives for a name; returns the path."""
    path = Path(path)
    name = _identifier(path.stem if name is None else name)
    path.write_text(source(name), encoding="utf-8", newline="\n")
    return path


def common_values(equations, name):
    """What all templates know."""
    return {
        "file": name,
        "file_macro": name.upper(),
        "name": name,
        "macro": name.upper(),
        "inputs": _comment(equations.input_names),
        "outputs": _comment(equations.output_names),
        "n_inputs": equations.n_inputs,
        "n_outputs": equations.n_outputs,
        "n_networks": len(equations.ensemble.members),
    }


def framed(make, equations):
    """The file of a model; ``make`` takes settings, and returns its `Precision`."""
    precisions = [make(settings) for settings in (DOUBLE, FLOAT)]
    first, members = precisions[0], equations.ensemble.members
    return FRAME.substitute(
        first.values,
        kind=first.kind,
        advice=first.advice,
        usage=first.fill(first.templates.usage),
        defines=first.defines(),
        helpers=first.helpers(),
        declarations="\n".join(p.declarations() for p in precisions),
        prototypes="\n".join(p.fill(PROTOTYPES) for p in precisions),
        implementations="".join(
            p.layer_functions(members) + p.implementation(equations) for p in precisions
        ),
    )


def _identifier(name):
    """A name of C for what a file or a user calls the model."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(
            "The functions need a name of letters, digits and underscores that does "
            f"not start with a digit; got {name!r}. Pass name=, or another file name."
        )
    return name


def _comment(names):
    """Names that cannot end a comment."""
    return ", ".join(map(str, names)).replace("*/", "* /") or "none"


class Templates(NamedTuple):
    """What models of a kind have besides their functions."""

    usage: Template
    state: Template
    defines: Template = Template("")
    helpers: Template = Template("")


class Precision:
    """Texts in one precision.

    ``kind`` is what models are called, ``advice`` on how they are compiled.

    With ``is_part``, the model is a part of the file: its functions are static, and its
    step gives the outputs of all its networks, one after the other.
    """

    kind, advice, templates = "", "", None

    def __init__(self, settings, common, is_part=False):
        self.is_part = is_part
        self.suffix = settings["f"]
        self.type = np.float32 if self.suffix else np.float64
        real = {k: self.number(v) for k, v in settings.items() if type(v) is float}
        constants = {"zero": 0.0, "half": 0.5, "one": 1.0, "two": 2.0}
        real |= {key: self.number(value) for key, value in constants.items()}
        real |= {
            "less": self.number(0.5 - ROUNDING),
            "more": self.number(0.5 + ROUNDING),
        }
        if self.suffix:
            # nearer to one half than single precision can tell
            real |= {"less": self.number(0.499999), "more": self.number(0.500001)}
        self.values = common | settings | real
        self.values["static"] = "static " if is_part else ""
        self.values["nan"] = f"({real['zero']} / {real['zero']})"

    def number(self, value):
        """A literal that is read as exactly this number."""
        if np.isinf(value):
            return self.number(np.copysign(np.finfo(self.type).max, value))
        text = str(self.type(value)) if self.suffix else repr(float(value))
        return text + self.suffix

    def numbers(self, values):
        """A list of literals, at least one: C has no empty arrays."""
        values = np.ravel(values)
        literals = [self.number(value) for value in values] or [self.number(0.0)]
        return _wrapped(literals)

    def defines(self):
        """Macros of a model."""
        return self.fill(self.templates.defines)

    def helpers(self):
        """Functions of both precisions."""
        return self.fill(self.templates.helpers)

    def declarations(self):
        """The type of the state of a model."""
        return self.fill(self.templates.state)

    def fill(self, template, **values):
        return template.substitute(self.values, **values)

    def layer_functions(self, members):
        """What the networks of a file share: activations, and sums over a layer."""
        return self._activations(members) + self.fill(LAYER)

    def _activations(self, members):
        hidden = [m.fitted.network for m in members if not m.fitted.network.linear]
        codes = {int(network.activation) for network in hidden}
        text = self.fill(RELU_TEXT) if RELU in codes else ""
        if codes - {RELU}:
            factorials = np.cumprod(np.arange(1.0, self.values["highest"] + 1.0))
            powers = 1.0 / factorials[::-1]
            macro, F = self.values["file_macro"], self.values["F"]
            rows = [
                f"        p = {macro}_FMA{F}(p, r, {self.number(c)});"
                for c in powers[1:-1]
            ]
            first = self.number(powers[0])
            text += self.fill(ACTIVATE, first=first, polynomial="\n".join(rows))
        return text + (self.fill(LOGISTIC) if codes - {RELU, TANH} else "")

    def outputs(self, weights, value):
        """The functions behind the outputs, and the lines of a step that give them.

        ``value`` is the C of an output of a network, with the places {k} and {o}.
        """
        if self.is_part:
            return "", self.fill(EVERY, value=value.format(k="k", o="i"))
        if len(weights) == 1:
            return "", self.fill(ONE, value=value.format(k="0", o="i"))
        return self.median(weights, value), self.fill(COMBINED)

    def median(self, weights, value):
        """The function; ``value`` as in `outputs`."""
        return self.fill(
            MEDIAN,
            weights=self.numbers(weights),
            value_k=value.format(k="k", o="place"),
            value_j=value.format(k="j", o="place"),
        )

    def layers(self, network, sizes):
        """Calls that run through the layers."""
        file, f = self.values["file"], self.suffix
        kinds = {TANH: "activate", RELU: "relu"}
        activate = kinds.get(int(network.activation), "logistic")
        lines, w, n_layers = [], 0, len(sizes) - 1
        for layer in range(n_layers):
            n_in, n_out = sizes[layer : layer + 2]
            bias, above = w + n_in * n_out, f"a{layer + 1}"
            lines.append(f"for (i = 0; i < {n_out}; i++)")
            lines.append(f"    {above}[i] = theta[{bias} + i];")
            arguments = f"theta + {w}, {n_in}, {n_out}, a{layer}, {above}"
            lines.append(f"{file}_add{f}({arguments});")
            if layer < n_layers - 1:
                lines.append(f"{file}_{activate}{f}({above}, {n_out});")
            w = bias + n_out
        if network.skip:
            arguments = f"theta + {w}, {sizes[0]}, {sizes[-1]}, a0, a{n_layers}"
            lines.append(f"{file}_add{f}({arguments});")
        return "\n".join(f"    {line}" for line in lines)


def integers(values):
    return _wrapped([str(int(value)) for value in values] or ["0"])


def _wrapped(literals):
    """Literals, separated by commas, in lines of a legible length."""
    lines = [""]
    for literal in literals:
        if len(lines[-1]) + len(literal) > WIDTH:
            lines.append("")
        lines[-1] += f"{literal}, "
    return "\n        ".join(line.rstrip() for line in lines).rstrip(",")
