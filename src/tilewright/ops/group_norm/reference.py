"""Group norm as one writes it in PyTorch: statistics at least in float32, in any float dtype."""

import math

import torch


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    wide = torch.promote_types(x.dtype, torch.float32)
    rows = x.to(wide).reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    centred = rows - rows.mean(dim=-1, keepdim=True)
    y = centred * torch.rsqrt((centred * centred).mean(dim=-1, keepdim=True) + eps)
    y = y.reshape(x.shape)
    each = (-1, *[1] * (x.dim() - 2))
    if weight is not None:
        y = y * weight.to(wide).reshape(each)
    return (y if bias is None else y + bias.to(wide).reshape(each)).to(x.dtype)
