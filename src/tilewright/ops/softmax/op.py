"""Softmax and log-softmax as operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build, copies, tuned
from .._builder import arguments as a
from . import reference

SCHEMA = "(Tensor x, Tensor? mask, int axis, float scale, bool causal) -> Tensor"
FOLDER = Path(__file__).parent
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


def _mergeable(name: str, axis: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The tensors as the kernel takes them. More than four outer dims that no strides merge are copied first."""
    from . import kernel

    try:
        kernel.folded(axis, *tensors)
    except ValueError:
        return tuple(copies.contiguous(name, f"argument {i}", t) for i, t in enumerate(tensors))
    return tensors


def _forward(name: str, log: bool) -> Any:
    def forward(x: Any, mask: Any, axis: int, scale: float, causal: bool) -> tuple[torch.Tensor, ...]:
        from . import kernel

        masks = [] if mask is None else [mask.expand(x.shape)]
        x, *masks = _mergeable(name, axis, x, *masks)
        tile = tuned.find(FOLDER, "forward", x.device, N=_length(x, axis), dtype=a.short(x.dtype))
        return (kernel.forward(x, masks[0] if masks else None, axis, scale, causal, log, tile=tile),)

    return forward


def _backward(name: str, log: bool) -> Any:
    def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
        from . import kernel

        y, axis = saved["y"], options["axis"]
        masks = [] if saved["mask"] is None else [saved["mask"].expand(y.shape)]
        y, dy, *masks = _mergeable(name, axis, y, grads[0], *masks)
        tile = tuned.find(FOLDER, "backward", y.device, N=_length(y, axis), dtype=a.short(y.dtype))
        mask = masks[0] if masks else None
        return {"x": kernel.backward(dy, y, mask, **options, log=log, tile=tile)}

    return backward


def _length(x: torch.Tensor, axis: int) -> int:
    return x.shape[axis] if x.dim() else 1


def _calls() -> tuple[Call, ...]:
    def of(*sizes: int, **more: Any) -> Any:
        return lambda dtype, device: {"x": torch.randn(sizes, device=device).to(dtype), **more}

    def masked(dtype: torch.dtype, device: str) -> dict[str, Any]:
        mask = torch.rand(5, 17, device=device) > 0.4
        mask[2] = False
        return {"x": torch.randn(3, 5, 17, device=device).to(dtype), "mask": mask}

    return (Call("rows", of(4, 33)), Call("axis", of(3, 8, 5, axis=1, scale=0.5)), Call("masked", masked),
            Call("causal", of(2, 6, 9, causal=True)), Call("causal_tall", of(9, 4, causal=True)),
            Call("empty", of(3, 0, 4)), Call("no_columns", of(3, 0)), Call("ones", of(1, 1, 1)),
            Call("long", of(2, 40000)))  # fmt: skip


def _build(name: str, function: Any, log: bool, formula: str, pairs: tuple[Pair, ...]) -> Any:
    return build(Operator(
        name=name, summary=f"{formula} along any axis, with a mask, a scale and a causal form", schema=SCHEMA,
        reference=function, results=lambda x, *_: [Like(tuple(x.shape), x.dtype)], forward=_forward(name, log),
        backward=_backward(name, log), check=lambda *given: check(name, *given), differentiable=("x",),
        saves=("y", "mask"), gradient_like={"x": "y"}, dtypes=DTYPES, folder=FOLDER, calls=_calls(), function=name,
        pairs=pairs, memory="the result; for backward the result and the mask are kept, x is not",
        copies="x, mask or dy where more than four outer dims can't be merged; counted",
        notes=("a masked element takes no part, whatever it holds; a row without any other is all 0 (log: -inf)",
               "causal: row i of the last two dims (M, N) takes in columns up to i + N - M",
               "float64 runs the same kernel; the tasks promise float32, float16 and bfloat16"),
    ))  # fmt: skip


SOFTMAX = _build(
    "softmax", reference.softmax, False, "softmax(scale * x)",
    (Pair("task.py", "softmax"), Pair("task_masked.py", "masked_softmax"), Pair("task_causal.py", "causal_softmax"),
     Pair("task_backward.py", "softmax_backward")),
)  # fmt: skip
LOG_SOFTMAX = _build(
    "log_softmax", reference.log_softmax, True, "log_softmax(scale * x)",
    (Pair("task_log.py", "log_softmax"), Pair("task_log_masked.py", "masked_causal_log_softmax"),
     Pair("task_log_backward.py", "log_softmax_backward")),
)  # fmt: skip
