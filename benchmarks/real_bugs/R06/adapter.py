"""bitsandbytes: ``dequantize_4bit_impl``."""

import torch
import triton  # noqa: F401
from third_party import load

ops = load("bitsandbytes.backends.triton.kernels_4bit")


def kernel(packed, absmax):
    out = torch.empty((2 * packed.numel(),), device=packed.device, dtype=absmax.dtype)
    ops.dequantize_4bit_impl(packed, absmax, 64, "fp4", absmax.dtype, out)
    return out
