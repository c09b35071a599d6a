"""KernelBench problem: residual branch scaled by 1e-4, so that the identity is nearly right."""

import torch
import torch.nn as nn

batch = 16
features = 64


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.gamma = nn.Parameter(1e-4 * torch.ones(features))

    def forward(self, x):
        return x + self.gamma * torch.tanh(self.linear(x))


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return [features]
