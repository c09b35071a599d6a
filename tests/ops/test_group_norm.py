"""group_norm: the reference against PyTorch, layouts that need a copy, what is refused, and what the launchers do."""

import doubles
import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops
from tilewright.ops._builder.copies import MADE
from tilewright.ops.group_norm.op import places


def example(*shape):
    torch.manual_seed(3)
    shape = shape or (2, 6, 5)
    return torch.randn(shape), torch.rand(shape[1]) + 0.5, torch.randn(shape[1])


@pytest.mark.parametrize(("shape", "groups"), [
    ((2, 6, 5), 3), ((2, 6, 5), 1), ((2, 6, 5), 6), ((3, 4, 2, 3), 2), ((5, 8), 4), ((0, 4, 3), 2), ((1, 2, 2, 2, 2), 2),
])  # fmt: skip
@pytest.mark.parametrize("given", [0, 1, 2])
def test_reference_is_pytorch(shape, groups, given):
    x, w, b = example(*shape)
    w, b = w if given else None, b if given == 2 else None
    torch.testing.assert_close(ops.group_norm(x, groups, w, b, eps=1e-4), F.group_norm(x, groups, w, b, 1e-4))


def test_bias_without_weight():
    x, _, b = example()
    torch.testing.assert_close(ops.group_norm(x, 2, None, b), F.group_norm(x, 2, None, b))


def test_no_places():
    assert ops.group_norm(torch.empty(2, 4, 0), 2).shape == (2, 4, 0)


@pytest.mark.parametrize(("change", "words"), [
    ({"groups": 4}, ["groups", "4", "a divisor of the 6 channels", "(2, 6, 5)"]),
    ({"groups": 0}, ["groups", "0", "divisor"]),
    ({"weight": torch.ones(5)}, ["weight", "(5,)", "(6,)", "one for each channel"]),
    ({"bias": torch.ones(6).half()}, ["bias", "float16", "float32 as x", "bias.to(x.dtype)"]),
    ({"x": torch.ones(2, 6, dtype=torch.int64)}, ["x", "int64", "bfloat16"]),
    ({"x": torch.ones(6)}, ["x", "(6,)", "(N, C, ...)"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    x, w, b = example()
    with pytest.raises(ops.ArgumentError) as e:
        ops.group_norm(**({"x": x, "groups": 3, "weight": w, "bias": b} | change))
    for word in ["group_norm", *words]:
        assert word in str(e.value)


def test_a_copy_is_made_and_counted_only_where_no_stride_joins_the_places():
    x = torch.randn(2, 4, 6, 6)
    before = MADE["group_norm", "x"]
    for view in (x, x.to(memory_format=torch.channels_last), x[1:], x.expand(2, 4, 6, 6), x[:, ::2]):
        assert places("x", view).data_ptr() == view.data_ptr()
    assert MADE["group_norm", "x"] == before
    assert torch.equal(places("x", x[..., 1:]), x[..., 1:].reshape(2, 4, 30))
    assert MADE["group_norm", "x"] == before + 1


def test_launchers():
    check("group_norm")


@pytest.mark.parametrize("sizes", [[2, 4, 3], [1, 6, 1]])
def test_gradients_in_float64(sizes):
    doubles.check("group_norm", "plain", [sizes], 2, 1e-3)
