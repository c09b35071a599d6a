"""attention_kl: the reference against PyTorch's divergences, masks, grouped heads, what is refused, launchers."""

import math

import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops


def example(*, queries=5, keys=9, heads=4, teachers=2, students=1):
    torch.manual_seed(9)
    return [torch.randn(s) for s in ((2, heads, queries, 8), (2, teachers, keys, 8), (2, heads, queries, 6),
                                     (2, students, keys, 6))]  # fmt: skip


def log_attention(q, k, causal=False):
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(logits.shape[-2:]).triu(1 + k.shape[2] - q.shape[2]).bool()
        logits = logits.masked_fill(hidden, -1e4)
    return logits.log_softmax(-1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("divergence", ["forward", "reverse"])
def test_reference_is_kl_div(divergence, causal):
    given = example()
    p, q = log_attention(*given[:2], causal), log_attention(*given[2:], causal)
    if divergence == "reverse":
        p, q = q, p
    wanted = F.kl_div(q, p, log_target=True, reduction="none").sum(-1)
    options = {"causal": causal, "divergence": divergence}
    torch.testing.assert_close(ops.attention_kl(*given, **options, reduction="none"), wanted)
    torch.testing.assert_close(ops.attention_kl(*given, **options), wanted.mean())
    torch.testing.assert_close(ops.attention_kl(*given, **options, reduction="sum"), wanted.sum())


def test_jensen_shannon_is_bounded_and_even():
    given = [100 * t for t in example()]
    there = ops.attention_kl(*given, divergence="js", reduction="none")
    back = ops.attention_kl(*given[2:], *given[:2], divergence="js", reduction="none")
    torch.testing.assert_close(there, back)
    assert (there >= 0).all()
    assert (there <= math.log(2) + 1e-6).all()
    assert there.max() > 0.69


def test_jensen_shannon_is_the_definition():
    given = example()
    p, q = log_attention(*given[:2]).exp(), log_attention(*given[2:]).exp()
    m = (p + q) / 2
    wanted = (p * (p / m).log() + q * (q / m).log()).sum(-1) / 2
    torch.testing.assert_close(ops.attention_kl(*given, divergence="js", reduction="none"), wanted)


def test_masked_keys_are_as_if_they_were_not_there():
    given = example()
    mask = torch.tensor([True, False, True, True, False, True, True, True, False]).expand(2, -1)
    wanted = ops.attention_kl(given[0], given[1][:, :, mask[0]], given[2], given[3][:, :, mask[0]])
    torch.testing.assert_close(ops.attention_kl(*given, key_mask=mask), wanted)


@pytest.mark.parametrize("divergence", ["forward", "reverse", "js"])
def test_what_sees_nothing_is_nothing(divergence):
    given = [t.requires_grad_() for t in example(queries=6, keys=3)]  # the first three queries come before every key
    options = {"causal": True, "divergence": divergence}
    rows = ops.attention_kl(*given, reduction="none", **options)
    assert (rows[:, :, :3] == 0).all()
    assert (rows[:, :, 4:] > 0).all()
    none = torch.zeros(2, 3, dtype=torch.bool)
    grads = torch.autograd.grad(ops.attention_kl(*given, key_mask=none, **options), given)
    assert all((g == 0).all() for g in grads)


def test_a_mean_counts_the_queries_that_are_there():
    given = example()
    mask = torch.tensor([[True, True, False, False, True], [True, False, False, False, False]])
    rows = ops.attention_kl(*given, reduction="none")
    wanted = rows.permute(0, 2, 1)[mask].mean()
    torch.testing.assert_close(ops.attention_kl(*given, query_mask=mask), wanted)


def test_a_student_like_the_teacher_has_no_gradient():
    q, k = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 7, 8)
    student = [q.clone().requires_grad_(), k.clone().requires_grad_()]
    loss = ops.attention_kl(q, k, *student)
    loss.backward()
    assert loss.abs() < 1e-6
    assert all(t.grad.abs().max() < 1e-6 for t in student)


@pytest.mark.parametrize(("at", "value", "words"), [
    ("k", torch.zeros(2, 3, 9, 6), ["k", "3 heads", "divides the heads of q, 4"]),
    ("k", torch.zeros(2, 1, 8, 6), ["teacher_k", "(2, 2, 9, 8)", "(2, 2, 8, 8)"]),
    ("k", torch.zeros(2, 1, 9, 7), ["k", "(2, 1, 9, 7)", "(2, 1, 9, 6)"]),
    ("teacher_q", torch.zeros(2, 2, 5, 8), ["teacher_q", "(2, 2, 5, 8)", "(2, 4, 5, 8)"]),
    ("teacher_k", torch.zeros(2, 2, 9, 8).half(), ["teacher_k", "float16", "float32 as q"]),
    ("key_mask", torch.ones(2, 9), ["key_mask", "float32", "bool"]),
    ("query_mask", torch.ones(2, 9).bool(), ["query_mask", "(2, 9)", "(2, 5)"]),
    ("divergence", "kl", ["divergence", "'kl'", "'forward'"]),
    ("reduction", "batchmean", ["reduction", "'batchmean'", "'none'"]),
])  # fmt: skip
def test_what_is_refused(at, value, words):
    given = dict(zip(("teacher_q", "teacher_k", "q", "k"), example(), strict=True)) | {at: value}
    with pytest.raises(ops.ArgumentError) as e:
        ops.attention_kl(**given)
    for word in ["attention_kl", *words]:
        assert word in str(e.value)


def test_launchers():
    check("attention_kl")
