"""The real domain: no rounding, gradients by autograd, literals as they are meant."""

import math

import ir_kernels as K
import pytest
import torch
import torch.nn.functional as F

from tilewright.ir import launch
from tilewright.ir.domains.constants import number
from tilewright.ir.domains.real import Real
from tilewright.ir.launch import Arg


def args(*shapes):
    return [torch.randn(math.prod(s), dtype=torch.float64).requires_grad_() for s in shapes]


def test_attention_and_its_gradients():
    torch.manual_seed(0)
    n, d = 100, 64
    q, k, v = args((n, d), (n, d), (n, d))
    storages = [Arg(t, 0, torch.float16) for t in (q, k, v)]
    out = Arg(torch.zeros(n * d), 0, torch.float16)
    result = launch.run(K.attention, (2, 1), (*storages, out, n, 0.125, d, 64, 64, True, 0), domain=Real())
    got = result.outputs["o"]
    expected = F.scaled_dot_product_attention(*(t.view(1, n, d) for t in (q, k, v)), is_causal=True).reshape(-1)
    assert (got - expected).abs().max() < 1e-13
    weight = torch.randn_like(expected)
    mine = torch.autograd.grad((got * weight).sum(), (q, k, v))
    torchs = torch.autograd.grad((expected * weight).sum(), (q, k, v))
    assert all((a - b).abs().max() < 1e-13 for a, b in zip(mine, torchs, strict=True))


def test_gradients_pass_through_loops_that_programs_leave_at_different_times():
    torch.manual_seed(1)
    (x,) = args((40,))
    result = launch.run(K.scalar_branches, (40,), (Arg(x, 0, torch.float32), torch.zeros(40), 40), domain=Real())
    y = result.outputs["y"]
    (slope,) = torch.autograd.grad(y.sum(), (x,))
    step = 1e-6
    with torch.no_grad():
        near = launch.run(
            K.scalar_branches, (40,), (Arg(x + step, 0, torch.float32), torch.zeros(40), 40), domain=Real()
        )
    assert ((near.outputs["y"] - y) / step - slope).abs().max() < 1e-3


def test_an_epsilon_of_a_millionth_shows():
    x = torch.randn(10, 100, dtype=torch.float64)
    outs = []
    for kernel in (K.softmax, K.softmax_with_epsilon):
        y = torch.zeros(1000)
        storage = Arg(x.reshape(-1), 0, torch.float32)
        outs.append(launch.run(kernel, (10,), (storage, y, 100, 100, 128), domain=Real()).outputs["y"])
    exact = x.softmax(-1).reshape(-1)
    assert (outs[0] - exact).abs().max() < 1e-15
    assert 1e-11 < (outs[1] - exact).abs().max() < 1e-7


def test_inputs_are_not_changed_and_outputs_are_in_the_result():
    x, y = torch.randn(100), torch.randn(100)
    before = y.clone()
    result = launch.run(K.read_back, (4,), (x, y, 100, 32), domain=Real())
    assert torch.equal(y, before)
    assert torch.equal(result.outputs["y"], x.double() + before.double())


def test_casts_and_dots_are_in_the_ledger():
    a, b = torch.randn(64, 64).half(), torch.randn(64, 64).half()
    c = torch.zeros(64, 64).half()
    call = (a, b, c, 64, 64, 64, 64, 1, 64, 1, 64, 1, 64, 64, 32, "ieee")
    ledger = launch.run(K.matmul, (1, 1), call, domain=Real()).ledger
    assert {(k[1], k[2]): n for k, n in ledger.casts.items()} == {("f32", "f16"): 4096}
    assert {k[1:]: n for k, n in ledger.dots.items()} == {("f16", "f16", "f32", "ieee", 32): 8192}
    assert all("ir_kernels.py:" in k[0] for k in (*ledger.casts, *ledger.dots))


@pytest.mark.parametrize(
    ("value", "elem", "name"),
    [
        (1.44269502, "f32", "log2(e)"),
        (1.4427, "f32", ""),
        (0.7978845608028654, "f64", "sqrt(2/pi)"),
        (0.79788458, "f32", "sqrt(2/pi)"),
        (-0.69314718, "f32", "ln(2)"),
        (72**-0.5, "f64", "1/sqrt(72)"),
        (64**-0.5, "f64", ""),
        (0.044715, "f32", ""),
        (1e-6, "f32", ""),
        (3.0, "f32", ""),
    ],
)
def test_what_a_literal_means(value, elem, name):
    assert number(value, elem).name == name


def test_a_decimal_is_the_shortest_that_rounds_to_the_literal():
    for text in ("0.1", "0.044715", "1e-05", "0.3333333", "-2.7"):
        as_f32 = torch.tensor(float(text)).item()
        assert float(number(as_f32, "f32").exact) == float(text)


def test_float_extremes_by_atomics_on_bits():
    x, y, z = torch.randn(100), torch.zeros(3), torch.zeros(3, dtype=torch.int32)
    with torch.no_grad():
        y = launch.run(K.atomics, (4,), (x, y, z, 100, 32), domain=Real()).outputs["y"]
    assert (y - torch.stack([x.max(), x.min(), x.double().sum()])).abs().max() < 1e-6
