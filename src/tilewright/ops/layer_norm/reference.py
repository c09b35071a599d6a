"""Layer norm as one writes it in PyTorch: statistics at least in float32, in any float dtype."""

import torch


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    wide = torch.promote_types(x.dtype, torch.float32)
    centred = x.to(wide) - x.to(wide).mean(dim=-1, keepdim=True)
    y = centred * torch.rsqrt((centred * centred).mean(dim=-1, keepdim=True) + eps)
    if weight is not None:
        y = y * weight.to(wide)
    return (y if bias is None else y + bias.to(wide)).to(x.dtype)
