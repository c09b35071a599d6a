"""geglu: the reference against PyTorch, what is refused, and what the launchers hand to the kernels."""

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
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_reference_is_pytorch(shape, approximate):
    gate, up = torch.randn(shape), torch.randn(shape)
    wanted = F.gelu(gate, approximate=approximate) * up
    torch.testing.assert_close(ops.geglu(gate, up, approximate=approximate), wanted)


def test_halves_of_one_tensor():
    gate, up = example()
    packed = torch.cat([gate, up], -1)
    torch.testing.assert_close(ops.geglu_packed(packed), ops.geglu(gate, up))
    torch.testing.assert_close(ops.geglu(*packed.chunk(2, -1)), ops.geglu(gate, up))


@pytest.mark.parametrize(("change", "words"), [
    ({"up": torch.ones(4, 6)}, ["up", "(4, 6)", "(4, 7)", "the shape of gate"]),
    ({"up": torch.ones(4, 7).half()}, ["up", "float16", "float32 as gate", "up.to(gate.dtype)"]),
    ({"gate": torch.ones(4, 7, dtype=torch.int64)}, ["gate", "int64", "bfloat16"]),
    ({"approximate": "erf"}, ["approximate", "'erf'", "'none' or 'tanh'"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    gate, up = example()
    with pytest.raises(ops.ArgumentError) as e:
        ops.geglu(**({"gate": gate, "up": up} | change))
    for word in ["geglu", *words]:
        assert word in str(e.value)


@pytest.mark.parametrize("x", [torch.ones(2, 5), torch.tensor(1.0)])
def test_packed_needs_two_halves(x):
    with pytest.raises(ops.ArgumentError, match="even size"):
        ops.geglu_packed(x)


@pytest.mark.parametrize("name", ["geglu", "geglu_packed"])
def test_launchers(name):
    check(name)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize(("entry", "sizes"), [("kernel", [[3, 5], [3, 5]]), ("packed", [[3, 8]])])
def test_gradients_in_float64(entry, sizes, approximate):
    doubles.check("geglu", entry, sizes, approximate)
