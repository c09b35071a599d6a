"""The reference with each of its sums off by what recursive summation loses: each rule against what it stands for."""

from __future__ import annotations

import pytest
import torch

from tilewright.prove.child.strayed import RULES, Strayed

SHARE = 1e-6
X = torch.linspace(-2, 3, 24, dtype=torch.float64).reshape(4, 6)
W = torch.linspace(1, 2, 6, dtype=torch.float64)


def off(t: torch.Tensor, n: int) -> torch.Tensor:
    return t * (1 + SHARE * n)


SUMS = {
    "sum": (lambda: X.sum(-1), lambda: X.sum(-1) + SHARE * 6 * X.abs().sum(-1)),
    "mean": (lambda: X.mean(), lambda: X.mean() + SHARE * 24 * X.abs().mean()),
    "_softmax": (lambda: X.softmax(-1), lambda: X.exp() / off(X.exp().sum(-1, keepdim=True), 6)),
    "_log_softmax": (lambda: X.log_softmax(0), lambda: X - off(X.exp().sum(0), 4).log()),
    "logsumexp": (lambda: X.logsumexp(-1), lambda: off(X.exp().sum(-1), 6).log()),
    "mm": (lambda: X @ X.t(), lambda: X @ X.t() + SHARE * 6 * X.abs() @ X.abs().t()),
    "bmm": (lambda: X[None] @ X.t()[None], lambda: (X @ X.t() + SHARE * 6 * X.abs() @ X.abs().t())[None]),
    "mv": (lambda: X @ W, lambda: X @ W + SHARE * 6 * X.abs() @ W),
    "dot": (lambda: W @ W, lambda: off(W @ W, 6)),
    "addmm": (lambda: torch.addmm(W[:4], X, X.t()), lambda: W[:4] + X @ X.t() + SHARE * 6 * X.abs() @ X.abs().t()),
    "baddbmm": (lambda: torch.baddbmm(X[:, :1, None], X[:, None], X[:, :, None]),
                lambda: X[:, :1, None] + off((X * X).sum(-1), 6)[:, None, None]),
    "addmv": (lambda: torch.addmv(X[:, 0], X, W), lambda: X[:, 0] + X @ W + SHARE * 6 * X.abs() @ W),
    "convolution": (lambda: torch.conv1d(X[None], X[None, :, :2]).flatten(),
                    lambda: torch.stack([(X[:, i : i + 2] * X[:, :2]).sum()
                                         + SHARE * 8 * (X[:, i : i + 2] * X[:, :2]).abs().sum() for i in range(5)])),
    "var": (lambda: X.var(-1), lambda: off(X.var(-1), 6)),
    "std": (lambda: X.std(-1), lambda: off(X.std(-1), 6)),
    "var_mean": (lambda: torch.var_mean(X, -1)[0], lambda: off(X.var(-1), 6)),
    "linalg_vector_norm": (lambda: torch.linalg.vector_norm(X, dim=-1), lambda: off(X.norm(dim=-1), 6)),
    "native_layer_norm": (
        lambda: torch.layer_norm(X, (6,), W, W),
        lambda: (X - X.mean(-1, True) - SHARE * 6 * X.abs().mean(-1, True))
        / (off(X.var(-1, unbiased=False, keepdim=True), 6) + 1e-5).sqrt() * W + W),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    run, expected = SUMS[name]
    plain = run()
    with Strayed(SHARE):
        got = run()
    torch.testing.assert_close(got, expected(), rtol=1e-10, atol=1e-14)
    assert float((got - plain).abs().max()) > SHARE / 10, "it is off at all"


def test_what_is_no_sum_and_no_float_stays():
    with Strayed(SHARE):
        assert torch.equal(torch.arange(5).sum(), torch.tensor(10))
        assert torch.equal(X * 2, X + X)
        assert torch.empty(0, 3, dtype=torch.float64).sum(-1).shape == (0,)
        assert (X > 0).sum().item() == int((X > 0).int().sum())


def test_gradients_see_it_too():
    x = X.clone().requires_grad_()
    with Strayed(SHARE):
        (g,) = torch.autograd.grad(x.softmax(-1), x, X)
    y = (X.exp() / off(X.exp().sum(-1, keepdim=True), 6)).requires_grad_()
    expected = y * X - y * (y * X).sum(-1, keepdim=True)
    torch.testing.assert_close(g, expected, rtol=1e-4, atol=1e-6)
    assert not torch.equal(g, torch.autograd.grad(x.softmax(-1), x, X)[0])
