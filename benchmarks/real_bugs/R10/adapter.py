"""Liger-Kernel: ``LigerRopeFunction``, which may work in place, so it is given copies. The cosines and sines stand twice
in a row, as it expects."""

import torch
import triton  # noqa: F401
from third_party import load

ops = load("liger_kernel.ops.rope")


def kernel(q, k, angles):
    twice = torch.cat((angles, angles), -1)
    return ops.LigerRopeFunction.apply(q.clone(), k.clone(), twice.cos(), twice.sin())
