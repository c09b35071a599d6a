"""SwiGLU as an operator, of two tensors and of the halves of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows
from . import reference

DTYPES = ("float32", "float16", "bfloat16", "float64")
COPIES = "an input or incoming gradient whose leading dims are no evenly spaced rows"


def check(gate: torch.Tensor, up: torch.Tensor) -> None:
    a.floating("swiglu", "gate", gate, DTYPES)
    a.same_dtype("swiglu", "up", up, gate, "gate")
    a.same_device("swiglu", "up", up, gate, "gate")
    a.shape("swiglu", "up", up, gate.shape, "the shape of gate")


def check_packed(x: torch.Tensor) -> None:
    a.floating("swiglu_packed", "x", x, DTYPES)
    if x.dim() == 0 or x.shape[-1] % 2:
        raise a.wrong("swiglu_packed", "x", f"of shape {tuple(x.shape)}", "a last dim of even size: gate and up",
                      "torch.cat([gate, up], -1), or swiglu(gate, up)")  # fmt: skip


def _half(x: torch.Tensor) -> tuple[int, ...]:
    return (*x.shape[:-1], x.shape[-1] // 2)


def _forward(gate: Any, up: Any) -> tuple[torch.Tensor, ...]:
    from . import kernel

    return (kernel.forward(rows("swiglu", "gate", gate), rows("swiglu", "up", up)).view(gate.shape),)


def _backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    flat = {n: rows("swiglu", n, t) for n, t in saved.items()}
    found = {n: torch.empty(flat[n].shape, dtype=t.dtype, device=t.device) for n, t in saved.items() if n in needs}
    kernel.backward(rows("swiglu", "grad", grads[0]), flat["gate"], flat["up"], found.get("gate"), found.get("up"))
    return {n: g.view(saved[n].shape) for n, g in found.items()}


def _forward_packed(x: Any) -> tuple[torch.Tensor, ...]:
    from . import kernel

    gate, up = rows("swiglu_packed", "x", x).chunk(2, -1)
    return (kernel.forward(gate, up).view(_half(x)),)


def _backward_packed(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    x, dy = rows("swiglu_packed", "x", saved["x"]), rows("swiglu_packed", "grad", grads[0])
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel.backward(dy, *x.chunk(2, -1), *dx.chunk(2, -1))
    return {"x": dx.view(saved["x"].shape)}


def _calls(*names: str) -> tuple[Call, ...]:
    def of(*sizes: int, **more: Any) -> Any:
        return lambda dtype, device: {n: torch.randn(sizes, device=device).to(dtype) for n in names} | more

    return (Call("rows", of(4, 34)), Call("dims", of(2, 3, 18)))


SWIGLU = build(Operator(
    name="swiglu", summary="silu(gate) * up", schema="(Tensor gate, Tensor up) -> Tensor",
    reference=reference.swiglu, results=lambda gate, *_: [Like(tuple(gate.shape), gate.dtype)], forward=_forward,
    backward=_backward, check=check, differentiable=("gate", "up"), saves=("gate", "up"), dtypes=DTYPES,
    folder=Path(__file__).parent, calls=_calls("gate", "up"), function="swiglu", pairs=(Pair("task.py", "kernel"),),
    copies=COPIES, memory="the result; gate and up are kept for backward",
))  # fmt: skip
SWIGLU_PACKED = build(Operator(
    name="swiglu_packed", summary="swiglu of the two halves of one tensor", schema="(Tensor x) -> Tensor",
    reference=reference.swiglu_packed, results=lambda x, *_: [Like(_half(x), x.dtype)], forward=_forward_packed,
    backward=_backward_packed, check=check_packed, differentiable=("x",), saves=("x",), dtypes=DTYPES,
    folder=Path(__file__).parent, calls=_calls("x"), function="swiglu_packed", pairs=(Pair("task_packed.py", "packed"),),
    copies=COPIES, memory="the result; x is kept for backward",
))  # fmt: skip
