"""GEGLU as an operator, of two tensors and of the halves of one."""

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


def check(gate: torch.Tensor, up: torch.Tensor, approximate: str) -> None:
    a.floating("geglu", "gate", gate, DTYPES)
    a.same_dtype("geglu", "up", up, gate, "gate")
    a.same_device("geglu", "up", up, gate, "gate")
    a.shape("geglu", "up", up, gate.shape, "the shape of gate")
    _known("geglu", approximate)


def check_packed(x: torch.Tensor, approximate: str) -> None:
    a.floating("geglu_packed", "x", x, DTYPES)
    if x.dim() == 0 or x.shape[-1] % 2:
        raise a.wrong("geglu_packed", "x", f"of shape {tuple(x.shape)}", "a last dim of even size: gate and up",
                      "torch.cat([gate, up], -1), or geglu(gate, up)")  # fmt: skip
    _known("geglu_packed", approximate)


def _known(name: str, approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise a.wrong(name, "approximate", repr(approximate), "'none' or 'tanh'", "approximate='none'")


def _half(x: torch.Tensor) -> tuple[int, ...]:
    return (*x.shape[:-1], x.shape[-1] // 2)


def _forward(gate: Any, up: Any, approximate: str) -> tuple[torch.Tensor, ...]:
    from . import kernel

    return (kernel.forward(rows("geglu", "gate", gate), rows("geglu", "up", up), approximate).view(gate.shape),)


def _backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    flat = {n: rows("geglu", n, t) for n, t in saved.items()}
    found = {n: torch.empty(flat[n].shape, dtype=t.dtype, device=t.device) for n, t in saved.items() if n in needs}
    kernel.backward(
        rows("geglu", "grad", grads[0]), flat["gate"], flat["up"], found.get("gate"), found.get("up"), **options
    )
    return {n: g.view(saved[n].shape) for n, g in found.items()}


def _forward_packed(x: Any, approximate: str) -> tuple[torch.Tensor, ...]:
    from . import kernel

    gate, up = rows("geglu_packed", "x", x).chunk(2, -1)
    return (kernel.forward(gate, up, approximate).view(_half(x)),)


def _backward_packed(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    x, dy = rows("geglu_packed", "x", saved["x"]), rows("geglu_packed", "grad", grads[0])
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel.backward(dy, *x.chunk(2, -1), *dx.chunk(2, -1), **options)
    return {"x": dx.view(saved["x"].shape)}


def _calls(*names: str) -> tuple[Call, ...]:
    def of(*sizes: int, **more: Any) -> Any:
        return lambda dtype, device: {n: torch.randn(sizes, device=device).to(dtype) for n in names} | more

    return (Call("exact", of(4, 34)), Call("tanh", of(2, 3, 18, approximate="tanh")))


GEGLU = build(Operator(
    name="geglu", summary="gelu(gate) * up", schema="(Tensor gate, Tensor up, str approximate) -> Tensor",
    reference=reference.geglu, results=lambda gate, *_: [Like(tuple(gate.shape), gate.dtype)], forward=_forward,
    backward=_backward, check=check, differentiable=("gate", "up"), saves=("gate", "up"), dtypes=DTYPES,
    folder=Path(__file__).parent, calls=_calls("gate", "up"), function="geglu", pairs=(Pair("task.py", "kernel"),),
    copies=COPIES, memory="the result; gate and up are kept for backward",
))  # fmt: skip
GEGLU_PACKED = build(Operator(
    name="geglu_packed", summary="geglu of the two halves of one tensor", schema="(Tensor x, str approximate) -> Tensor",
    reference=reference.geglu_packed, results=lambda x, *_: [Like(_half(x), x.dtype)], forward=_forward_packed,
    backward=_backward_packed, check=check_packed, differentiable=("x",), saves=("x",), dtypes=DTYPES,
    folder=Path(__file__).parent, calls=_calls("x"), function="geglu_packed", pairs=(Pair("task_packed.py", "packed"),),
    copies=COPIES, memory="the result; x is kept for backward",
))  # fmt: skip
