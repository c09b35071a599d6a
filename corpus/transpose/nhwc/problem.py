"""KernelBench problem: NCHW to NHWC with a scale per channel."""

import torch
import torch.nn as nn

batch = 2
channels = 16
height = 16
width = 16


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        return (x.permute(0, 2, 3, 1) * self.scale).contiguous()


def get_inputs():
    return [torch.rand(batch, channels, height, width)]


def get_init_inputs():
    return [channels]
