"""linear_js_divergence: the reference against js_divergence of formed logits, what is refused, what launchers hand over."""

import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops
from tilewright.ops.linear_js_divergence import op


def example(dtype=torch.float64):
    torch.manual_seed(7)
    sizes = {"x": (2, 3, 6), "weight": (5, 6), "teacher": (2, 3, 4), "teacher_weight": (5, 4)}
    return {n: torch.randn(s, dtype=dtype) for n, s in sizes.items()}


def formed(x, weight, teacher, teacher_weight, reduction, **options):
    s, t = F.linear(x, weight), F.linear(teacher, teacher_weight).log_softmax(-1)
    each = ops.js_divergence(s, t, log_target=True, reduction="none", **options).sum(-1)
    return each if reduction == "none" else getattr(each, reduction)()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("temperature", "beta"), [(1.0, 0.5), (2.5, 0.2)])
def test_reference_is_the_divergence_of_formed_logits(reduction, temperature, beta):
    given, options = example(), {"temperature": temperature, "reduction": reduction, "beta": beta}
    wanted = formed(**given, **options)
    torch.testing.assert_close(ops.linear_js_divergence(**given, **options), wanted)


def test_gradients_reach_the_student_alone():
    given = {n: t.requires_grad_() for n, t in example().items()}
    student = [given["x"], given["weight"]]
    got = torch.autograd.grad(3 * ops.linear_js_divergence(**given), student, retain_graph=True)
    torch.testing.assert_close(
        got, torch.autograd.grad(3 * formed(**given, reduction="mean", temperature=1.0), student)
    )
    (of_teacher,) = torch.autograd.grad(ops.linear_js_divergence(**given), [given["teacher"]], allow_unused=True)
    assert of_teacher is None


def test_of_itself_it_is_nothing():
    given = example()
    given |= {"teacher": given["x"], "teacher_weight": given["weight"]}
    assert ops.linear_js_divergence(**given).abs() < 1e-12


def test_what_is_kept():
    given = example(torch.bfloat16)
    for want_x, reduction, kept in ((True, "mean", (2, 3, 6)), (False, "mean", (0,)), (True, "none", (0,))):
        like = op.results(*given.values(), 0.5, 1.0, reduction, want_x)
        assert [k.shape for k in like] == [(2, 3) if reduction == "none" else (), (6, 5), kept]
        assert [k.dtype for k in like] == [torch.float32, torch.float32, torch.bfloat16]


@pytest.mark.parametrize(("change", "words"), [
    ({"weight": torch.zeros(6, 5)}, ["weight", "(6, 5)", "(classes, 6)", "weight.t()"]),
    ({"weight": torch.zeros(5, 6).half()}, ["weight", "float16", "float32 as x"]),
    ({"teacher": torch.zeros(2, 4, 4)}, ["teacher", "(2, 4, 4)", "(2, 3, features), rows as x"]),
    ({"teacher_weight": torch.zeros(5, 6)}, ["teacher_weight", "(5, 6)", "(classes, 4) for teacher"]),
    ({"teacher_weight": torch.zeros(7, 4)}, ["teacher_weight", "7 classes", "5 as weight"]),
    ({"beta": 1.0}, ["beta", "1.0", "linear_kl_divergence, where beta is 1"]),
    ({"temperature": 0.0}, ["temperature", "0.0", "positive"]),
    ({"reduction": "batchmean"}, ["reduction", "'batchmean'", "'mean'"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    with pytest.raises(ops.ArgumentError) as e:
        ops.linear_js_divergence(**(example(torch.float32) | change))
    for word in ["linear_js_divergence", *words]:
        assert word in str(e.value)


def test_launchers():
    check("linear_js_divergence")
