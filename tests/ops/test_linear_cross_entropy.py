"""linear_cross_entropy: the reference against PyTorch, what is refused, and what the launchers hand to the kernels."""

import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops
from tilewright.ops.linear_cross_entropy import op


def example():
    torch.manual_seed(7)
    return torch.randn(9, 6), torch.randn(5, 6), torch.tensor([0, 4, -100, 2, 1, -100, 3, 3, 0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smooth", [0.0, 0.3])
def test_reference_is_pytorch(reduction, smooth):
    x, w, t = example()
    bias, classes = torch.randn(5), torch.rand(5) + 0.5
    options = {"label_smoothing": smooth, "reduction": reduction}
    wanted = F.cross_entropy(F.linear(x, w, bias), t, classes, **options)
    torch.testing.assert_close(ops.linear_cross_entropy(x, w, t, bias, class_weight=classes, **options), wanted)


def test_gradients_of_all_three():
    x, w, t = example()
    given = [x.requires_grad_(), w.requires_grad_(), torch.randn(5, requires_grad=True)]
    got = torch.autograd.grad(3 * ops.linear_cross_entropy(x, w, t, given[2], softcap=2.0), given)
    wanted = torch.autograd.grad(3 * ops.cross_entropy(F.linear(*given), t, softcap=2.0), given)
    torch.testing.assert_close(got, wanted)


def test_only_wanted_gradients_take_memory():
    x, w, t = example()
    for want_x, reduction, kept in ((True, "mean", (9, 6)), (False, "mean", (0,)), (True, "none", (0,))):
        like = op.results(x, w, t, None, None, -100, 0.0, 0.0, 0.0, reduction, want_x)
        assert [k.shape for k in like] == [(9,) if reduction == "none" else (), (9, 2), kept]


@pytest.mark.parametrize(("change", "words"), [
    ({"weight": torch.zeros(6, 5)}, ["weight", "(6, 5)", "(classes, 6)", "weight.t()"]),
    ({"weight": torch.zeros(5, 6).half()}, ["weight", "float16", "float32 as x"]),
    ({"target": torch.zeros(8, dtype=torch.int64)}, ["target", "(8,)", "(9,)"]),
    ({"bias": torch.zeros(4)}, ["bias", "(4,)", "(5,)"]),
    ({"class_weight": torch.zeros(4)}, ["class_weight", "(4,)", "(5,)"]),
    ({"reduction": "avg"}, ["reduction", "'avg'"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    given = dict(zip(("x", "weight", "target"), example(), strict=True))
    with pytest.raises(ops.ArgumentError) as e:
        ops.linear_cross_entropy(**(given | change))
    for word in ["linear_cross_entropy", *words]:
        assert word in str(e.value)


def test_launchers():
    check("linear_cross_entropy")
