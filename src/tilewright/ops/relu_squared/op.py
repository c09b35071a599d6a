"""Squared ReLU as an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows
from . import reference

DTYPES = ("float32", "float16", "bfloat16", "float64")


def _forward(x: Any) -> tuple[torch.Tensor, ...]:
    from . import kernel

    return (kernel.forward(rows("relu_squared", "x", x)).view(x.shape),)


def _backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    x, dy = rows("relu_squared", "x", saved["x"]), rows("relu_squared", "grad", grads[0])
    return {"x": kernel.backward(dy, x).view(saved["x"].shape)}


def _calls() -> tuple[Call, ...]:
    def of(*sizes: int) -> Any:
        return lambda dtype, device: {"x": torch.randn(sizes, device=device).to(dtype)}

    return Call("rows", of(4, 33)), Call("dims", of(2, 3, 17))


RELU_SQUARED = build(Operator(
    name="relu_squared", summary="relu(x)**2", schema="(Tensor x) -> Tensor", reference=reference.relu_squared,
    results=lambda x: [Like(tuple(x.shape), x.dtype)], forward=_forward, backward=_backward,
    check=lambda x: a.floating("relu_squared", "x", x, DTYPES), differentiable=("x",), saves=("x",), dtypes=DTYPES,
    folder=Path(__file__).parent, calls=_calls(), function="relu_squared", pairs=(Pair("task.py", "kernel"),),
    copies="an input or incoming gradient whose leading dims are no evenly spaced rows",
    memory="the result; x is kept for backward",
))  # fmt: skip
