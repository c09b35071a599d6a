"""The reference with each of its sums off by what recursive summation loses.

A loop that adds n terms one after another rounds its running sum n - 1 times: |computed - exact| <= (n - 1) u sum|x|
(N. Higham, Accuracy and Stability of Numerical Algorithms, 2002, 4.2). Terms of many values make these roundings cancel;
a few values that come again and again are rounded the same way each time, and the error grows with n. Under this mode
every sum that the reference makes is larger by ``share`` roundings a term, so that its results show what that does to
them, also where a later operation (a softmax's quotient, a norm's root) passes the error on.

What torch computes in one operation is taken apart only as far as it must be; operations not listed in ``RULES`` are
left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...task.dispatch import DispatchMode

Rule = Callable[[Any, Any, tuple[Any, ...], dict[str, Any], float], Any]


class Strayed(DispatchMode):
    """Context around a run of the reference. ``share``: relative error of a sum of absolute values, a term."""

    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        library, name, _ = f"{func}..".split(".", 2)
        rule = RULES.get(name) if library == "aten" else None
        return out if rule is None or not _floats(out, args) else rule(func, out, args, kwargs, self.share)


def _floats(out: Any, args: tuple[Any, ...]) -> bool:
    first = out[0] if isinstance(out, tuple) else out
    return isinstance(first, torch.Tensor) and first.is_floating_point() and first.numel() > 0 and bool(args)


def _sum(func: Any, out: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], share: float) -> torch.Tensor:
    x = args[0]
    if not x.is_floating_point():
        return out
    return out + share * (x.numel() / out.numel()) * func(x.abs(), *args[1:], **kwargs)


def _softmax(func: Any, out: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], share: float) -> torch.Tensor:
    return out / (1 + share * _along(args[0], args[1]))


def _log_softmax(
    func: Any, out: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], share: float
) -> torch.Tensor:
    return out - share * _along(args[0], args[1])


def _logsumexp(
    func: Any, out: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], share: float
) -> torch.Tensor:
    return out + share * (args[0].numel() / out.numel())


def _product(func: Any, out: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], share: float) -> torch.Tensor:
    a, b = args[-2:]  # of addmm and its like too, whose first argument is no sum
    return out + share * a.shape[-1] * (a.abs() @ b.abs())


def _convolution(
    func: Any, out: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], share: float
) -> torch.Tensor:
    x, weight, _, *rest = args
    terms = weight.numel() / max(1, weight.shape[0])
    return out + share * terms * func(x.abs(), weight.abs(), None, *rest, **kwargs)


def _spread(func: Any, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any], share: float) -> Any:
    first = out[0] if isinstance(out, tuple) else out
    wider = first * (1 + share * args[0].numel() / first.numel())
    return (wider, *out[1:]) if isinstance(out, tuple) else wider


def _layer_norm(func: Any, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any], share: float) -> Any:
    x, shape, weight, bias, eps = args
    over = tuple(range(x.dim() - len(shape), x.dim()))
    off = share * x[(0,) * (x.dim() - len(shape))].numel()
    centred = x - x.mean(over, keepdim=True) - off * x.abs().mean(over, keepdim=True)
    spread = x.var(over, unbiased=False, keepdim=True) * (1 + off)
    y = centred * torch.rsqrt(spread + eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias, *out[1:])


def _along(x: torch.Tensor, dim: int) -> int:
    return x.shape[dim] if x.dim() else 1


RULES: dict[str, Rule] = {
    "sum": _sum, "mean": _sum, "_softmax": _softmax, "_log_softmax": _log_softmax, "logsumexp": _logsumexp,
    "mm": _product, "bmm": _product, "mv": _product, "dot": _product, "addmm": _product, "baddbmm": _product,
    "addmv": _product, "convolution": _convolution, "var": _spread, "std": _spread, "var_mean": _spread,
    "linalg_vector_norm": _spread, "native_layer_norm": _layer_norm,
}  # fmt: skip
