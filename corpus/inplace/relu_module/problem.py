"""KernelBench problem that works in place: x is overwritten with relu(x + bias) and returned."""

import torch
import torch.nn as nn

batch = 16
features = 128


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return x.add_(self.bias.detach()).relu_()


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return [features]
