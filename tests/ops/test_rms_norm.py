"""rms_norm: the reference against PyTorch, what is refused, what the launchers hand to the kernels, tilings."""

import os
import subprocess
import sys
from importlib.metadata import version

import doubles
import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops
from tilewright.ops._builder import find
from tilewright.ops._builder.copies import MADE
from tilewright.ops._builder.rows import rows


def example(*shape):
    torch.manual_seed(3)
    return torch.randn(shape or (4, 7)), torch.rand((shape or (4, 7))[-1]) + 0.5


@pytest.mark.parametrize("shape", [(4, 7), (2, 3, 5), (6,), (0, 4), (3, 1)])
def test_reference_is_pytorch(shape):
    x, w = example(*shape)
    torch.testing.assert_close(ops.rms_norm(x, w, eps=1e-5), F.rms_norm(x, (shape[-1],), w, 1e-5))
    torch.testing.assert_close(ops.rms_norm(x, eps=1e-5), F.rms_norm(x, (shape[-1],), None, 1e-5))


def test_offset_is_added_to_the_weight():
    x, w = example()
    torch.testing.assert_close(ops.rms_norm(x, w - 1, offset=1.0), ops.rms_norm(x, w))


def test_residual_gives_the_rounded_sum():
    x, w = example()
    x, w, r = x.bfloat16(), w.bfloat16(), example()[0].flip(0).bfloat16()
    y, total = ops.rms_norm_residual(x, r, w)
    assert torch.equal(total, x + r)
    assert torch.equal(y, ops.rms_norm(total, w))


@pytest.mark.parametrize(("change", "words"), [
    ({"weight": torch.ones(6)}, ["weight", "(6,)", "(7,)", "the last dim of x"]),
    ({"weight": torch.ones(7).half()}, ["weight", "float16", "float32 as x", "weight.to(x.dtype)"]),
    ({"x": torch.ones(4, 7, dtype=torch.int64)}, ["x", "int64", "bfloat16"]),
    ({"x": torch.tensor(1.0)}, ["x", "()", "at least one dim"]),
    ({"residual": torch.ones(7)}, ["residual", "(7,)", "(4, 7)", "the shape of x"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    x, w = example()
    given = {"x": x, "weight": w} | change
    with pytest.raises(ops.ArgumentError) as e:
        (ops.rms_norm_residual if "residual" in change else ops.rms_norm)(**given)
    for word in ["rms_norm", *words]:
        assert word in str(e.value)


@pytest.mark.parametrize("name", ["rms_norm", "rms_norm_residual"])
def test_launchers(name):
    check(name)


@pytest.mark.parametrize(("entry", "sizes", "scalars"), [
    ("kernel", [[3, 5], [5]], [1e-3, 1.0]), ("plain", [[2, 4]], [1e-3]), ("residual", [[3, 5], [3, 5], [5]], [1e-3, 0.0]),
])  # fmt: skip
def test_gradients_in_float64(entry, sizes, scalars):
    doubles.check("rms_norm", entry, sizes, *scalars)


def test_gradient_of_the_sum_alone_passes_through():
    op, g = find("rms_norm_residual").op, torch.randn(7, 4).T
    saved = {"total": torch.zeros(4, 7), "weight": torch.ones(7), "scale": torch.ones(4)}
    got = op.backward((None, g), saved, {"eps": 1e-6, "offset": 0.0}, ["x", "residual", "weight"])
    assert torch.equal(got["x"], g)
    assert torch.equal(got["residual"], g)
    assert not got["weight"].any()
    assert got["x"].is_contiguous()
    assert got["x"].data_ptr() != got["residual"].data_ptr(), "results of a registered operator share memory"


SHARED = """
import torch
import tilewright.ops
from tilewright.ops._builder import Built, direct, find

Built.route = lambda self, arguments: "kernel"
clones = []
clone = torch.Tensor.clone
torch.Tensor.clone = lambda t, *a, **k: clones.append(1) or clone(t, *a, **k)
f = find("rms_norm_residual")
for way in ("direct", "registered"):
    if way == "registered":
        direct.watched = lambda arguments: True
    torch.manual_seed(1)
    leaves = [torch.randn(3, 8, requires_grad=True) for _ in range(2)]
    before = [2 * t for t in leaves]
    inner, weight = [t * 1.0 for t in before], torch.ones(8)
    made = []
    for given in (leaves, inner):
        clones.clear()
        y, total = f(*given, weight, 1e-6, 0.0)
        made.append(torch.autograd.grad(y.square().sum() + total.sum(), given, retain_graph=True))
        assert len(clones) == (way == "registered"), (way, len(clones))
    assert torch.equal(made[0][0], made[0][1])
    # Leaves keep what is their own, also where gradients are added up in place.
    y, total = f(*leaves, weight, 1e-6, 0.0)
    loss = y.square().sum() + total.sum()
    loss.backward(retain_graph=True)
    assert leaves[0].grad.data_ptr() != leaves[1].grad.data_ptr()
    once = leaves[0].grad.clone()
    leaves[0].grad.mul_(0)
    assert torch.equal(leaves[1].grad, once)
    loss.backward()
    assert torch.equal(leaves[0].grad, once) and torch.equal(leaves[1].grad, 2 * once)
    # One tensor in both places: the gradients add up.
    x = torch.randn(3, 8, requires_grad=True)
    y, total = f(x, x, weight, 1e-6, 0.0)
    (both,) = torch.autograd.grad(y.square().sum() + total.sum(), [x])
    z = x.detach().clone().requires_grad_()
    h = z + z
    norm = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)
    (wanted,) = torch.autograd.grad(norm.square().sum() + h.sum(), [z])
    torch.testing.assert_close(both, wanted)
"""


def test_input_and_residual_share_a_gradient_on_the_way_to_autograd_alone():
    """Through the registered operator one of them is a copy; neither way do leaves' gradients share memory."""
    if version("triton") < "3.7":
        pytest.skip("the interpreter of this Triton fails with a current NumPy")
    done = subprocess.run([sys.executable, "-c", SHARED], env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True,
                          text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def test_rows_are_views_where_strides_allow_and_counted_copies_else():
    x, before = torch.randn(2, 3, 8), MADE["rms_norm", "x"]
    assert rows("rms_norm", "x", x[..., :4]).data_ptr() == x.data_ptr()
    assert MADE["rms_norm", "x"] == before
    assert torch.equal(rows("rms_norm", "x", x.transpose(0, 1)), x.transpose(0, 1).reshape(6, 8))
    assert MADE["rms_norm", "x"] == before + 1


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_tilings_fit_a_program(name):
    """A tile spans the row, and what loads fetch ahead fits into the 227 KiB of shared memory of a program."""
    kernel = pytest.importorskip(f"tilewright.ops.{name}.kernel")
    for N in (1, 2, 100, 128, 4096, 4097, 8192, 16384, 32768):
        tile = kernel.tiling(N)
        assert tile["BLOCK"] >= N
        assert tile["ROWS"] * tile["BLOCK"] <= max(2048, tile["BLOCK"])
        for itemsize in (2, 4, 8):
            back = kernel.tiling_backward(N, itemsize)
            ahead = (back["STAGES"] - 1) * 3 * back["ROWS"] * back["BLOCK"] * itemsize
            assert N > kernel.WHOLE_BACKWARD or ahead <= 192 << 10
