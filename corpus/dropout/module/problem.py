"""KernelBench problem, random: linear layer, then dropout in training mode."""

import torch
import torch.nn as nn

batch = 32
features = 128


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.dropout = nn.Dropout(0.25)

    def forward(self, x):
        return self.dropout(torch.relu(self.linear(x)))


def get_inputs():
    return [torch.rand(batch, features)]


def get_init_inputs():
    return [features]
