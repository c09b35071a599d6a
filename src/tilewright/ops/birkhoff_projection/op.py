"""Projection onto the doubly stochastic matrices as two operators: Sinkhorn's iteration, and its limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build, copies
from .._builder import arguments as a
from . import reference

FOLDER = Path(__file__).parent
DTYPES = ("float32", "float16", "bfloat16", "float64")


def check(name: str, x: torch.Tensor, iterations: int = 1) -> None:
    a.floating(name, "x", x, DTYPES)
    if x.dim() < 2 or x.shape[-1] != x.shape[-2] or not 2 <= x.shape[-1] <= 8:
        raise a.wrong(name, "x", f"of shape {tuple(x.shape)}", "(..., n, n) with n from 2 to 8",
                      "pad or split it, or use tilewright.ops.softmax along rows and columns by turns")  # fmt: skip
    if iterations < 1:
        raise a.wrong(name, "iterations", iterations, "1 or more, or None for the limit", "iterations=20")


def _outside(x: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, x is float64" if x.dtype == torch.float64 else None


def _matrices(name: str, argument: str, t: torch.Tensor) -> torch.Tensor:
    """``t`` as (count, n, n): a view where strides allow one, else a copy, counted."""
    try:
        return t.view(-1 if t.numel() else 0, *t.shape[-2:])
    except RuntimeError:
        return copies.contiguous(name, argument, t).view(-1, *t.shape[-2:])


def _sinkhorn(x: Any, iterations: int) -> tuple[torch.Tensor, ...]:
    from . import kernel

    return (kernel.sinkhorn(_matrices("sinkhorn", "x", x), iterations).view(x.shape),)


def _sinkhorn_backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    x, dy = _matrices("sinkhorn", "x", saved["x"]), _matrices("sinkhorn", "grad", grads[0])
    return {"x": kernel.sinkhorn_backward(dy, x, options["iterations"]).view(saved["x"].shape)}


def _converged(x: Any) -> tuple[torch.Tensor, ...]:
    from . import newton

    return tuple(t.view(x.shape) for t in newton.converged(_matrices("birkhoff", "x", x)))


def _converged_backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import newton

    dy, p = grads[0], saved["p"]
    g = newton.converged_backward(_matrices("birkhoff", "grad", dy), p.view(-1, *p.shape[-2:]), saved["y"].dtype)
    return {"x": g.view(p.shape)}


def _calls(**more: Any) -> tuple[Call, ...]:
    def of(*sizes: int, scale: float = 1.0, **own: Any) -> Any:
        return lambda dtype, device: {"x": (torch.randn(sizes, device=device) * scale).to(dtype), **more, **own}

    some = {} if more else {"iterations": 3}
    return (Call("four", of(5, 4, 4)), Call("dims", of(2, 3, 3, 3, **some)), Call("eight", of(3, 8, 8, scale=30.0, **some)),
            Call("none", of(0, 4, 4)), Call("one", of(2, 2)))  # fmt: skip


SINKHORN = build(Operator(
    name="sinkhorn", summary="exp(x) with rows, then columns divided by their sums, a given number of times",
    schema="(Tensor x, int iterations) -> Tensor", reference=reference.sinkhorn,
    results=lambda x, *_: [Like(tuple(x.shape), x.dtype)], forward=_sinkhorn, backward=_sinkhorn_backward,
    check=lambda *given: check("sinkhorn", *given), outside=_outside, differentiable=("x",), saves=("x",), dtypes=DTYPES,
    folder=FOLDER, calls=_calls(), function="birkhoff_projection", pairs=(Pair("task.py", "kernel"),),
    copies="an input or incoming gradient whose leading dims are not evenly spaced",
    memory="the result; x is kept; backward has at most 32 MiB of scratch, whatever the count",
    notes=("columns sum to one, rows as nearly as the iterations bring them",),
))  # fmt: skip

BIRKHOFF = build(Operator(
    name="birkhoff", summary="the doubly stochastic diag(a) exp(x) diag(b): Newton on the dual, gradient of the solution",
    schema="(Tensor x) -> (Tensor, Tensor)", reference=reference.converged,
    results=lambda x: [Like(tuple(x.shape), x.dtype), Like(tuple(x.shape), torch.float32)], forward=_converged,
    backward=_converged_backward, check=lambda x: check("birkhoff", x), outside=_outside, differentiable=("x",),
    saves=("y", "p"), gradient_like={"x": "y"}, result_names=("y", "p"), dtypes=DTYPES, folder=FOLDER,
    calls=_calls(iterations=None), function="birkhoff_projection",
    pairs=(Pair("task_converged.py", "converged_kernel", "newton.py"),),
    copies="an input or incoming gradient whose leading dims are not evenly spaced",
    memory="the result, and it in float32 for backward",
    notes=("a matrix with an entry that is not finite gives NaN",
           "a matrix gets 14 Newton steps and 3 for each doubling of its span beyond 8: columns sum to one; rows do up to "
           "rounding but for inputs that are nearly degenerate on a large scale (normal, of deviation 100, 8 by 8: 1e-5 at "
           "worst in float64, 1e-2 in float32, of 5000)"),
))  # fmt: skip
