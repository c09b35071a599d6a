"""Group norm as an operator."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.copies import MADE
from . import reference

NAME = "group_norm"
DTYPES = ("float32", "float16", "bfloat16", "float64")


def check(x: torch.Tensor, groups: int, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> None:
    a.floating(NAME, "x", x, DTYPES)
    if x.dim() < 2:
        raise a.wrong(NAME, "x", f"of shape {tuple(x.shape)}", "(N, C, ...)", "x[None] if the samples' dim is missing")
    if groups < 1 or x.shape[1] % groups:
        raise a.wrong(NAME, "groups", groups, f"a divisor of the {x.shape[1]} channels of x, {tuple(x.shape)}",
                      "1 for all channels in one group, x.shape[1] for each by itself")  # fmt: skip
    for argument, t in (("weight", weight), ("bias", bias)):
        a.same_dtype(NAME, argument, t, x, "x")
        a.same_device(NAME, argument, t, x, "x")
        if t is not None:
            a.shape(NAME, argument, t, x.shape[1:2], "one for each channel of x")


def places(argument: str, t: torch.Tensor) -> torch.Tensor:
    """``t`` as (N, C, places): a view where strides allow one, else a copy, counted."""
    shape = (*t.shape[:2], math.prod(t.shape[2:]))
    try:
        return t.view(shape)
    except RuntimeError:
        MADE[NAME, argument] += 1
        return t.reshape(shape)


def _results(x: torch.Tensor, groups: int, *_: Any) -> list[Like]:
    wide = torch.promote_types(x.dtype, torch.float32)
    return [Like(tuple(x.shape), x.dtype), Like((x.shape[0] * groups, 2), wide)]


def _forward(x: Any, groups: int, weight: Any, bias: Any, eps: float) -> tuple[torch.Tensor, ...]:
    from . import kernel

    y, stats = kernel.forward(places("x", x), groups, weight, bias, float(eps))
    return y.view(x.shape), stats


def _backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    x, dy = saved["x"], places("grad", grads[0])
    got = kernel.backward(dy, places("x", x), saved["stats"], options["groups"], saved["weight"], saved["bias"],
                          *[n in needs for n in ("x", "weight", "bias")])  # fmt: skip
    found = dict(zip(("x", "weight", "bias"), got, strict=True))
    return {n: found[n].view(x.shape) if n == "x" else found[n] for n in needs}


def _calls() -> tuple[Call, ...]:
    def of(*sizes: int, groups: int, given: tuple[str, ...] = ("weight", "bias"), **more: Any) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            new = lambda *s: torch.randn(s, device=device).to(dtype)  # noqa: E731
            return {"x": new(*sizes), "groups": groups} | {n: new(sizes[1]) for n in given} | more

        return make

    return (Call("image", of(2, 6, 3, 5, groups=3)), Call("unbiased", of(3, 4, 17, groups=2, given=("weight",), eps=1e-2)),
            Call("plain", of(2, 6, 7, groups=1, given=())), Call("alone", of(2, 5, 4, groups=5, given=("bias",))),
            Call("no_places", of(6, 9, groups=3)), Call("pieces", of(1, 2, 9000, groups=1)))  # fmt: skip


GROUP_NORM = build(Operator(
    name=NAME, summary="(x - mean) / sqrt(variance + eps) * weight + bias over each group of channels",
    schema="(Tensor x, int groups, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor)",
    reference=reference.group_norm, results=_results, result_names=("y", "stats"), forward=_forward, backward=_backward,
    check=check, differentiable=("x", "weight", "bias"), saves=("x", "stats", "weight", "bias"), dtypes=DTYPES,
    folder=Path(__file__).parent, calls=_calls(), function=NAME,
    pairs=(Pair("task.py", "kernel"), Pair("task_plain.py", "plain"), Pair("task_backward.py", "gradients")),
    copies="an input or incoming gradient whose dims behind the channels no stride joins; counted",
    memory="the result and two numbers a group; x is kept for backward, which adds two numbers for each 4096 places",
))  # fmt: skip
