"""KernelBench format: linear layer, erf GELU, then a scale."""

import torch
import torch.nn as nn

batch = 32
in_features = 64
out_features = 128
scale = 2


class Model(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x)) * self.scale


def get_inputs():
    return [torch.rand(batch, in_features)]


def get_init_inputs():
    return [in_features, out_features, scale]
