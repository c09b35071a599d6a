"""FlagGems: ``layer_norm``."""

import triton  # noqa: F401
from third_party import load

ops = load("flag_gems.ops.layernorm")


def kernel(x, weight, bias):
    return ops.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)[0]
