"""An ensemble of lags and of hidden states as one file of C99.

Networks on lags are one part of the file, and those with each number of hidden states
another: the texts of `c_source` and `c_filter`, in functions of their own. A step of
the model is one of each part, and the weighted median of the outputs of all networks.
"""

from collections.abc import Callable
from functools import partial
from string import Template
from typing import NamedTuple

import numpy as np

from ..prediction.state_forecast import belief_after
from . import c_filter, c_source
from .c_frame import Precision, Templates, common_values, framed
from .equations import Equations

USAGE = Template("""\
   ${name}_state s;            ${name}_statef is the same in single precision
   ${name}_init(&s);           inputs and outputs at their training means
   ${name}_step(&s, u, y);     predicts the outputs y of the row whose inputs are u
   ${name}_update(&s, y);      takes what was measured in this row; NaN: not measured

   Networks on lags, and extended Kalman filters of networks with hidden states. Without
   an update the next step goes on freely; for filters, a second one of the same row
   counts as another measurement. Outputs are NaN where a value is missing, and from
   where the runs leave the plausible range on.""")

# Those of the file are in its frame; a part has networks of its own.
PART_DEFINES = Template("""\
#define ${macro}_N_INPUTS ${file_macro}_N_INPUTS
#define ${macro}_N_OUTPUTS ${file_macro}_N_OUTPUTS
#define ${macro}_N_NETWORKS $n_networks
""")

STATE = Template("""
typedef struct {
$fields
    $real y[${macro}_N_NETWORKS * ${macro}_N_OUTPUTS];
} ${name}_state$f;
""")

FUNCTIONS = Template("""
void ${name}_init$f(${name}_state$f *state)
{
    memset(state, 0, sizeof *state);
$inits
}

void ${name}_step$f(${name}_state$f *state, const $real *u, $real *y)
{
    int i;
$steps
$said
}

void ${name}_update$f(${name}_state$f *state, const $real *y)
{
$updates
}
""")


class Part(NamedTuple):
    """The networks on lags, or those with the same number of hidden states.

    field : name of its state in that of the model
    first : number of its first network
    equations : Equations
    make : takes settings, and returns its `Precision`
    """

    field: str
    first: int
    equations: Equations
    make: Callable


def source(equations, groups, name):
    """The text of the file.

    Parameters
    ----------
    equations : Equations
        Of all networks.
    groups : list of Equations
        Of those on lags, and with each number of hidden states; the weights are those
        of the networks in the whole ensemble.
    """
    parts, first = [], 0
    for group in groups:
        parts.append(_part(group, name, first, equations.n_rows_read))
        first += len(group.weights)
    common = common_values(equations, name)
    return framed(partial(_OfParts, common=common, parts=parts), equations)


def _part(equations, name, first, n_rows):
    """``n_rows`` at the training means tell hidden states what they are."""
    kind, make, field = c_source, c_source.OnLags, "lags"
    if equations.filters:
        kind, field = c_filter, f"states{equations.n_hidden}"
        rows = [np.tile(mean, (n_rows, 1)) for mean in equations.means]
        beliefs = [belief_after(one, *rows) for one in equations.filters]
        make = partial(c_filter.OfStates, beliefs=beliefs)
    part = f"{name}_{field}"
    common = kind.values_of(equations, name) | {"name": part, "macro": part.upper()}
    make = partial(make, common=common, is_part=True)
    return Part(field, first, equations, make)


class _OfParts(Precision):
    """Those of the whole model."""

    kind, templates = "ensemble of lags and hidden states", Templates(USAGE, STATE)

    def __init__(self, settings, common, parts):
        super().__init__(settings, common)
        self.parts = [(part, part.make(settings)) for part in parts]

    def defines(self):
        """Macros of the parts."""
        return "\n".join(
            one.fill(PART_DEFINES) + one.defines() for _, one in self.parts
        )

    def helpers(self):
        """Those of the parts."""
        return "".join(one.helpers() for _, one in self.parts)

    def declarations(self):
        """The types of the states of the parts, and of the model."""
        fields = self._lines("    {type} {field};")
        states = [one.declarations() for _, one in self.parts]
        return "\n".join(states) + self.fill(STATE, fields=fields)

    def implementation(self, equations):
        """All functions; those of the parts are static."""
        text = "".join(one.implementation(part.equations) for part, one in self.parts)
        weights = np.concatenate([part.equations.weights for part, _ in self.parts])
        n_outputs = f"{self.values['macro']}_N_OUTPUTS"
        value = f"state->y[{{k}} * {n_outputs} + {{o}}]"
        functions, said = self.outputs(weights, value)
        outputs = f"state->y + {{first}} * {n_outputs}"
        text += functions + self.fill(
            FUNCTIONS,
            inits=self._calls("init", "&state->{field}"),
            steps=self._calls("step", f"&state->{{field}}, u, {outputs}"),
            updates=self._calls("update", "&state->{field}, y"),
            said=said,
        )
        return text

    def _calls(self, function, arguments):
        return self._lines(f"    {{name}}_{function}{self.suffix}({arguments});")

    def _lines(self, line):
        """A line for each part."""
        return "\n".join(
            line.format(
                name=one.values["name"],
                type=f"{one.values['name']}_state{self.suffix}",
                field=part.field,
                first=part.first,
            )
            for part, one in self.parts
        )
