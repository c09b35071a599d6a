"""The catalogue: 25 hazards that public kernels were seen to fail at, and what meets each.

A hazard is met by functions of this folder, by gates of ``tilewright check`` on the operator's task and kernel (which run
the kernel itself, from its IR, without a GPU), or by both.
"""

from __future__ import annotations

HAZARD_NAMES = {
    1: "transposed, sliced, expanded views, also for incoming gradients",
    2: "sizes 0 and 1 in each dim",
    3: "sizes just off a tile, primes, below a tile",
    4: "grids beyond the limits of their axes",
    5: "offsets beyond 2**31 elements",
    6: "NaN, infinities, denormals, all-masked rows, ties",
    7: "probabilities that underflow",
    8: "every pattern of ignored elements",
    9: "each subset of inputs that require gradients",
    10: "incoming gradients that are not all the same",
    11: "backward twice; double backward",
    12: "inputs unchanged unless declared",
    13: "results that were never written, writes outside of them",
    14: "results or arguments that share memory",
    15: "another current device",
    16: "CUDA graph capture, replayed on new contents",
    17: "torch.compile, opcheck, strides of fake results",
    18: "the same bits each time",
    19: "a row alone is the row in a batch",
    20: "TF32 on and off",
    21: "every configuration, not the winner alone",
    22: "inputs of scale 1e-2, 1, 1e3",
    23: "autocast",
    24: "copies, subclasses, parameters, inference mode",
    25: "mixed dtypes refused by name",
}

GATES: dict[int, tuple[str, ...]] = {
    1: ("strides", "gradients"),
    2: ("shapes",),
    3: ("shapes", "masked lanes"),
    4: ("bounds", "launch limits"),
    5: ("bounds", "far offsets"),
    6: ("special values",),
    7: ("special values", "values"),
    8: ("values", "shapes"),
    9: ("gradients",),
    10: ("gradients",),
    12: ("purity",),
    13: ("written", "coverage", "bounds"),
    16: ("graph replay",),
    18: ("determinism", "races"),
    19: ("batch invariance",),
    21: ("configurations", "device configurations"),
    22: ("values", "accumulation"),
}
