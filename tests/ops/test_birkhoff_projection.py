"""birkhoff_projection: both forms against long iterations, gradients, large magnitudes, what is refused, launchers."""

import math

import pytest
import torch
from launched import check

from tilewright import ops
from tilewright.ops.birkhoff_projection import op, reference


def example(*shape, scale=1.0):
    torch.manual_seed(11)
    return torch.randn(shape, dtype=torch.float64) * scale


@pytest.mark.parametrize("n", range(2, 9))
def test_the_limit_is_that_of_many_iterations(n):
    x = example(7, n, n)
    limit = ops.birkhoff_projection(x, iterations=None)
    torch.testing.assert_close(limit, ops.birkhoff_projection(x, iterations=2000), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(limit.sum(-1), torch.ones(7, n, dtype=torch.float64))
    torch.testing.assert_close(limit.sum(-2), torch.ones(7, n, dtype=torch.float64))


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_gradient_of_the_limit_is_that_of_many_iterations(n):
    x, dy = example(5, n, n).requires_grad_(), example(5, n, n)
    (implicit,) = torch.autograd.grad(ops.birkhoff_projection(x, iterations=None), x, dy)
    (unrolled,) = torch.autograd.grad(ops.birkhoff_projection(x, iterations=2000), x, dy)
    torch.testing.assert_close(implicit, unrolled, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("iterations", [1, 4, None])
def test_gradcheck(iterations):
    x = example(2, 3, 3, scale=2.0).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: ops.birkhoff_projection(t, iterations=iterations), (x,))


@pytest.mark.parametrize("iterations", [20, None])
@pytest.mark.parametrize("shift", [1e4, -1e4])
def test_rows_and_columns_may_be_shifted(iterations, shift):
    x = example(4, 4, 4)
    far = (
        x + shift * torch.arange(4.0, dtype=torch.float64)[:, None] - 3 * shift * torch.arange(4.0, dtype=torch.float64)
    )
    got, wanted = (ops.birkhoff_projection(t, iterations=iterations) for t in (far, x))
    torch.testing.assert_close(got, wanted, rtol=1e-7 if iterations is None else 1e-6, atol=1e-7)


@pytest.mark.parametrize("scale", [1e2, 1e3, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_magnitudes_are_near_a_permutation(scale, dtype):
    x = example(200, 4, 4, scale=scale).to(dtype)
    y = ops.birkhoff_projection(x, iterations=None)
    assert bool(y.isfinite().all())
    assert (y.sum(-1) - 1).abs().median() < 1e-6
    assert (y.sum(-1) - 1).abs().max() < 1e-2
    assert (y.amax(-1) > 0.99).double().mean() > 0.85


def test_two_by_two_is_known():
    x = torch.tensor([[[0.0, 1.0], [2.0, 0.5]]], dtype=torch.float64)
    p = 1 / (1 + math.exp((1.0 + 2.0 - 0.0 - 0.5) / 2))
    wanted = torch.tensor([[[p, 1 - p], [1 - p, p]]], dtype=torch.float64)
    torch.testing.assert_close(ops.birkhoff_projection(x, iterations=None), wanted)


def test_what_is_not_finite_is_nan_in_its_matrix_alone():
    x = example(3, 4, 4)
    x[1, 2, 2] = float("inf")
    y = ops.birkhoff_projection(x, iterations=None)
    assert y[1].isnan().all()
    assert torch.equal(y[[0, 2]], ops.birkhoff_projection(x[[0, 2]], iterations=None))


def test_a_forbidden_entry_stays_zero_in_iterations():
    x = example(3, 4, 4)
    x[:, 0, 1] = float("-inf")
    assert not ops.birkhoff_projection(x)[:, 0, 1].any()


@pytest.mark.parametrize(("change", "words"), [
    ({"x": torch.zeros(3, 9, 9)}, ["(3, 9, 9)", "n from 2 to 8"]),
    ({"x": torch.zeros(3, 4, 5)}, ["(3, 4, 5)", "(..., n, n)"]),
    ({"x": torch.zeros(4, 4, dtype=torch.int64)}, ["int64", "bfloat16"]),
    ({"iterations": 0}, ["iterations", "0", "None for the limit"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    with pytest.raises(ops.ArgumentError) as e:
        ops.birkhoff_projection(**({"x": torch.zeros(2, 4, 4)} | change))
    for word in ["Try: ", *words]:
        assert word in str(e.value)


def test_weak_couplings_keep_their_digits():
    g = torch.tensor([[0.0, 1e-20], [1e-20, 0.0]], dtype=torch.float64)
    f = reference._potentials(g, torch.tensor([-2e-20, 2e-20], dtype=torch.float64))
    torch.testing.assert_close(f, torch.tensor([0.0, 2.0], dtype=torch.float64))


def test_matrices_are_views_where_strides_allow():
    x = torch.empty(2, 3, 4, 4)
    assert op._matrices("sinkhorn", "x", x).data_ptr() == x.data_ptr()
    assert op._matrices("sinkhorn", "x", torch.empty(0, 4, 4)).shape == (0, 4, 4)


@pytest.mark.parametrize("name", ["sinkhorn", "birkhoff"])
def test_launchers(name):
    check(name)
