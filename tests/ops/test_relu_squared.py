"""relu_squared: the reference against PyTorch, what is refused, and what the launchers hand to the kernels."""

import doubles
import pytest
import torch
from launched import check

from tilewright import ops


@pytest.mark.parametrize("shape", [(4, 7), (2, 3, 5), (6,), (), (0, 4)])
def test_reference_is_pytorch(shape):
    x = torch.randn(shape)
    torch.testing.assert_close(ops.relu_squared(x), torch.relu(x) ** 2)


def test_nan_stays():
    assert ops.relu_squared(torch.tensor([float("nan"), -1.0, 2.0])).isnan().tolist() == [True, False, False]


def test_what_is_refused():
    with pytest.raises(ops.ArgumentError, match="relu_squared: x is a tensor of int64"):
        ops.relu_squared(torch.ones(3, dtype=torch.int64))


def test_launchers():
    check("relu_squared")


def test_gradients_in_float64():
    doubles.check("relu_squared", "kernel", [[3, 5]])
