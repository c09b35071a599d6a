"""The float64 oracle keeps float64, whatever the reference's text says."""

import pytest
import torch
import torch.nn.functional as F

from tilewright.errors import Unsupported
from tilewright.task.readers.oracle import widened

X = torch.linspace(-3, 3, 24, dtype=torch.float64).reshape(4, 6) + 1e-9


@pytest.mark.parametrize(
    ("name", "written", "meant"),
    [
        ("float()", lambda x: x.float() * 1, lambda x: x),
        ("half()", lambda x: x.half() + 0, lambda x: x),
        ("bfloat16()", lambda x: x.bfloat16() - 0, lambda x: x),
        ("to(dtype)", lambda x: x.to(torch.float32), lambda x: x),
        ("to(dtype=)", lambda x: x.to(dtype=torch.float16), lambda x: x),
        ("to(device, dtype)", lambda x: x.to("cpu", torch.float16), lambda x: x),
        ("type(dtype)", lambda x: x.type(torch.float32), lambda x: x),
        ("type(name)", lambda x: x.type("torch.FloatTensor"), lambda x: x),
        ("type_as", lambda x: x.type_as(torch.zeros(1, dtype=torch.float16)), lambda x: x),
        ("zeros default", lambda x: torch.zeros(4, 6) + x, lambda x: x),
        ("zeros dtype", lambda x: torch.zeros(4, 6, dtype=torch.float16).copy_(x), lambda x: x),
        ("empty_like dtype", lambda x: torch.empty_like(x, dtype=torch.float32).copy_(x), lambda x: x),
        ("new_zeros dtype", lambda x: x.new_zeros(4, 6, dtype=torch.float32).copy_(x), lambda x: x),
        ("tensor dtype", lambda x: x * torch.tensor(0.1, dtype=torch.float32), lambda x: x * 0.1),
        ("tensor default", lambda x: x * torch.tensor([0.1]), lambda x: x * 0.1),
        ("full", lambda x: x + torch.full((6,), 0.1, dtype=torch.float32), lambda x: x + 0.1),
        ("softmax dtype", lambda x: F.softmax(x, -1, dtype=torch.float32), lambda x: F.softmax(x, -1)),
        ("sum dtype", lambda x: x.sum(-1, dtype=torch.float32), lambda x: x.sum(-1)),
        ("mean in float", lambda x: x.float().mean(-1).half(), lambda x: x.mean(-1)),
        ("matmul in half", lambda x: (x.half() @ x.half().T).float(), lambda x: x @ x.T),
        ("arange", lambda x: x * torch.arange(6, dtype=torch.float32) / 3, lambda x: x * torch.arange(6).double() / 3),
        ("autocast", lambda x: _autocast(x), lambda x: x @ x.T),
    ],
)  # fmt: skip
def test_nothing_is_rounded(name, written, meant):
    with widened(torch.float64):
        got = written(X.clone())
    assert got.dtype == torch.float64
    assert torch.allclose(got, meant(X), rtol=1e-14, atol=0)


def _autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x.T


def test_without_the_mode_it_is_rounded_which_is_what_the_tests_above_see():
    assert not torch.allclose(X.float().double(), X, rtol=1e-14, atol=0)
    with widened(None):
        assert X.float().dtype == torch.float32
    with widened(torch.float32):
        assert X.half().dtype == torch.float16
    assert torch.get_default_dtype() == torch.float32


def test_integers_booleans_and_float8_stay():
    with widened(torch.float64):
        assert X.long().dtype == torch.int64
        assert (X > 0).dtype == torch.bool
        assert X.to(torch.int32).dtype == torch.int32
        assert X.to(torch.float8_e4m3fn).dtype == torch.float8_e4m3fn


def test_reinterpreting_bits_is_unsupported():
    with widened(torch.float64), pytest.raises(Unsupported, match="reinterprets bits"):
        X.float().view(torch.int32)


def test_modules_and_losses():
    layer = torch.nn.LayerNorm(6).double()
    with widened(torch.float64):
        out = F.cross_entropy(layer(X.float()), torch.tensor([0, 1, 2, 3]))
        attended = F.scaled_dot_product_attention(X[None].half(), X[None].half(), X[None].half())
    assert out.dtype == attended.dtype == torch.float64
    assert torch.allclose(out, F.cross_entropy(layer(X), torch.tensor([0, 1, 2, 3])), rtol=1e-14)
