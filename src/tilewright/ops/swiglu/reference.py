"""SwiGLU as one writes it in PyTorch: computed at least in float32, in any float dtype."""

import torch


def swiglu(gate, up):
    wide = torch.promote_types(gate.dtype, torch.float32)
    return (torch.nn.functional.silu(gate.to(wide)) * up.to(wide)).to(gate.dtype)


def swiglu_packed(x):
    return swiglu(*x.chunk(2, dim=-1))
