"""Jensen-Shannon divergence as an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows, rows_of
from .reference import js_divergence

NAME = "js_divergence"
SCHEMA = (
    "(Tensor x, Tensor target, bool log_target, float beta, float? temperature, str reduction) -> "
    "(Tensor, Tensor, Tensor)"
)
DTYPES = ("float32", "float16", "bfloat16", "float64")
REDUCTIONS = ("batchmean", "mean", "sum", "none")
PIECE = 16384  # kernel.PIECE, which importing would bring Triton along


def check(x: torch.Tensor, target: torch.Tensor, log_target: bool, beta: float, temperature: float | None,
          reduction: str) -> None:  # fmt: skip
    a.floating(NAME, "x", x, DTYPES)
    a.same_dtype(NAME, "target", target, x, "x")
    a.same_device(NAME, "target", target, x, "x")
    if x.dim() < 1:
        raise a.wrong(NAME, "x", "a scalar", "(..., classes)", "x[None]")
    a.shape(NAME, "target", target, x.shape, "as x")
    if not 0 < beta < 1:
        raise a.wrong(NAME, "beta", beta, "between 0 and 1, both excluded", "kl_divergence, where beta is 0 or 1")
    if temperature is not None and not 0 < temperature < float("inf"):
        raise a.wrong(NAME, "temperature", temperature, "positive and finite, or None", "None: x is taken as it is")
    if reduction not in REDUCTIONS:
        raise a.wrong(NAME, "reduction", repr(reduction), " or ".join(map(repr, REDUCTIONS)), "choose one of them")


def results(*given: Any) -> list[Like]:
    x, reduction, tempered = given[0], given[-1], given[-2] is not None
    rows, classes = rows_of(x.shape)
    each, wide = reduction == "none", torch.promote_types(x.dtype, torch.float32)
    pulls = rows * -(-classes // PIECE) if tempered and not each else 0
    return [Like(tuple(x.shape) if each else (), wide), Like((rows if tempered else 0, 4), torch.float32),
            Like((pulls, 2), torch.float32)]  # fmt: skip


def outside(x: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, x is float64" if x.dtype == torch.float64 else None


def forward(x: torch.Tensor, target: torch.Tensor, *options: Any) -> tuple[torch.Tensor, ...]:
    from . import kernel

    whole: tuple[Any, ...] = (*options, kernel.divisor_of(x.shape, options[-1]))
    loss, *kept = kernel.forward(rows(NAME, "x", x), rows(NAME, "target", target), *whole)
    return (loss.view(x.shape) if options[-1] == "none" else loss, *kept)


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    shape, up = saved["x"].shape, grads[0]
    up = rows(NAME, "gradient", up) if options["reduction"] == "none" else up
    given = {n: rows(NAME, n, saved[n]) for n in ("x", "target")}
    wanted = ("x" in needs, "target" in needs)
    divisor = kernel.divisor_of(shape, options["reduction"])
    got = kernel.backward(up, **(saved | given), **options, divisor=divisor, wanted=wanted)
    return {n: g.view(shape) for n, g in zip(("x", "target"), got, strict=True) if g is not None}


def _calls() -> tuple[Call, ...]:
    def of(*shape: int, log_target: bool = False, **more: Any) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            x, target = (torch.randn(shape, device=device).log_softmax(-1) for _ in range(2))
            target = target if log_target else target.exp()
            return {"x": x.to(dtype), "target": target.to(dtype), "log_target": log_target, **more}

        return make

    return (
        Call("probabilities", of(5, 33)),
        Call("log_target", of(2, 3, 17, log_target=True, reduction="mean", beta=0.2)),
        Call("tempered", of(4, 40, log_target=True, temperature=2.0)),
        Call("each", of(3, 9, temperature=0.5, reduction="none")),
        Call("each_plain", of(2, 2, 9, reduction="none")),
    )


JS_DIVERGENCE = build(Operator(
    name=NAME, summary="Jensen-Shannon divergence of log-probabilities, or with a temperature of two softmaxes",
    schema=SCHEMA, reference=js_divergence, results=results, forward=forward, backward=backward, check=check,
    differentiable=("x", "target"), saves=("x", "target", "stats", "pulls"), result_names=("loss", "stats", "pulls"),
    function=NAME,
    folder=Path(__file__).parent, dtypes=DTYPES, outside=outside, calls=_calls(),
    pairs=(Pair("task.py", "kernel"), Pair("task_probabilities.py", "kernel")),
    copies="an input or incoming gradient whose leading dims are no evenly spaced rows",
    memory="24 bytes a row and 16 bytes a piece of 16384 classes with a temperature; x and target are kept for backward",
))  # fmt: skip
