"""KernelBench problem: mean hinge loss of predictions against targets of +1 and -1."""

import torch
import torch.nn as nn

batch = 64
width = 256


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs():
    return [torch.randn(batch, width), torch.randint(0, 2, (batch, width)).float() * 2 - 1]


def get_init_inputs():
    return []
