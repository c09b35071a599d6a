"""cross_entropy: the reference against PyTorch, what is refused, and what the launchers hand to the kernels."""

import pytest
import torch
import torch.nn.functional as F
from launched import check

from tilewright import ops

WEIGHT = torch.tensor([0.5, 2.0, 1.0, 3.0, 1.5])


def example():
    torch.manual_seed(3)
    return torch.randn(7, 5), torch.tensor([0, 4, -100, 2, 1, -100, 3])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("smooth", [0.0, 0.3])
def test_reference_is_pytorch(reduction, weight, smooth):
    x, t = example()
    wanted = F.cross_entropy(x, t, weight, label_smoothing=smooth, reduction=reduction)
    got = ops.cross_entropy(x, t, weight, label_smoothing=smooth, reduction=reduction)
    torch.testing.assert_close(got, wanted)


def test_z_loss_and_soft_cap():
    x, t = example()
    capped = 2.0 * torch.tanh(x / 2.0)
    wanted = F.cross_entropy(capped, t) + 0.1 * (torch.logsumexp(capped, -1)[t >= 0] ** 2).mean()
    torch.testing.assert_close(ops.cross_entropy(x, t, z_loss=0.1, softcap=2.0), wanted)


def test_all_ignored():
    x, t = example()[0], torch.full((7,), -100)
    assert ops.cross_entropy(x, t).isnan()
    assert ops.cross_entropy(x, t, reduction="sum") == 0


def test_ignored_rows_may_hold_nan():
    x, t = example()
    x[2] = float("nan")
    assert ops.cross_entropy(x, t).isfinite()


def test_a_class_that_is_none_gives_nan_for_its_row_alone():
    x, t = example()
    t[0] = 5
    assert ops.cross_entropy(x, t, reduction="none").isnan().tolist() == [True] + [False] * 6


def test_half_precision_gives_float32():
    x, t = example()
    assert ops.cross_entropy(x.half(), t).dtype == torch.float32


@pytest.mark.parametrize(("change", "words"), [
    ({"target": torch.zeros(7, dtype=torch.int32)}, ["target", "int32", "int64", "target.long()"]),
    ({"target": torch.zeros(6, dtype=torch.int64)}, ["target", "(6,)", "(7,)"]),
    ({"weight": torch.ones(4)}, ["weight", "(4,)", "(5,)", "one for each class"]),
    ({"label_smoothing": 1.5}, ["label_smoothing", "1.5", "between 0 and 1"]),
    ({"softcap": -1.0}, ["softcap", "-1.0", "not negative"]),
    ({"reduction": "avg"}, ["reduction", "'avg'", "'mean'"]),
    ({"logits": torch.zeros(7, 5, dtype=torch.int64)}, ["logits", "int64", "float32"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    x, t = example()
    with pytest.raises(ops.ArgumentError) as e:
        ops.cross_entropy(**({"logits": x, "target": t} | change))
    for word in ["cross_entropy", *words]:
        assert word in str(e.value)


def test_launchers():
    check("cross_entropy")
