"""The library's convolution on channels-last memory; bringing the input there and the output back counts."""

import torch


def kernel(x, weight):
    near = x.contiguous(memory_format=torch.channels_last)
    return torch.nn.functional.conv2d(near, weight, padding=3, groups=x.shape[1]).contiguous()
