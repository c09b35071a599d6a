"""The comparer: what it must never let pass, and right kernels that it must not flag."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tilewright.prove import compare
from tilewright.prove.compare import Comparison
from tilewright.prove.truth import nudge, widen
from tilewright.task.contract import Tolerance

Fn = Callable[..., torch.Tensor]
HALVES = (torch.float16, torch.bfloat16)
FLOATS = (torch.float32, *HALVES)


def judge(kernel: Fn, reference: Fn, *inputs: torch.Tensor, chain: int | None = None) -> Comparison:
    """As the examination does it: oracle, baseline, conditioning."""
    wide = [widen(x) for x in inputs]
    oracle, baseline = reference(*wide), reference(*inputs)
    moved = [
        [nudge(w, x, 10 * d + i, chain) for i, (w, x) in enumerate(zip(wide, inputs, strict=True))] for d in range(4)
    ]
    sensitivity = torch.stack([(reference(*m) - oracle).abs() for m in moved]).amax(0)
    return compare.compare(kernel(*inputs), oracle, baseline, sensitivity=sensitivity)


def bare(got: torch.Tensor, expected: torch.Tensor) -> Comparison:
    """Against an exact baseline."""
    oracle = expected.double() if expected.is_floating_point() else expected
    return compare.compare(got, oracle, expected)


# ------------------------------------------------------------------------------------------- special values

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (NAN, 1.0),
        (1.0, NAN),
        (INF, 1.0),
        (1.0, INF),
        (INF, -INF),
        (-INF, INF),
        (NAN, INF),
        (INF, NAN),
        (0.0, NAN),
        (NAN, 0.0),
    ],
)
def test_another_kind_of_number_never_passes(got: float, expected: float, dtype: torch.dtype) -> None:
    good = torch.tensor([1.0, expected, 2.0], dtype=dtype)
    bad = torch.tensor([1.0, got, 2.0], dtype=dtype)
    result = bare(bad, good)
    assert not result.ok
    assert result.kind == "special"
    assert result.index == (1,)
    assert result.ratio == INF
    assert f"[1] is {compare._show(bad[1].double(), dtype)}" in result.summary


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_the_same_kind_passes(value: float) -> None:
    x = torch.tensor([1.0, value])
    assert bare(x.clone(), x).ok


def test_an_oracle_beyond_the_dtype_is_infinity_there() -> None:
    oracle = torch.tensor([1e39, 1.0], dtype=torch.float64)
    assert compare.compare(torch.tensor([INF, 1.0]), oracle, torch.tensor([INF, 1.0])).ok
    assert not compare.compare(torch.tensor([-INF, 1.0]), oracle, torch.tensor([INF, 1.0])).ok


def test_a_nan_anywhere_in_a_large_tensor_is_found() -> None:
    x = torch.randn(300, 400)
    y = x.clone()
    y[217, 33] = NAN
    result = bare(y, x)
    assert result.index == (217, 33)
    assert result.wrong == 1
    assert result.total == 120_000


def test_the_sign_of_zero_is_counted_and_passes() -> None:
    x, y = torch.tensor([0.0, -0.0, 1.0]), torch.tensor([-0.0, -0.0, 1.0])
    assert bare(y, x).ok
    assert compare.negative_zeros(y, x) == 1


# ------------------------------------------------------------------------------------------- form and exact dtypes


def test_shapes_are_not_broadcast() -> None:
    result = bare(torch.ones(1, 4), torch.ones(3, 4))
    assert result.kind == "shape"
    assert result.summary == "shape is (1, 4), expected (3, 4)"
    assert not bare(torch.ones(4), torch.ones(4, 1)).ok
    assert not bare(torch.ones(()), torch.ones(1)).ok


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (torch.float64, torch.float32),
        (torch.float32, torch.float16),
        (torch.int32, torch.int64),
        (torch.uint8, torch.bool),
    ],
)
def test_dtypes_must_agree(got: torch.dtype, expected: torch.dtype) -> None:
    assert bare(torch.ones(3, dtype=got), torch.ones(3, dtype=expected)).kind == "dtype"


@pytest.mark.parametrize("got", [torch.ones(3, dtype=torch.int64), torch.ones(3)])
def test_a_kind_is_not_crossed_without_a_baseline_either(got: torch.Tensor) -> None:
    oracle = torch.full((3,), 1.2, dtype=torch.complex128 if got.is_floating_point() else torch.float64)
    assert compare.compare(got, oracle, None).kind == "dtype"


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    x = torch.arange(100, dtype=dtype)
    y = x.clone()
    assert bare(y, x).ok
    y[7] += 1
    result = bare(y, x)
    assert result.kind == "exact"
    assert result.index == (7,)
    assert (result.got, result.expected) == ("8", "7")


def test_large_integers_do_not_go_through_floats() -> None:
    x = torch.tensor([2**53 + 1])
    assert not bare(x - 1, x).ok


def test_booleans_are_exact() -> None:
    x = torch.tensor([True, False])
    assert bare(x.clone(), x).ok
    assert not bare(~x, x).ok


def test_complex_numbers_compare_by_part() -> None:
    x = torch.randn(50, dtype=torch.complex64)
    assert compare.compare(x.clone(), x.to(torch.complex128), x).ok
    for wrong in (x.conj().resolve_conj(), torch.complex(x.real, torch.full_like(x.real, NAN)), x * 1.001):
        assert not compare.compare(wrong, x.to(torch.complex128), x).ok


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8(dtype: torch.dtype) -> None:
    x = torch.randn(256).to(dtype)
    assert bare(x.clone(), x).ok
    assert not bare((x.float() * -1).to(dtype), x).ok
    assert not bare(torch.full((256,), NAN).to(dtype), x).ok


def test_empty_tensors_pass_by_shape_alone() -> None:
    assert bare(torch.empty(0, 5), torch.empty(0, 5)).ok
    assert not bare(torch.empty(5, 0), torch.empty(0, 5)).ok


# ------------------------------------------------------------------------------------------- budgets


def test_zeros_and_constants_fail_at_every_scale() -> None:
    for scale in (1e-30, 1e-6, 1.0, 1e6, 1e30):
        x = torch.randn(64, 64) * scale
        assert not bare(torch.zeros_like(x), x).ok
        assert not bare(torch.full_like(x, float(x.mean())), x).ok


def test_zeros_fail_where_the_usual_check_lets_them_pass() -> None:
    x = torch.randn(4, 100_000)
    y = torch.softmax(x, -1)
    assert torch.allclose(torch.zeros_like(y), y, atol=1e-2, rtol=1e-2)
    assert not judge(lambda t: torch.zeros_like(t), lambda t: torch.softmax(t, -1), x).ok


def test_an_exact_baseline_leaves_a_few_ulps() -> None:
    x = torch.ones(1000)
    ulp = torch.finfo(torch.float32).eps
    assert bare(x + 5 * ulp, x).ok
    assert not bare(x + 8 * ulp, x).ok


def test_one_wrong_element_among_many_is_found() -> None:
    x = torch.randn(1000, 1000)
    y = x.clone()
    y[500, 500] += 1e-4
    result = bare(y, x)
    assert not result.ok
    assert result.index == (500, 500)
    assert result.ratio > 10


def test_a_huge_error_is_gross_and_a_small_one_is_not() -> None:
    x = torch.randn(100) + 3
    assert bare(x * 2, x).gross
    assert not bare(x * 1.0001, x).gross


def test_a_budget_that_an_author_widens_still_fails_nan() -> None:
    x = torch.ones(4)
    wide = Tolerance(atol=1e3)
    assert compare.compare(x + 1, x.double(), x, tolerance=wide).ok
    assert not compare.compare(x * NAN, x.double(), x, tolerance=wide).ok


def test_small_outputs_beside_large_ones_get_a_small_budget() -> None:
    oracle = torch.cat([torch.full((500,), 1e6), torch.full((500,), 1e-3)]).double()
    baseline = (oracle * (1 + 1e-7)).float()
    got = baseline.clone()
    got[700] = 2e-3
    assert not compare.compare(got, oracle, baseline).ok


def test_index_of_a_flat_position() -> None:
    assert compare.position(23, (2, 3, 4)) == (1, 2, 3)
    assert compare.position(0, ()) == ()


# ------------------------------------------------------------------------------------------- kernels


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def softmax_online(x: torch.Tensor) -> torch.Tensor:
    f = x.float()
    top, total = torch.full(f.shape[:1], -1e30), torch.zeros(f.shape[0])
    for tile in f.split(128, 1):
        new = torch.maximum(top, tile.amax(1))
        total = total * torch.exp(top - new) + torch.exp(tile - new[:, None]).sum(1)
        top = new
    return (torch.exp(f - top[:, None]) / total[:, None]).to(x.dtype)


def softmax_exp2(x: torch.Tensor) -> torch.Tensor:
    f = x.float() * 1.4426950408889634
    e = torch.exp2(f - f.amax(1, keepdim=True))
    return (e * (1 / e.sum(1, keepdim=True))).to(x.dtype)


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[1:])


def norm(eps: float = 1e-5, less: int = 0, squares: bool = False) -> Fn:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        f, n = x.float(), x.shape[1]
        mean = f.sum(1, keepdim=True) / n
        var = ((f - mean) ** 2).sum(1, keepdim=True) / (n - less)
        var = (f * f).mean(1, keepdim=True) - mean * mean if squares else var
        return ((f - mean) * torch.rsqrt(var + eps)).to(x.dtype)

    return kernel


def product(tile: int, accumulator: torch.dtype = torch.float32) -> Fn:
    def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        c = torch.zeros(a.shape[0], b.shape[1], dtype=accumulator)
        for i in range(0, a.shape[1], tile):
            c = c + (a[:, i : i + tile].float() @ b[i : i + tile].float()).to(accumulator)
        return c.to(a.dtype)

    return kernel


def tf32(x: torch.Tensor) -> torch.Tensor:
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def draw(shape: tuple[int, ...], family: str, seed: int, dtype: torch.dtype) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(shape, generator=g) + 0.5 if family == "positive" else torch.randn(shape, generator=g)
    return (x + 100 if family == "shifted" else x).to(dtype)


SHAPES = ((1, 1), (1, 37), (3, 1000), (64, 64), (16, 2000))
UNARY = {"online softmax": (softmax_online, softmax), "exp2 softmax": (softmax_exp2, softmax),
         "two-pass layer norm": (norm(), layer_norm)}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_right_kernels_stay_well_within_the_budget(name: str, dtype: torch.dtype) -> None:
    kernel, reference = UNARY[name]
    for shape in SHAPES:
        for family in ("natural", "positive", "shifted"):
            for seed in range(4):
                if "norm" in name and shape[1] == 1:
                    continue
                result = judge(kernel, reference, draw(shape, family, seed, dtype))
                assert result.ratio < 0.8, (shape, family, seed, result)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("tile", [16, 64, 1 << 20])
def test_right_products_stay_well_within_the_budget(dtype: torch.dtype, tile: int) -> None:
    for m, k in SHAPES:
        for family in ("natural", "positive"):
            a, b = draw((m, k), family, 1, dtype), draw((k, 8), family, 2, dtype)
            assert judge(product(tile), torch.matmul, a, b).ratio < 0.8, (m, k, family)


def test_a_plain_loop_over_a_long_sum_passes_with_the_allowance_of_a_chain() -> None:
    x = draw((16, 16384), "positive", 3, torch.float32)
    loop: Fn = lambda t: t.cumsum(1)[:, -1] if t.dtype is torch.float32 else t.sum(1)  # noqa: E731
    assert judge(loop, lambda t: t.sum(1), x, chain=1).ok
    assert not judge(_between_tiles_in_half, lambda t: t.sum(1), x, chain=1).ok


def _between_tiles_in_half(t: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(t.shape[0], dtype=torch.float16)
    for tile in t.split(64, 1):
        total = total + tile.sum(1).half()
    return total.float()


GELU = torch.nn.functional.gelu
WRONG: dict[str, tuple[Fn, Fn, int, torch.dtype]] = {
    "tf32 product": (lambda a, b: tf32(a) @ tf32(b), torch.matmul, 2, torch.float32),
    "float16 accumulator": (product(16, torch.float16), torch.matmul, 2, torch.float32),
    "bfloat16 accumulator of a float16 product": (product(16, torch.bfloat16), torch.matmul, 2, torch.float16),
    "softmax in float16": (lambda x: softmax(x.half()).float(), softmax, 1, torch.float32),
    "epsilon 1e-6 for 1e-5": (norm(1e-6), layer_norm, 1, torch.float32),
    "n - 1 in the variance": (norm(less=1), layer_norm, 1, torch.float32),
    "GELU by tanh": (lambda x: GELU(x, approximate="tanh"), GELU, 1, torch.float32),
    "one column left out": (lambda x: torch.softmax(x[:, :-1], -1).mul(1).new_zeros(x.shape).index_copy(
        1, torch.arange(x.shape[1] - 1), torch.softmax(x[:, :-1], -1)), softmax, 1, torch.float32),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_fail_on_natural_values(name: str) -> None:
    kernel, reference, arity, dtype = WRONG[name]
    inputs = [draw((64, 1000), "natural", 1, dtype), draw((1000, 32), "natural", 2, dtype)][:arity]
    result = judge(kernel, reference, *inputs)
    assert not result.ok, result
    assert result.ratio > 1, result


def test_a_variance_as_a_difference_of_squares_fails_far_from_zero() -> None:
    assert not judge(norm(squares=True), layer_norm, draw((64, 1000), "shifted", 1, torch.float32)).ok
