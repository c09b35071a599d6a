"""KernelBench problem: 2-d max pooling with padding."""

import torch
import torch.nn as nn

batch = 2
channels = 4
height = 16
width = 16
kernel_size = 3
stride = 2


class Model(nn.Module):
    def __init__(self, kernel_size, stride):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride=stride, padding=kernel_size // 2)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.rand(batch, channels, height, width)]


def get_init_inputs():
    return [kernel_size, stride]
