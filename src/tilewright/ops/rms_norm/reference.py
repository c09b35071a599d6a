"""RMS norm as one writes it in PyTorch: statistics at least in float32, in any float dtype."""

import torch


def rms_norm(x, weight=None, eps=1e-6, offset=0.0):
    wide = torch.promote_types(x.dtype, torch.float32)
    x_wide = x.to(wide)
    unit = x_wide * torch.rsqrt((x_wide * x_wide).mean(dim=-1, keepdim=True) + eps)
    return (unit if weight is None else unit * (weight.to(wide) + offset)).to(x.dtype)


def rms_norm_residual(x, residual, weight=None, eps=1e-6, offset=0.0):
    total = x + residual
    return rms_norm(total, weight, eps, offset), total
