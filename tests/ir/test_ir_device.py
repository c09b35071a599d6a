"""The machine domain against the device: the same launch evaluated here and run there."""

import ir_kernels as K
import pytest
import torch

from tilewright.ir import launch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
OPTIONS = {"enable_fp_fusion": False}


def both(fn, grid, *args, **options):
    """Arguments after the launch, evaluated and as the device left them."""
    here = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    there = [a.cuda() if isinstance(a, torch.Tensor) else a for a in args]
    launch.run(fn, grid, here, options or None)
    fn[grid](*there, **options)
    torch.cuda.synchronize()
    return [(h, t.cpu()) for h, t in zip(here, there, strict=True) if isinstance(h, torch.Tensor)]


def worst(pairs):
    """Largest relative difference, in units of the last place of the tensor's type."""
    out = 0.0
    for h, t in pairs:
        if h.is_floating_point() and h.element_size() > 1:
            eps = torch.finfo(h.dtype).eps
            scale = t.double().abs().clamp(min=float(t.double().abs().mean()))
            out = max(out, float(((h.double() - t.double()).abs() / scale).max()) / eps)
        else:
            assert torch.equal(h.view(torch.uint8), t.view(torch.uint8))
    return out


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3"])
def test_matmul(dtype, precision):
    a, b, c = torch.randn(100, 77).to(dtype), torch.randn(77, 90).to(dtype), torch.zeros(100, 90)
    assert worst(both(K.matmul, (2, 2), a, b, c, 100, 90, 77, 77, 1, 90, 1, 90, 1, 64, 64, 32, precision)) < 32


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    q, k, v = (torch.randn(2, 200, 64).half() for _ in range(3))
    assert worst(both(K.attention, (4, 2), q, k, v, torch.zeros_like(q), 200, 0.125, 64, 64, 64, causal, 0)) < 8


def test_rows():
    x, y = torch.randn(30, 100), torch.zeros(30, 100)
    assert worst(both(K.softmax, (30,), x, y, 100, 100, 128, **OPTIONS)) < 16
    h, w, b = torch.randn(30, 100).half(), torch.randn(100), torch.randn(100)
    assert worst(both(K.layernorm, (30,), h, w, b, torch.zeros_like(h), 100, 1e-5, 128, **OPTIONS)) < 2
    target, loss = torch.randint(0, 100, (30,)), torch.zeros(30)
    assert worst(both(K.cross_entropy, (30,), h, target, loss, 100, 32, **OPTIONS)) < 16


def test_what_must_agree_to_the_bit():
    a = torch.randint(-(2**31), 2**31 - 1, (64,), dtype=torch.int32)
    b = torch.where(a % 7 == 0, 5, a // 3 + 1).int()
    b[b == 0] = 5
    assert worst(both(K.int_table, (1,), a, b, torch.zeros_like(a), 64)) == 0
    x = torch.cat([torch.randn(60) * 100, torch.tensor([1e6, -1e6, 0.0, -0.0])])
    call = (x, torch.zeros(64), torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.float64), 64)
    assert worst(both(K.casts, (1,), *call, **OPTIONS)) == 0
    x = torch.randn(20, 64)
    for descending in (False, True):
        assert worst(both(K.sort_rows, (20,), x, torch.zeros_like(x), 64, descending)) == 0
    assert worst(both(K.dropout, (2,), torch.ones(512), torch.zeros(512), 512, 0.3, 123, 256, **OPTIONS)) == 0
    x = torch.randint(0, 9, (40, 100)).float()
    assert worst(both(K.argmax, (40,), x, torch.zeros(40), torch.zeros(40, dtype=torch.int32), 100, 128)) == 0
    x = torch.randn(40) * 5
    assert worst(both(K.scalar_branches, (40,), x, torch.zeros(40), 40, **OPTIONS)) == 0
    x, y = torch.randn(100), torch.zeros(100)
    assert worst(both(K.read_back, (4,), x, y, 100, 32)) == 0


def test_special_values_of_casts_and_extremes():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e9, -3e9, 0.5, -0.5, 449.0] * 8)
    z, w = torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    pairs = both(K.special_values, (1,), x, x.flip(0), torch.zeros(64), z, w, torch.zeros(64), 64)
    for h, t in pairs:
        same = (h == t) | (h.isnan() & t.isnan()) if h.is_floating_point() else h == t
        assert bool(same.all()), (x[~same], h[~same], t[~same])


def test_histograms_scaled_dots_and_math():
    i, counts = torch.randint(0, 32, (1024,), dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
    assert worst(both(K.histogram, (8,), i, counts, 128, 32)) == 0
    a, b = torch.randn(128, 64).to(torch.float8_e4m3fn), torch.randn(64, 64).to(torch.float8_e5m2)
    sa = torch.randint(120, 130, (128, 2), dtype=torch.uint8)
    sb = torch.randint(120, 130, (64, 2), dtype=torch.uint8)
    assert worst(both(K.dot_scaled, (1,), a, sa, b, sb, torch.zeros(128, 64), 128, 64, 64)) < 4096
    v = torch.randn(64)
    assert worst(both(K.math_table, (1,), v, torch.zeros(64), 10, 64, **OPTIONS)) < 64
