"""Layer norm as an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows, rows_of
from . import reference

DTYPES = ("float32", "float16", "bfloat16", "float64")


def check(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> None:
    a.floating("layer_norm", "x", x, DTYPES)
    if x.dim() == 0:
        raise a.wrong("layer_norm", "x", "of shape ()", "at least one dim", "x[None]")
    for argument, t in (("weight", weight), ("bias", bias)):
        a.same_dtype("layer_norm", argument, t, x, "x")
        a.same_device("layer_norm", argument, t, x, "x")
        if t is not None:
            a.shape("layer_norm", argument, t, x.shape[-1:], "the last dim of x")


def _results(x: torch.Tensor, *_: Any) -> list[Like]:
    wide = torch.promote_types(x.dtype, torch.float32)
    return [Like(tuple(x.shape), x.dtype), Like((rows_of(x.shape)[0], 2), wide)]


def _forward(x: Any, weight: Any, bias: Any, eps: float) -> tuple[torch.Tensor, ...]:
    from . import kernel

    y, stats = kernel.forward(rows("layer_norm", "x", x), weight, bias, float(eps))
    return y.view(x.shape), stats


def _backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    x, dy = saved["x"], rows("layer_norm", "grad", grads[0])
    got = kernel.backward(dy, rows("layer_norm", "x", x), saved["stats"], saved["weight"], saved["bias"],
                          *[n in needs for n in ("x", "weight", "bias")])  # fmt: skip
    found = dict(zip(("x", "weight", "bias"), got, strict=True))
    return {n: found[n].view(x.shape) if n == "x" else found[n] for n in needs}


def _calls() -> tuple[Call, ...]:
    def of(*sizes: int, given: tuple[str, ...] = ("weight", "bias"), **more: Any) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            new = lambda *s: torch.randn(s, device=device).to(dtype)  # noqa: E731
            return {"x": new(*sizes)} | {n: new(sizes[-1]) for n in given} | more

        return make

    return (Call("rows", of(4, 33)), Call("unbiased", of(2, 3, 17, given=("weight",), eps=1e-2)),
            Call("plain", of(5, 9, given=())))  # fmt: skip


LAYER_NORM = build(Operator(
    name="layer_norm", summary="(x - mean) / sqrt(variance + eps) * weight + bias over the last dim",
    schema="(Tensor x, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor)", reference=reference.layer_norm,
    results=_results, result_names=("y", "stats"), forward=_forward, backward=_backward, check=check,
    differentiable=("x", "weight", "bias"), saves=("x", "stats", "weight", "bias"), dtypes=DTYPES,
    folder=Path(__file__).parent, calls=_calls(), function="layer_norm",
    pairs=(Pair("task.py", "kernel"), Pair("task_unbiased.py", "unbiased"), Pair("task_plain.py", "plain")),
    copies="an input or incoming gradient whose leading dims are no evenly spaced rows",
    memory="the result and two numbers a row; x is kept for backward",
))  # fmt: skip
