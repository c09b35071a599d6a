"""KernelBench problem: depthwise 2-d convolution with zero padding."""

import torch
import torch.nn as nn

batch = 2
channels = 4
height = 16
width = 32
kernel_size = 3


class Model(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size, padding=kernel_size // 2, groups=channels, bias=True)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(batch, channels, height, width)]


def get_init_inputs():
    return [channels, kernel_size]
