"""max_sim: the reference against a plain loop, masks, forms against each other, what is refused, launchers."""

import pytest
import torch
from launched import check

from tilewright import ops


def example(*, queries=3, documents=4):
    torch.manual_seed(11)
    q, d = torch.randn(queries, 5, 8), torch.randn(documents, 7, 8)
    q_mask, d_mask = torch.rand(queries, 5) > 0.3, torch.rand(documents, 7) > 0.4
    d_mask[:, 0] = True
    return q, d, q_mask, d_mask


def loop(q, d, q_mask, d_mask):
    """One score, token by token."""
    return sum((max((float(a @ b) for b, v in zip(d, d_mask, strict=True) if v), default=-float("inf"))
                for a, v in zip(q, q_mask, strict=True) if v), 0.0)  # fmt: skip


def test_reference_is_the_definition():
    q, d, q_mask, d_mask = example()
    got = ops.max_sim(q, d, q_mask=q_mask, d_mask=d_mask)
    wanted = [[loop(q[i], d[j], q_mask[i], d_mask[j]) for j in range(4)] for i in range(3)]
    torch.testing.assert_close(got, torch.tensor(wanted))


def test_padding_does_not_beat_negative_scores():
    q, d = torch.ones(1, 1, 2), torch.tensor([[[-1.0, -1.0], [0.0, 0.0]]])
    assert ops.max_sim(q, d, d_mask=torch.tensor([[True, False]])) == -2
    assert ops.max_sim(q, d) == 0


def test_no_tokens():
    q, d, q_mask, d_mask = example()
    q_mask[1], d_mask[2] = False, False
    got = ops.max_sim(q, d, q_mask=q_mask, d_mask=d_mask)
    assert (got[1] == 0).all()
    assert (got[[0, 2], 2] == -float("inf")).all()
    assert got[0, [0, 1, 3]].isfinite().all()


def test_no_tokens_have_no_gradient():
    q, d, q_mask, d_mask = example()
    d_mask[2] = False
    q.requires_grad_()
    d.requires_grad_()
    ops.max_sim(q, d, q_mask=q_mask, d_mask=d_mask).nan_to_num(neginf=0.0).square().sum().backward()
    assert (d.grad[2] == 0).all()
    assert q.grad.isfinite().all()
    assert (q.grad[~q_mask] == 0).all()


def test_what_is_masked_may_be_nan():
    q, d, q_mask, d_mask = example()
    plain = ops.max_sim(q, d, q_mask=q_mask, d_mask=d_mask)
    q[~q_mask], d[~d_mask] = float("nan"), float("inf")
    torch.testing.assert_close(ops.max_sim(q, d, q_mask=q_mask, d_mask=d_mask), plain)


def test_the_first_of_equal_ones_gets_the_gradient():
    q, d = torch.ones(1, 1, 2), torch.ones(1, 3, 2, requires_grad=True)
    ops.max_sim(q, d).sum().backward()
    assert d.grad[0].tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_forms_agree():
    q, d, q_mask, d_mask = example(queries=4)
    whole = ops.max_sim(q, d, q_mask=q_mask, d_mask=d_mask)
    torch.testing.assert_close(ops.max_sim_pairs(q, d, q_mask=q_mask, d_mask=d_mask), whole.diagonal())
    packed = [torch.cat([s[m] for s, m in zip(*side, strict=True)]) for side in ((q, q_mask), (d, d_mask))]
    cu = [torch.nn.functional.pad(m.sum(1).cumsum(0), (1, 0)).int() for m in (q_mask, d_mask)]
    torch.testing.assert_close(ops.max_sim_packed(*packed, *cu), whole)


def test_int8_is_the_product():
    q, _, q_mask, d_mask = example()
    d, scale = torch.randint(-127, 128, (4, 7, 8), dtype=torch.int8), torch.rand(4, 7) + 0.1
    wanted = ops.max_sim(q, d * scale[..., None], q_mask=q_mask, d_mask=d_mask)
    torch.testing.assert_close(ops.max_sim_int8(q, d, scale, q_mask=q_mask, d_mask=d_mask), wanted)


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_top_k(chunk):
    q, d, q_mask, d_mask = example(documents=10)
    d[7] = d[2]  # equal scores: the lower number first
    d_mask[7] = d_mask[2]
    scores = ops.max_sim(q, d, q_mask=q_mask, d_mask=d_mask)
    best, at = ops.max_sim_top_k(q, d, 10, q_mask=q_mask, d_mask=d_mask, chunk=chunk)
    torch.testing.assert_close(best, scores.sort(1, descending=True).values)
    torch.testing.assert_close(scores.gather(1, at), best)
    assert all(row.index(2) + 1 == row.index(7) for row in at.tolist())
    assert torch.equal(ops.max_sim_top_k(q, d, 2, q_mask=q_mask, d_mask=d_mask, chunk=chunk)[1], at[:, :2])


@pytest.mark.parametrize(("change", "words"), [
    ({"d": torch.zeros(4, 7, 9)}, ["d", "9 features", "8 as q"]),
    ({"d": torch.zeros(4, 7, 8).half()}, ["d", "float16", "float32 as q", "d.to(q.dtype)"]),
    ({"q": torch.zeros(5, 8)}, ["q", "(5, 8)", "(sequences, tokens, features)"]),
    ({"d_mask": torch.zeros(4, 6, dtype=torch.bool)}, ["d_mask", "(4, 6)", "(4, 7)"]),
    ({"q_mask": torch.zeros(3, 5)}, ["q_mask", "float32", "bool", "q_mask.bool()"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    given = dict(zip(("q", "d", "q_mask", "d_mask"), example(), strict=True)) | change
    with pytest.raises(ops.ArgumentError) as e:
        ops.max_sim(**given)
    for word in ["max_sim", *words]:
        assert word in str(e.value) + str(e.value.remedy)


def test_what_the_other_forms_refuse():
    q, d, _, _ = example()
    with pytest.raises(ops.ArgumentError, match="4 documents, expected 3"):
        ops.max_sim_pairs(q, d)
    with pytest.raises(ops.ArgumentError, match=r"cu_d is .*float32.* expected int32 or int64"):
        ops.max_sim_packed(q[0], d[0], torch.tensor([0, 5]), torch.tensor([0.0, 7.0]))
    with pytest.raises(ops.ArgumentError, match="d is a tensor of float32, expected int8"):
        ops.max_sim_int8(q, d, torch.ones(4, 7))
    with pytest.raises(ops.ArgumentError, match=r"scale is of shape \(4, 6\), expected \(4, 7\)"):
        ops.max_sim_int8(q, d.to(torch.int8), torch.ones(4, 6))
    with pytest.raises(ops.ArgumentError, match="k is 5, expected between 1 and 4"):
        ops.max_sim_top_k(q, d, 5)


@pytest.mark.parametrize("name", ["max_sim", "max_sim_pairs", "max_sim_packed", "max_sim_int8"])
def test_launchers(name):
    check(name)
