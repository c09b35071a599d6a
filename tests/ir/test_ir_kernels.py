"""The machine domain against torch, kernel by kernel."""

import functools
import math

import ir_kernels as K
import pytest
import torch
import torch.nn.functional as F

from tilewright.errors import Unsupported
from tilewright.ir import launch
from tilewright.ir.domains.real import Real

HALF = (torch.float16, torch.bfloat16)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def close(got, expected, tolerance):
    error = (got.double() - expected.double()).abs().max().item()
    assert error <= tolerance, f"error {error} above {tolerance}"


def run(fn, grid, *args, **kwargs):
    result = launch.run(fn, grid, args, kwargs or None)
    assert result.faults == []
    return result


@pytest.mark.parametrize("n", [1, 100, 128, 1000])
def test_softmax(n):
    x, y = torch.randn(37, n), torch.full((37, n), math.nan)
    result = run(K.softmax, (37,), x, y, n, n, 1024)
    close(y, x.softmax(-1), 1e-6)
    assert result.clean
    assert bool((result.writes["y"].count == 1).all())


@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
@pytest.mark.parametrize("shape", [(64, 64, 64), (100, 90, 77), (1, 1, 1)])
def test_matmul_is_as_exact_as_its_dtype(dtype, shape):
    m, n, k = shape
    a, b, c = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), torch.full((m, n), math.nan)
    run(K.matmul, (-(-m // 64), -(-n // 64)), a, b, c, m, n, k, k, 1, n, 1, n, 1, 64, 64, 32, "ieee")
    close(c, a.double() @ b.double(), 2e-5)


def test_tf32_rounds_its_operands_and_tf32x3_does_not():
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    exact = a.double() @ b.double()
    errors = {}
    for precision in ("tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"):
        c = torch.zeros(64, 64)
        run(K.matmul, (1, 1), a, b, c, 64, 64, 64, 64, 1, 64, 1, 64, 1, 64, 64, 32, precision)
        errors[precision] = (c - exact).abs().max().item()
    assert 1e-3 < errors["tf32"] < 5e-2
    assert errors["tf32x3"] < 5e-5
    assert errors["bf16x6"] < 5e-5
    assert 5e-5 < errors["bf16x3"] < 5e-3
    assert errors["ieee"] < 1e-5


def test_tf32_operands_are_cut_or_rounded_as_asked():
    from tilewright.ir.domains.machine import Machine, tf32_nearest, tf32_truncated

    step = 2.0**-10
    x = torch.tensor([1 + step / 2, 1 + step / 4, 1 + 3 * step / 4, -1 - step / 2, math.inf, -math.inf])
    assert tf32_nearest(x).tolist() == [1 + step, 1.0, 1 + step, -1 - step, math.inf, -math.inf]
    assert tf32_truncated(x).tolist() == [1.0, 1.0, 1.0, -1.0, math.inf, -math.inf]
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    for domain, narrow in ((Machine(), tf32_truncated), (Machine(tf32="nearest"), tf32_nearest)):
        c = torch.zeros(64, 64)
        call = (a, b, c, 64, 64, 64, 64, 1, 64, 1, 64, 1, 64, 64, 32, "tf32")
        launch.run(K.matmul, (1, 1), call, domain=domain)
        close(c, narrow(a).double() @ narrow(b).double(), 1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [500, 64, 1])
def test_attention(causal, n):
    q, k, v = (torch.randn(2, n, 64).half() for _ in range(3))
    o = torch.full_like(q, math.nan)
    result = run(K.attention, (-(-n // 64), 2), q, k, v, o, n, 0.125, 64, 64, 64, causal, 0)
    expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    close(o, expected, 3e-3)
    assert result.clean


def test_matmul_persistent_with_while_and_for():
    a, b, c = torch.randn(100, 80).half(), torch.randn(80, 90).half(), torch.full((100, 90), math.nan)
    result = run(K.matmul_persistent, (5,), a, b, c, 100, 90, 80, 5, 32, 32, 32)
    close(c, a.double() @ b.double(), 1e-5)
    assert result.clean


def test_layernorm_with_welford():
    x, w, b = torch.randn(50, 1000).half(), torch.randn(1000), torch.randn(1000)
    y = torch.zeros_like(x)
    run(K.layernorm, (50,), x, w, b, y, 1000, 1e-5, 1024)
    close(y, F.layer_norm(x.float(), (1000,), w, b), 5e-3)


def test_cross_entropy_with_early_return():
    x, target, loss = torch.randn(50, 1000).half(), torch.randint(0, 1000, (50,)), torch.full((50,), math.nan)
    target[3] = target[10] = -100
    run(K.cross_entropy, (50,), x, target, loss, 1000, 256)
    close(loss, F.cross_entropy(x.float(), target, reduction="none"), 1e-5)


def test_rope_with_join_and_trans():
    x, cos, sin = torch.randn(30, 128), torch.randn(30, 64), torch.randn(30, 64)
    y = torch.zeros_like(x)
    run(K.rope, (30,), x, cos, sin, y, 30, 64)
    a, b = x.chunk(2, 1)
    close(y, torch.cat([a * cos - b * sin, b * cos + a * sin], 1), 1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse):
    x, y, z = torch.randn(128), torch.zeros(128), torch.zeros(128)
    run(K.cumsum, (1,), x, y, z, 128, 128, reverse)
    close(y, x.flip(0).cumsum(0).flip(0) if reverse else x.cumsum(0), 1e-5)
    close(z, x.cumprod(0), 1e-6)


def test_argmax_takes_the_first_of_ties():
    x, value, index = torch.randint(0, 9, (40, 100)).float(), torch.zeros(40), torch.zeros(40, dtype=torch.int32)
    run(K.argmax, (40,), x, value, index, 100, 128)
    first = [int((row == row.max()).nonzero()[0]) for row in x]
    assert index.tolist() == first
    assert torch.equal(value, x.amax(1))


def test_histogram_by_atomics_hands_out_each_old_value_once():
    x = torch.randint(0, 10, (1000,), dtype=torch.int32)
    counts, olds = torch.zeros(10, dtype=torch.int32), torch.zeros(1000, dtype=torch.int32)
    run(K.histogram_atomic, (8,), x, counts, olds, 1000, 128)
    assert counts.tolist() == torch.bincount(x.long(), minlength=10).tolist()
    for v in range(10):
        assert sorted(olds[x == v].tolist()) == list(range(int((x == v).sum())))


def test_histogram():
    x, counts = torch.randint(0, 32, (1024,), dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
    run(K.histogram, (8,), x, counts, 128, 32)
    assert counts.tolist() == torch.bincount(x.long(), minlength=32).tolist()


def philox(seed, counter):
    """First word of Philox 4×32-10 (Salmon et al., Parallel random numbers, 2011)."""
    word = 0xFFFFFFFF
    c, k = [counter & word, 0, 0, 0], [seed & word, seed >> 32 & word]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & word, (a >> 32) ^ c[3] ^ k[1], a & word]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return c[0]


def test_dropout_draws_philox():
    x, y = torch.ones(512), torch.zeros(512)
    run(K.dropout, (2,), x, y, 512, 0.3, 123, 256)
    signed = [(w + 2**31) % 2**32 - 2**31 for w in (philox(123, i) for i in range(512))]
    uniform = [(w if w >= 0 else -w - 1) * 4.6566127342e-10 for w in signed]
    assert (y != 0).tolist() == [u > 0.3 for u in uniform]


@pytest.mark.skipif(not K.HAS_BLOCK_POINTERS, reason="this Triton has no block pointers")
def test_block_pointers():
    x, y = torch.randn(100, 70), torch.zeros(70, 100)
    run(K.block_pointer_transpose, (4, 3), x, y, 100, 70, 32, 32)
    assert torch.equal(y, x.T)


def test_tensor_descriptors_clip_at_their_shape():
    x, y = torch.randn(100, 64), torch.zeros(100, 64)
    run(K.descriptor_add, (4, 2), x, y, 100, 64, 32, 32)
    assert torch.equal(y, x + 1)


def test_tensor_descriptor_made_on_the_host():
    from triton.tools.tensor_descriptor import TensorDescriptor

    x, y = torch.randn(60, 32), torch.zeros(60, 32)
    run(K.descriptor_host, (4,), *(TensorDescriptor(t, [60, 32], [32, 1], [16, 32]) for t in (x, y)), 16)
    assert torch.equal(y, 2 * x)


def test_tuple_arguments():
    x, y = torch.randn(50), torch.zeros(50)
    run(K.tuple_arguments, (1,), (x, y), (3, 4), 50, 64)
    close(y, x * 3 + 4, 1e-6)


def test_reduce_over_both_axes():
    x, rows, cols, total = torch.randn(32, 64), torch.zeros(32), torch.zeros(64), torch.zeros(1)
    run(K.reduce_2d, (1,), x, rows, cols, total, 32, 64)
    close(rows, x.sum(1), 1e-5)
    assert torch.equal(cols, x.amax(0))
    close(total, x.sum(), 1e-4)


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending):
    x, y = torch.randn(20, 64), torch.zeros(20, 64)
    run(K.sort_rows, (20,), x, y, 64, descending)
    assert torch.equal(y, x.sort(1, descending=descending).values)


def test_gather():
    x, index, y = torch.randn(64), torch.randint(0, 64, (32,), dtype=torch.int32), torch.zeros(32)
    run(K.gather_rows, (1,), x, index, y, 64, 32)
    assert torch.equal(y, x[index.long()])


def branches(x, p):
    if p % 3 == 0:
        w = x * 2
    elif x > 0:
        w = x + 10
        w = w * w if p > 5 else w
    else:
        w = -x
    for _ in range(-(-p // 2)):
        w = (w - 50 if w > 50 else w) + 1
    return w


def test_branches_and_loops_that_programs_leave_at_different_times():
    x, y = torch.randn(40) * 5, torch.zeros(40)
    run(K.scalar_branches, (40,), x, y, 40)
    assert y.tolist() == [branches(x[p], p).item() for p in range(40)]


def test_math():
    x, y = torch.randn(64), torch.zeros(64)
    run(K.math_table, (1,), x, y, 10, 64)
    v = x.double()
    p = v.abs() + 0.5
    e = v.exp() + v.exp2() + p.log() + p.log2() + v.sin() + v.cos() + p.sqrt() + p.rsqrt() + v.erf() + v.floor()
    e = e + v.ceil() + v * p + v + p.sqrt() + v / p + v.tanh() + p.pow(v) + v.round() + v.expm1() + p.log1p()
    e = e + v.sigmoid() + v.clamp(-1, 1) + torch.minimum(v, p) + torch.atan2(v, p) + torch.fmod(v, torch.tensor(3.0))
    close(y, e, 1e-4)


def test_casts_saturate_in_fp8_and_round_elsewhere():
    x = torch.cat([torch.randn(60) * 100, torch.tensor([1e6, -1e6, 0.0, -0.0])])
    y, z, w = torch.zeros(64), torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.float64)
    run(K.casts, (1,), x, y, z, w, 64)
    e4 = x.clamp(-448, 448).to(torch.float8_e4m3fn).float()
    e5 = x.clamp(-57344, 57344).to(torch.float8_e5m2).float()
    assert torch.equal(y, e4 + e5 + x.half().float() + x.bfloat16().float())
    assert torch.equal(z, x.int() + x.view(torch.int32))
    assert torch.equal(w, x.double() * 1.5)


def test_calls_prints_assertions_and_assumptions():
    x, y = torch.randn(100), torch.zeros(100)
    result = run(K.calls, (2,), x, y, 100, 64, debug=True)
    close(y, x * 200, 1e-4)
    assert result.undefined == []


def test_a_failed_assertion_is_recorded_with_its_line():
    x, y = torch.randn(100), torch.zeros(100)
    result = launch.run(K.calls, (2,), (x, y, -1, 64), {"debug": True})
    failed = [u for u in result.undefined if u.kind == "assertion"]
    assert failed[0].message == "n"
    assert "ir_kernels.py:" in failed[0].where


def test_lock_runs_programs_in_turn():
    x, total, lock = torch.randn(100), torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    result = run(K.lock_sum, (4,), x, total, lock, 100, 32)
    close(total, x.sum(), 1e-5)
    assert result.sequential


def test_atomics():
    x, y, z = torch.randn(100), torch.zeros(3), torch.tensor([-1, 0, 0], dtype=torch.int32)
    run(K.atomics, (4,), x, y, z, 100, 32)
    close(y, torch.stack([x.max(), x.min(), x.sum()]), 1e-5)
    ints = (x * 10).int().tolist()
    assert z.tolist() == [
        functools.reduce(f, ints) for f in (lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b)
    ]


def test_dot_scaled():
    a, b = torch.randn(128, 64).to(torch.float8_e4m3fn), torch.randn(64, 64).to(torch.float8_e5m2)
    sa = torch.randint(120, 130, (128, 2), dtype=torch.uint8)
    sb = torch.randint(120, 130, (64, 2), dtype=torch.uint8)
    c = torch.zeros(128, 64)
    run(K.dot_scaled, (1,), a, sa, b, sb, c, 128, 64, 64)
    wide_a = a.double() * (2.0 ** (sa.double() - 127)).repeat_interleave(32, 1)
    wide_b = b.double() * (2.0 ** (sb.double() - 127)).repeat_interleave(32, 1).T
    close(c, wide_a @ wide_b, 1e-3)


def test_split_and_cat():
    x, y = torch.randn(128), torch.zeros(128)
    run(K.split_pairs, (1,), x, y, 64)
    assert torch.equal(y, torch.cat([x[0::2] + x[1::2], x[0::2] - x[1::2]]))


def test_inline_assembly_with_predicates():
    x = torch.cat([torch.linspace(-15, 30, 62), torch.tensor([20.0, 20.0001])])
    want, y = torch.nn.functional.softplus(x.double()), torch.zeros(64)
    run(K.inline_softplus, (1,), x, y, 64)
    assert torch.allclose(y.double(), want, atol=1e-6)
    assert torch.equal(y[x > 20], x[x > 20])
    real = launch.run(K.inline_softplus, (1,), (x, torch.zeros(64)), {"BLOCK": 64}, domain=Real()).outputs["y"]
    assert torch.allclose(real, want, atol=1e-6)


def test_inline_assembly_under_an_undefined_predicate():
    with pytest.raises(Unsupported, match="@q add"):
        run(K.inline_unknown_guard, (1,), torch.zeros(4), torch.zeros(4), 4)


def test_one_instruction_of_inline_assembly():
    x, y = torch.randn(64), torch.zeros(64)
    run(K.inline_tanh, (1,), x, y, 64)
    close(y, x.tanh(), 1e-6)


def test_programs_in_small_chunks_give_the_same():
    x, y, z = torch.randn(37, 100), torch.zeros(37, 100), torch.zeros(37, 100)
    launch.run(K.softmax, (37,), (x, y, 100, 100, 128))
    launch.run(K.softmax, (37,), (x, z, 100, 100, 128), chunk_elements=200)
    assert torch.equal(y, z)


def test_strided_and_offset_tensors():
    base = torch.randn(40, 300)
    x, y = base[3:33, 50:150], torch.zeros(30, 100)
    launch.run(K.copy_rows, (30,), (x, y, x.stride(0), y.stride(0), 100, 128))
    assert torch.equal(x, y)
