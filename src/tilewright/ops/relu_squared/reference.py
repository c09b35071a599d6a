"""Squared ReLU as one writes it in PyTorch: computed at least in float32, in any float dtype."""

import torch


def relu_squared(x):
    return torch.relu(x.to(torch.promote_types(x.dtype, torch.float32))).square().to(x.dtype)
