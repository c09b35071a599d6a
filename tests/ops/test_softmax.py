"""softmax and log_softmax: the reference against PyTorch, masks, what is refused, what launchers hand to kernels."""

import doubles
import pytest
import torch
from launched import check

from tilewright import ops
from tilewright.ops._builder.copies import MADE


def example(*shape):
    torch.manual_seed(3)
    return torch.randn(shape or (3, 4, 7))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_reference_is_pytorch(axis):
    x = example()
    torch.testing.assert_close(ops.softmax(x, axis=axis, scale=0.5), torch.softmax(x * 0.5, axis))
    torch.testing.assert_close(ops.log_softmax(x, axis=axis, scale=0.5), torch.log_softmax(x * 0.5, axis))


def test_a_masked_element_takes_no_part_whatever_it_holds():
    x, mask = example(2, 5), torch.tensor([True, False, True, True, False])
    x[:, 1] = float("nan")
    y = ops.softmax(x, mask=mask)
    assert torch.equal(y[:, mask], torch.softmax(x[:, mask], -1))
    assert torch.equal(y[:, ~mask], torch.zeros(2, 2))
    assert bool(ops.log_softmax(x, mask=mask)[:, ~mask].eq(float("-inf")).all())


def test_a_row_without_any_is_zero_and_its_gradient_too():
    x = example(2, 5).requires_grad_()
    mask = torch.tensor([[True] * 5, [False] * 5])
    y = ops.softmax(x, mask=mask)
    assert torch.equal(y[1], torch.zeros(5))
    (g,) = torch.autograd.grad(y, x, torch.randn(2, 5))
    assert torch.equal(g[1], torch.zeros(5))


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (2, 5), (5, 2)])
def test_causal_rows_end_where_the_last_one_sees_all(rows, cols):
    y = ops.softmax(example(rows, cols), causal=True)
    for i in range(rows):
        seen = max(0, i + cols - rows + 1)
        assert bool((y[i, :seen] > 0).all())
        assert not y[i, seen:].any()


@pytest.mark.parametrize(("change", "words"), [
    ({"x": torch.ones(4, 7, dtype=torch.int64)}, ["x", "int64", "bfloat16"]),
    ({"axis": 3}, ["axis", "3", "between -2 and 1"]),
    ({"mask": torch.ones(4, 7)}, ["mask", "float32", "bool"]),
    ({"mask": torch.ones(4, dtype=torch.bool)}, ["mask", "(4,)", "(4, 7)"]),
    ({"causal": True, "axis": 0}, ["axis", "the last of at least two"]),
])  # fmt: skip
@pytest.mark.parametrize("function", [ops.softmax, ops.log_softmax])
def test_what_is_refused(function, change, words):
    with pytest.raises(ops.ArgumentError) as e:
        function(**{"x": example(4, 7)} | change)
    for word in [function.__name__, "Try: ", *words]:
        assert word in str(e.value)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_launchers(name):
    check(name)


@pytest.mark.parametrize("entry", ["softmax", "log_softmax"])
def test_gradients_in_float64(entry):
    doubles.check("softmax", entry, [[2, 3, 5]], 1, 0.5)


def test_dims_merge_where_strides_allow():
    from tilewright.ops.softmax.kernel import folded

    x = torch.empty(2, 3, 4, 5, 6)
    sizes, (strides,) = folded(-1, x)
    assert (sizes, strides) == ((1, 1, 1, 120, 6), (0, 0, 0, 6, 1))
    sizes, (strides,) = folded(1, x)
    assert (sizes, strides) == ((1, 1, 2, 120, 3), (0, 0, 360, 1, 120))


def test_a_copy_is_made_beyond_four_outer_dims_and_counted():
    from tilewright.ops.softmax.op import _mergeable

    plain = torch.empty(2, 3, 2, 3, 2, 3)
    assert _mergeable("softmax", -1, plain)[0] is plain
    before = MADE["softmax", "argument 0"]
    scattered = torch.empty(4, 6, 4, 6, 4, 6)[::2, ::2, ::2, ::2, ::2, ::2]
    (copy,) = _mergeable("softmax", -1, scattered)
    assert copy.is_contiguous()
    assert MADE["softmax", "argument 0"] == before + 1


@pytest.mark.parametrize("n", [1, 2, 33, 128, 1000, 8192, 32768])
@pytest.mark.parametrize("across", [False, True])
def test_tilings_cover_a_row(n, across):
    from tilewright.ops.softmax.kernel import WHOLE, tiling

    tile = tiling(n, across)
    assert tile["BLOCK"] >= n
    assert tile["ROWS"] * tile["BLOCK"] <= max(WHOLE, tile["BLOCK"])
    assert tile["num_warps"] in (4, 8, 16, 32)
