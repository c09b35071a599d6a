"""What a function gives does not depend on where an element stands among others: programs in another order give the same."""

from __future__ import annotations

import pytest
import torch

from tilewright.ir.domains.machine import FUNCTIONS

UNARY = ("exp", "exp2", "log", "log2", "log1p", "expm1", "sin", "cos", "tanh", "erf", "sqrt", "rsqrt", "sigmoid", "rcp")


@pytest.mark.parametrize("name", UNARY)
def test_an_element_has_its_value_wherever_it_stands(name: str) -> None:
    x = torch.rand(100_003, generator=torch.Generator().manual_seed(0)) * 3 + 0.01
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    whole = FUNCTIONS[name](x).float()
    assert torch.equal(FUNCTIONS[name](x[order]).float(), whole[order])
    for n in (1, 2, 3, 5, 7, 50, 100):
        assert torch.equal(FUNCTIONS[name](x[:n].clone()).float(), whole[:n])
