"""rope: the reference against complex rotation, what is refused, and what the launchers hand to the kernels."""

import pytest
import torch
from launched import check

from tilewright import ops


def example(length=5, half=4, rest=0):
    torch.manual_seed(4)
    q, k = torch.randn(2, 4, length, 2 * half + rest), torch.randn(2, 2, length, 2 * half + rest)
    angle = torch.rand(9, half) * 6
    return q, k, angle.cos(), angle.sin()


@pytest.mark.parametrize("interleaved", [False, True])
def test_is_a_complex_rotation(interleaved):
    q, k, cos, sin = example(rest=3)
    pair = (lambda x: torch.complex(x[..., 0:8:2], x[..., 1:8:2])) if interleaved else (
        lambda x: torch.complex(x[..., :4], x[..., 4:8]))  # fmt: skip
    got = ops.rope(q, k, cos, sin, interleaved=interleaved)
    for x, y in zip((q, k), got, strict=True):
        torch.testing.assert_close(pair(y), pair(x) * torch.complex(cos, sin)[:5])
        assert torch.equal(y[..., 8:], x[..., 8:])


def test_positions():
    q, k, cos, sin = example()
    at = torch.randint(9, (2, 5))
    got = ops.rope(q, k, cos, sin, positions=at)
    for b in range(2):
        wanted = ops.rope(q[b : b + 1], k[b : b + 1], cos[at[b]], sin[at[b]])
        assert all(torch.equal(g[b : b + 1], w) for g, w in zip(got, wanted, strict=True))


def test_a_position_outside_of_the_table_gives_nan():
    q, k, cos, sin = example()
    at = torch.tensor([[0, 1, 9, 2, -1]])
    got, _ = ops.rope(q, k, cos, sin, positions=at)
    assert got.isnan().any(-1)[0, 0].tolist() == [False, False, True, False, True]


def test_in_place_is_the_same_and_returns_its_arguments():
    q, k, cos, sin = example(rest=2)
    wanted = ops.rope(q, k, cos, sin)
    got = ops.rope_(q, k, cos, sin)
    assert got[0] is q
    assert got[1] is k
    assert torch.equal(q, wanted[0])
    assert torch.equal(k, wanted[1])


@pytest.mark.parametrize(("change", "words"), [
    ({"q": torch.zeros(2, 5, 8)}, ["q", "(2, 5, 8)", "(batch, heads, length, dims)"]),
    ({"k": torch.zeros(2, 2, 6, 8)}, ["k", "(2, 2, 6, 8)", "only the number of heads"]),
    ({"k": torch.zeros(2, 2, 5, 8).half()}, ["k", "float16", "float32 as q"]),
    ({"cos": torch.zeros(9, 5), "sin": torch.zeros(9, 5)}, ["cos", "5 angles", "1 to 4 for 8 dims"]),
    ({"cos": torch.zeros(4, 4), "sin": torch.zeros(4, 4)}, ["cos", "4 positions", "5 tokens"]),
    ({"positions": torch.zeros(3, 5, dtype=torch.int64)}, ["positions", "(3, 5)", "(2 or 1, 5)"]),
    ({"positions": torch.zeros(2, 5, dtype=torch.int32)}, ["positions", "int32", "int64"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    given = dict(zip(("q", "k", "cos", "sin"), example(), strict=True))
    with pytest.raises(ops.ArgumentError) as e:
        ops.rope(**(given | change))
    for word in ["rope", *words]:
        assert word in str(e.value)


def test_in_place_refuses_gradients():
    q, k, cos, sin = example()
    with pytest.raises(ops.ArgumentError, match="requires a gradient"):
        ops.rope_(q.requires_grad_(), k, cos, sin)


@pytest.mark.parametrize("name", ["rope", "rope_"])
def test_launchers(name):
    check(name)
