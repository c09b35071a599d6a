"""GEGLU as one writes it in PyTorch: computed at least in float32, in any float dtype."""

import torch


def geglu(gate, up, approximate="none"):
    wide = torch.promote_types(gate.dtype, torch.float32)
    return (torch.nn.functional.gelu(gate.to(wide), approximate=approximate) * up.to(wide)).to(gate.dtype)


def geglu_packed(x, approximate="none"):
    gate, up = x.chunk(2, dim=-1)
    return geglu(gate, up, approximate)
