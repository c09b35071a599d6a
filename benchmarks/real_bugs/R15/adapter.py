"""unsloth: ``Fast_RoPE_Embedding_QK``, which may work in place, so it is given copies. Stand-ins for the package's
helpers: block sizes, the current device."""

import contextlib

import triton
from third_party import load

ops = load(
    "unsloth.kernels.rope_embedding",
    unsloth__device_type={"DEVICE_COUNT": 1},
    unsloth__kernels__utils={
        "calculate_settings": lambda n: (triton.next_power_of_2(n), 4),
        "torch_gpu_device": lambda device: contextlib.nullcontext(),
        "torch_device_stream": None,
    },
)


def kernel(q, k, angles):
    q, k, angles = q.clone(), k.clone(), angles.contiguous()
    return ops.Fast_RoPE_Embedding_QK.apply(q, k, angles.cos(), angles.sin(), None)
