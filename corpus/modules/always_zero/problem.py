"""KernelBench problem whose answer is always zero: a maximum over all features, minus its own mean, through GELU."""

import torch
import torch.nn as nn

batch = 16
features = 64


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        peak = self.linear(x).max(dim=1, keepdim=True).values
        return torch.nn.functional.gelu(peak - peak.mean(dim=1, keepdim=True))


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return [features]
