"""Layer normalisation of images over features and both spatial axes."""
import torch
import torch.nn as nn

batch = 4
features = 8
height = 16
width = 16


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.ln = nn.LayerNorm(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ln(x)


def get_inputs():
    return [torch.rand(batch, features, height, width)]


def get_init_inputs():
    return [(features, height, width)]
