"""KernelBench problem: x + bias, then HardSwish."""

import torch
import torch.nn as nn

batch = 32
features = 512


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x + self.bias
        return x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0


def get_inputs():
    return [torch.rand(batch, features)]


def get_init_inputs():
    return [features]
