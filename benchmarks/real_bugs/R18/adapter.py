"""FlagGems: ``sum`` over all elements. Stand-in for the package's runtime, which looks for a device at import."""

import torch
import triton
from third_party import load

ops = load(
    "flag_gems.ops.sum",
    flag_gems__runtime={
        "torch_device_fn": torch.cuda,
        "get_heuristic_config": lambda name: {},
        "get_tuned_config": lambda name: [triton.Config({})],
    },
    flag_gems__utils={"dim_compress": None, "libentry": lambda: lambda fn: fn, "libtuner": triton.autotune},
    flag_gems__utils__triton_lang_helper={"use_tl_extra": lambda fn: fn},
)


def kernel(x):
    return ops.sum(x)
