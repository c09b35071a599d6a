"""Softmax and log-softmax as operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from . import reference

SCHEMA = "(Tensor x, Tensor? mask, int axis, float scale, bool causal) -> Tensor"
DTYPES = ("float32", "float16", "bfloat16", "float64")


def check(name: str, x: torch.Tensor, mask: torch.Tensor | None, axis: int, scale: float, causal: bool) -> None:
    a.floating(name, "x", x, DTYPES)
    a.axis(name, "axis", axis, x.dim())
    a.same_device(name, "mask", mask, x, "x")
    if mask is not None and mask.dtype != torch.bool:
        raise a.wrong(name, "mask", f"a tensor of {a.short(mask.dtype)}", "bool (True: takes part)",
                      "mask.bool(), or add a bias to x")  # fmt: skip
    if mask is not None and not _broadcasts(mask, x):
        raise a.wrong(name, "mask", f"of shape {tuple(mask.shape)}", f"one that broadcasts to x, {tuple(x.shape)}",
                      "mask.reshape(...)")  # fmt: skip
    if causal and (x.dim() < 2 or axis not in (-1, x.dim() - 1)):
        raise a.wrong(name, "axis", f"{axis} of {x.dim()} dims", "the last of at least two, since causal is set",
                      "x.transpose(axis, -1), or pass a mask")  # fmt: skip


def _broadcasts(mask: torch.Tensor, x: torch.Tensor) -> bool:
    pairs = zip(reversed(mask.shape), reversed(x.shape), strict=False)
    return mask.dim() <= x.dim() and all(m in (1, s) for m, s in pairs)


def _launch(log: bool) -> Any:
    def forward(x: Any, mask: Any, axis: int, scale: float, causal: bool) -> tuple[torch.Tensor, ...]:
        from . import kernel

        return (kernel.forward(x, None if mask is None else mask.expand(x.shape), axis, scale, causal, log),)

    return forward


def _launch_backward(log: bool) -> Any:
    def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
        from . import kernel

        y, mask = saved["y"], saved["mask"]
        return {"x": kernel.backward(grads[0], y, None if mask is None else mask.expand(y.shape), log=log, **options)}

    return backward


def _calls() -> tuple[Call, ...]:
    def of(*sizes: int, **more: Any) -> Any:
        return lambda dtype, device: {"x": torch.randn(sizes, device=device).to(dtype), **more}

    def masked(dtype: torch.dtype, device: str) -> dict[str, Any]:
        return {"x": torch.randn(3, 5, 17, device=device).to(dtype), "mask": torch.rand(5, 17, device=device) > 0.4}

    return (Call("rows", of(4, 33)), Call("axis", of(3, 8, 5, axis=1, scale=0.5)), Call("masked", masked),
            Call("causal", of(2, 6, 9, causal=True)))  # fmt: skip


def _build(name: str, function: Any, log: bool, formula: str) -> Any:
    return build(Operator(
        name=name, summary=f"{formula} along any axis, with a mask, a scale and a causal form", schema=SCHEMA,
        reference=function, results=lambda x, *_: [Like(tuple(x.shape), x.dtype)], forward=_launch(log),
        backward=_launch_backward(log), check=lambda *given: check(name, *given), differentiable=("x",),
        saves=("y", "mask"), gradient_like={"x": "y"}, dtypes=DTYPES, folder=Path(__file__).parent, calls=_calls(),
        function=name, pairs=(Pair("task.py" if not log else "task_log.py", name),),
        memory="the result; for backward the result and the mask are kept, x is not",
    ))  # fmt: skip


SOFTMAX = _build("softmax", reference.softmax, False, "softmax(scale * x)")
LOG_SOFTMAX = _build("log_softmax", reference.log_softmax, True, "log_softmax(scale * x)")
