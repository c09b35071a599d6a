"""js_divergence: the reference against its definition, what is refused, and what the launchers hand to the kernels."""

import pytest
import torch
from launched import check

from tilewright import ops
from tilewright.ops.js_divergence import kernel as launchers
from tilewright.ops.js_divergence import op


def example():
    torch.manual_seed(6)
    return torch.randn(4, 7).log_softmax(-1), torch.randn(4, 7).log_softmax(-1)


def defined(x, t, beta):
    p, q = t.double().exp(), x.double().exp()
    m = beta * p + (1 - beta) * q
    return beta * p * (p / m).log() + (1 - beta) * q * (q / m).log()


@pytest.mark.parametrize("beta", [0.5, 0.1])
@pytest.mark.parametrize("log_target", [False, True])
def test_is_its_definition(beta, log_target):
    x, t = example()
    got = ops.js_divergence(x, t if log_target else t.exp(), log_target=log_target, beta=beta, reduction="none")
    torch.testing.assert_close(got, defined(x, t, beta).float(), atol=1e-7, rtol=1e-4)


def test_reductions():
    x, t = example()
    total = defined(x, t, 0.5).sum()
    for reduction, count in (("sum", 1), ("mean", 28), ("batchmean", 4)):
        got = ops.js_divergence(x, t, log_target=True, reduction=reduction)
        torch.testing.assert_close(got, (total / count).float())


def test_temperature_normalises_both():
    x, t = example()
    wanted = defined((x / 3).log_softmax(-1), (t / 3).log_softmax(-1), 0.5).sum().float()
    got = ops.js_divergence(x + 5, t - 2, log_target=True, temperature=3.0, reduction="sum")
    torch.testing.assert_close(got, wanted)


def test_probabilities_below_the_smallest_float():
    x, t = torch.tensor([[-120.0, 0.0]]), torch.tensor([[-130.0, 0.0]])
    assert ops.js_divergence(x, t, log_target=True).isfinite()


def test_pieces_are_those_of_the_kernel():
    assert op.PIECE == launchers.PIECE


@pytest.mark.parametrize(("change", "words"), [
    ({"beta": 1.0}, ["beta", "1.0", "kl_divergence"]),
    ({"temperature": -1.0}, ["temperature", "-1.0", "positive"]),
    ({"target": torch.zeros(4, 6)}, ["target", "(4, 6)", "(4, 7)"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    with pytest.raises(ops.ArgumentError) as e:
        ops.js_divergence(**(dict(zip(("x", "target"), example(), strict=True)) | change))
    for word in ["js_divergence", *words]:
        assert word in str(e.value)


def test_launchers():
    check("js_divergence")
