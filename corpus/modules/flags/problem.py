"""KernelBench problem: which elements lie outside their row's threshold, a boolean output."""

import torch
import torch.nn as nn

batch = 32
width = 128


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.limit = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x.abs() > self.limit


def get_inputs():
    return [torch.randn(batch, width)]


def get_init_inputs():
    return [width]
