"""sparse_retrieval_head: the reference against the usual form, masks, ties, what is refused, launchers."""

import pytest
import torch
from launched import check

from tilewright import ops


def example():
    torch.manual_seed(3)
    mask = torch.rand(3, 6) > 0.4
    mask[:, 2] = True
    return torch.randn(3, 6, 8), torch.randn(11, 8), torch.randn(11), mask


def usual(x, weight, bias, mask):
    """As SPLADE writes it: every logit, 0 where masked."""
    logits = torch.nn.functional.linear(x, weight, bias)
    return (torch.log1p(torch.relu(logits)) * mask[..., None]).max(1).values


def test_reference_is_the_usual_form():
    x, weight, bias, mask = example()
    torch.testing.assert_close(ops.sparse_retrieval_head(x, weight, bias, mask=mask), usual(x, weight, bias, mask))


def test_gradients_are_those_of_the_usual_form():
    *given, mask = example()
    given = [t.requires_grad_() for t in given]
    up = torch.randn(3, 11)
    got, wanted = (torch.autograd.grad(y, given, up) for y in
                   (ops.sparse_retrieval_head(*given, mask=mask), usual(*given, mask)))  # fmt: skip
    torch.testing.assert_close(got, wanted)


def test_no_token():
    x, weight, bias, mask = example()
    mask[1] = False
    bias[3] = float("nan")
    got = ops.sparse_retrieval_head(x, weight, bias, mask=mask)
    assert (got[1] == 0).all()
    assert got[[0, 2], 3].isnan().all()


def test_what_is_masked_may_be_nan():
    x, weight, bias, mask = example()
    plain = ops.sparse_retrieval_head(x, weight, bias, mask=mask)
    x[~mask] = float("nan")
    torch.testing.assert_close(ops.sparse_retrieval_head(x, weight, bias, mask=mask), plain)


def test_the_first_of_equal_ones_gets_the_gradient():
    x = torch.ones(1, 3, 2, requires_grad=True)
    ops.sparse_retrieval_head(x, torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([[[1.0, 1.0], [0, 0], [0, 0]]]) / 3)


def test_half_precision_rounds_no_logit():
    x, weight, bias, mask = (t.bfloat16() if t.is_floating_point() else t for t in example())
    got = ops.sparse_retrieval_head(x, weight, bias, mask=mask)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, ops.sparse_retrieval_head(x.float(), weight.float(), bias.float(), mask=mask))


@pytest.mark.parametrize(("change", "words"), [
    ({"x": torch.zeros(6, 8)}, ["x", "(6, 8)", "(sequences, positions, features)"]),
    ({"weight": torch.zeros(8, 11)}, ["weight", "(8, 11)", "(words, 8)", "weight.t()"]),
    ({"weight": torch.zeros(11, 8).half()}, ["weight", "float16", "float32 as x"]),
    ({"bias": torch.zeros(8)}, ["bias", "(8,)", "(11,)"]),
    ({"mask": torch.zeros(3, 6)}, ["mask", "float32", "bool", "mask.bool()"]),
    ({"mask": torch.zeros(3, 5, dtype=torch.bool)}, ["mask", "(3, 5)", "(3, 6)"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    with pytest.raises(ops.ArgumentError) as e:
        ops.sparse_retrieval_head(**(dict(zip(("x", "weight", "bias", "mask"), example(), strict=True)) | change))
    for word in ["sparse_retrieval_head", *words]:
        assert word in str(e.value) + str(e.value.remedy)


def test_launchers():
    check("sparse_retrieval_head")
