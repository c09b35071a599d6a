"""RMS norm as an operator, alone and of a sum with a residual."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows, rows_of
from . import reference

DTYPES = ("float32", "float16", "bfloat16", "float64")
COPIES = "an input or incoming gradient whose leading dims are no evenly spaced rows"


def check(name: str, x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor | None) -> None:
    a.floating(name, "x", x, DTYPES)
    if x.dim() == 0:
        raise a.wrong(name, "x", "of shape ()", "at least one dim", "x[None]")
    for argument, t in (("residual", residual), ("weight", weight)):
        a.same_dtype(name, argument, t, x, "x")
        a.same_device(name, argument, t, x, "x")
    if residual is not None:
        a.shape(name, "residual", residual, x.shape, "the shape of x")
    if weight is not None:
        a.shape(name, "weight", weight, x.shape[-1:], "the last dim of x")


def _scale(x: torch.Tensor) -> Like:
    return Like((rows_of(x.shape)[0],), torch.promote_types(x.dtype, torch.float32))


def _forward(x: Any, weight: Any, eps: float, offset: float) -> tuple[torch.Tensor, ...]:
    from . import kernel

    y, _, scale = kernel.forward(rows("rms_norm", "x", x), None, weight, float(eps), float(offset))
    return y.view(x.shape), scale


def _forward_residual(x: Any, residual: Any, weight: Any, eps: float, offset: float) -> tuple[torch.Tensor, ...]:
    from . import kernel

    flat, other = rows("rms_norm_residual", "x", x), rows("rms_norm_residual", "residual", residual)
    y, total, scale = kernel.forward(flat, other, weight, float(eps), float(offset))
    return y.view(x.shape), total.view(x.shape), scale


def _backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    x, dy = saved["x"], rows("rms_norm", "grad", grads[0])
    dx, dw = kernel.backward(dy, None, rows("rms_norm", "x", x), saved["scale"], saved["weight"],
                             float(options["offset"]), "x" in needs, "weight" in needs)  # fmt: skip
    found = {"x": None if dx is None else dx.view(x.shape), "weight": dw}
    return {n: found[n] for n in needs}


def _backward_residual(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    total = saved["total"]
    of_sum = [n for n in ("x", "residual") if n in needs]
    dx, dw = _gradients(grads, saved, float(options["offset"]), bool(of_sum), "weight" in needs)
    found = {"weight": dw} if "weight" in needs else {}
    if not of_sum:
        return found
    dx = dx.view(total.shape)
    apart = len(of_sum) == 2 and not _TO_AUTOGRAD.get()
    return found | dict(zip(of_sum, (dx, dx.clone() if apart else dx), strict=False))


_TO_AUTOGRAD: ContextVar[bool] = ContextVar("tilewright_rms_norm_to_autograd", default=False)
"""Whether the gradients go straight to autograd, and not out of a registered operator."""


def _one_tensor_for_both(function: Any) -> None:
    """Input and residual have the same gradient. Results of a registered operator must not share memory, so one is a copy
    there. On the short way to autograd both are one tensor, as those of a sum are in PyTorch: autograd, which counts the
    references, copies what it keeps or adds to in place."""
    plain = function.backward

    def backward(ctx: Any, *grads: Any) -> Any:
        token = _TO_AUTOGRAD.set(not torch.is_grad_enabled())  # with create_graph it is the registered one
        try:
            return plain(ctx, *grads)
        finally:
            _TO_AUTOGRAD.reset(token)

    function.backward = staticmethod(backward)


def _gradients(grads: Any, saved: Any, offset: float, of_sum: bool, of_weight: bool) -> Any:
    from . import kernel

    total, weight = saved["total"], saved["weight"]
    dy, dtotal = (None if g is None else rows("rms_norm_residual", "grad", g) for g in grads)
    if dy is None and dtotal is not None:
        return dtotal.clone(memory_format=torch.contiguous_format), weight.new_zeros(
            weight.shape
        ) if of_weight else None
    flat = total.view(rows_of(total.shape))
    return kernel.backward(dy, dtotal, flat, saved["scale"], weight, offset, of_sum, of_weight)


def _calls(residual: bool) -> tuple[Call, ...]:
    def of(*sizes: int, weight: bool = True, **more: Any) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            new = lambda *s: torch.randn(s, device=device).to(dtype)  # noqa: E731
            given = {"x": new(*sizes)} | ({"residual": new(*sizes)} if residual else {})
            return given | ({"weight": new(sizes[-1])} if weight else {}) | more

        return make

    return (Call("rows", of(4, 33)), Call("offset", of(2, 3, 17, eps=1e-2, offset=1.0)),
            Call("unweighted", of(5, 9, weight=False)))  # fmt: skip


RMS_NORM = build(Operator(
    name="rms_norm", summary="x / sqrt(mean(x**2) + eps) * (weight + offset) over the last dim",
    schema="(Tensor x, Tensor? weight, float eps, float offset) -> (Tensor, Tensor)", reference=reference.rms_norm,
    results=lambda x, *_: [Like(tuple(x.shape), x.dtype), _scale(x)], result_names=("y", "scale"), forward=_forward,
    backward=_backward, check=lambda x, weight, *_: check("rms_norm", x, None, weight), differentiable=("x", "weight"),
    saves=("x", "scale", "weight"), dtypes=DTYPES, folder=Path(__file__).parent, calls=_calls(False),
    function="rms_norm", pairs=(Pair("task.py", "kernel"), Pair("task_plain.py", "plain")), copies=COPIES,
    memory="the result and one number a row; x is kept for backward",
))  # fmt: skip
RMS_NORM_RESIDUAL = build(Operator(
    name="rms_norm_residual", summary="rms_norm(x + residual), and the sum",
    schema="(Tensor x, Tensor residual, Tensor? weight, float eps, float offset) -> (Tensor, Tensor, Tensor)",
    reference=reference.rms_norm_residual, public=2, result_names=("y", "total", "scale"),
    results=lambda x, *_: [Like(tuple(x.shape), x.dtype), Like(tuple(x.shape), x.dtype), _scale(x)],
    forward=_forward_residual, backward=_backward_residual,
    check=lambda x, residual, weight, *_: check("rms_norm_residual", x, residual, weight),
    differentiable=("x", "residual", "weight"), saves=("total", "scale", "weight"),
    gradient_like={"x": "total", "residual": "total"}, dtypes=DTYPES, folder=Path(__file__).parent, calls=_calls(True),
    function="rms_norm_residual", pairs=(Pair("task_residual.py", "residual"),), copies=COPIES,
    memory="both results and one number a row; the sum is kept for backward, x and residual are not; they share a gradient",
))  # fmt: skip
_one_tensor_for_both(RMS_NORM_RESIDUAL.function)
