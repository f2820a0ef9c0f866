"""From a problem to learned networks.

A `problem` is run through `stages` from several `restarts`, `cycle` by cycle. A cycle
combines `likelihood`, `prior`, `curvature` and the fit of the `weights`. `selection`
ranks and weights what was learned; `result` is what is given back.
"""
