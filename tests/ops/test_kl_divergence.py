"""kl_divergence: the reference against PyTorch, what is refused, and what the launchers hand to the kernels."""

import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops


def example(*shape):
    torch.manual_seed(5)
    return torch.randn(shape or (4, 7)).log_softmax(-1), torch.randn(shape or (4, 7)).log_softmax(-1)


@pytest.mark.parametrize("reduction", ["batchmean", "mean", "sum", "none"])
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("shape", [(4, 7), (2, 3, 7)])
def test_reference_is_pytorch(reduction, log_target, shape):
    x, t = example(*shape)
    t = t if log_target else t.exp()
    wanted = F.kl_div(x, t, log_target=log_target, reduction=reduction)
    torch.testing.assert_close(ops.kl_divergence(x, t, log_target=log_target, reduction=reduction), wanted)


def test_temperature_normalises_both():
    x, t = example()
    wanted = F.kl_div((x / 3).log_softmax(-1), (t / 3).log_softmax(-1), log_target=True, reduction="none")
    got = ops.kl_divergence(x + 5, t - 2, log_target=True, temperature=3.0, reduction="none")
    torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-4)


def test_a_target_of_zero_adds_nothing():
    x, t = torch.tensor([[-float("inf"), 0.0]]), torch.tensor([[0.0, 1.0]])
    assert ops.kl_divergence(x, t) == 0
    assert ops.kl_divergence(x, t.log(), log_target=True) == 0


@pytest.mark.parametrize(("change", "words"), [
    ({"target": torch.zeros(4, 6)}, ["target", "(4, 6)", "(4, 7)"]),
    ({"target": torch.zeros(4, 7).half()}, ["target", "float16", "float32 as x"]),
    ({"temperature": 0.0}, ["temperature", "0.0", "positive"]),
    ({"reduction": "batch"}, ["reduction", "'batch'", "'batchmean'"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    with pytest.raises(ops.ArgumentError) as e:
        ops.kl_divergence(**(dict(zip(("x", "target"), example(), strict=True)) | change))
    for word in ["kl_divergence", *words]:
        assert word in str(e.value)


def test_launchers():
    check("kl_divergence")
