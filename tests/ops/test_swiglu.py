"""swiglu: the reference against PyTorch, what is refused, and what the launchers hand to the kernels."""

import doubles
import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops


def example(*shape):
    torch.manual_seed(3)
    return torch.randn(shape or (4, 7)), torch.randn(shape or (4, 7))


@pytest.mark.parametrize("shape", [(4, 7), (2, 3, 5), (6,), (), (0, 4)])
def test_reference_is_pytorch(shape):
    gate, up = torch.randn(shape), torch.randn(shape)
    torch.testing.assert_close(ops.swiglu(gate, up), F.silu(gate) * up)


def test_halves_of_one_tensor():
    gate, up = example()
    packed = torch.cat([gate, up], -1)
    torch.testing.assert_close(ops.swiglu_packed(packed), ops.swiglu(gate, up))
    torch.testing.assert_close(ops.swiglu(*packed.chunk(2, -1)), ops.swiglu(gate, up))


@pytest.mark.parametrize(("change", "words"), [
    ({"up": torch.ones(4, 6)}, ["up", "(4, 6)", "(4, 7)", "the shape of gate"]),
    ({"up": torch.ones(4, 7).half()}, ["up", "float16", "float32 as gate", "up.to(gate.dtype)"]),
    ({"gate": torch.ones(4, 7, dtype=torch.int64)}, ["gate", "int64", "bfloat16"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    gate, up = example()
    with pytest.raises(ops.ArgumentError) as e:
        ops.swiglu(**({"gate": gate, "up": up} | change))
    for word in ["swiglu", *words]:
        assert word in str(e.value)


@pytest.mark.parametrize("x", [torch.ones(2, 5), torch.tensor(1.0)])
def test_packed_needs_two_halves(x):
    with pytest.raises(ops.ArgumentError, match="even size"):
        ops.swiglu_packed(x)


@pytest.mark.parametrize("name", ["swiglu", "swiglu_packed"])
def test_launchers(name):
    check(name)


@pytest.mark.parametrize(("entry", "sizes"), [("kernel", [[3, 5], [3, 5]]), ("packed", [[3, 8]])])
def test_gradients_in_float64(entry, sizes):
    doubles.check("swiglu", entry, sizes)
