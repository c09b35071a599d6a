"""KernelBench problem: counts of small integers, an integer output."""

import torch
import torch.nn as nn

count = 2048
bins = 32


class Model(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, labels):
        return torch.bincount(labels, minlength=self.bins)


def get_inputs():
    return [torch.randint(0, bins, (count,))]


def get_init_inputs():
    return [bins]
