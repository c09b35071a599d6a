"""layer_norm: the reference against PyTorch, what is refused, and what the launchers hand to the kernels."""

import doubles
import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops


def example(*shape):
    torch.manual_seed(3)
    n = (shape or (4, 7))[-1]
    return torch.randn(shape or (4, 7)), torch.rand(n) + 0.5, torch.randn(n)


@pytest.mark.parametrize("shape", [(4, 7), (2, 3, 5), (6,), (0, 4), (3, 1)])
@pytest.mark.parametrize("given", [0, 1, 2])
def test_reference_is_pytorch(shape, given):
    x, w, b = example(*shape)
    w, b = w if given else None, b if given == 2 else None
    torch.testing.assert_close(ops.layer_norm(x, w, b, eps=1e-4), F.layer_norm(x, (shape[-1],), w, b, 1e-4))


def test_bias_without_weight():
    x, _, b = example()
    torch.testing.assert_close(ops.layer_norm(x, None, b), F.layer_norm(x, (7,), None, b))


@pytest.mark.parametrize(("change", "words"), [
    ({"weight": torch.ones(6)}, ["weight", "(6,)", "(7,)", "the last dim of x"]),
    ({"bias": torch.ones(7).half()}, ["bias", "float16", "float32 as x", "bias.to(x.dtype)"]),
    ({"x": torch.ones(4, 7, dtype=torch.int64)}, ["x", "int64", "bfloat16"]),
    ({"x": torch.tensor(1.0)}, ["x", "()", "at least one dim"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    x, w, b = example()
    with pytest.raises(ops.ArgumentError) as e:
        ops.layer_norm(**({"x": x, "weight": w, "bias": b} | change))
    for word in ["layer_norm", *words]:
        assert word in str(e.value)


def test_launchers():
    check("layer_norm")


@pytest.mark.parametrize(("entry", "sizes"), [
    ("kernel", [[3, 5], [5], [5]]), ("unbiased", [[2, 4], [4]]), ("plain", [[2, 4]]),
])  # fmt: skip
def test_gradients_in_float64(entry, sizes):
    doubles.check("layer_norm", entry, sizes, 1e-3)
