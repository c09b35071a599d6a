"""KernelBench problem: batch normalisation in training mode; running statistics are part of the result."""

import torch
import torch.nn as nn

batch = 4
features = 8
height = 8
width = 8


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bn = nn.BatchNorm2d(features)

    def forward(self, x):
        return self.bn(x)


def get_inputs():
    return [torch.rand(batch, features, height, width)]


def get_init_inputs():
    return [features]
