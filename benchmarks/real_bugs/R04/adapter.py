"""attorch: ``ActFuncAutoGrad`` for hardshrink."""

import triton  # noqa: F401
from third_party import load

layers = load("attorch.act_layers")


def kernel(x, lambd):
    return layers.ActFuncAutoGrad.apply(x, f"hardshrink_{lambd}", 0.0, False)
