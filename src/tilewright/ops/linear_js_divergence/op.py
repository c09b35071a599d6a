"""Two linear layers and Jensen-Shannon divergence as one operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows
from .reference import linear_js_divergence

NAME = "linear_js_divergence"
SCHEMA = (
    "(Tensor x, Tensor weight, Tensor teacher, Tensor teacher_weight, float beta, float temperature, str reduction, "
    "bool want_x) -> (Tensor, Tensor, Tensor)"
)
DTYPES = ("float32", "float16", "bfloat16", "float64")
REDUCTIONS = ("mean", "sum", "none")


def check(x: Any, weight: Any, teacher: Any, teacher_weight: Any, beta: float, temperature: float,
          reduction: str, want_x: bool) -> None:  # fmt: skip
    a.floating(NAME, "x", x, DTYPES)
    for n, t in (("weight", weight), ("teacher", teacher), ("teacher_weight", teacher_weight)):
        a.same_dtype(NAME, n, t, x, "x")
        a.same_device(NAME, n, t, x, "x")
    _layer("weight", x, weight, "x")
    if teacher.dim() < 1 or teacher.shape[:-1] != x.shape[:-1]:
        raise a.wrong(NAME, "teacher", f"of shape {tuple(teacher.shape)}",
                      f"({', '.join(map(str, (*x.shape[:-1], 'features')))}), rows as x",
                      "the teacher's hidden states of the same tokens")  # fmt: skip
    _layer("teacher_weight", teacher, teacher_weight, "teacher")
    if teacher_weight.shape[0] != weight.shape[0]:
        raise a.wrong(NAME, "teacher_weight", f"for {teacher_weight.shape[0]} classes", f"{weight.shape[0]} as weight",
                      "leave out classes that one side does not have")  # fmt: skip
    if not 0 < beta < 1:
        raise a.wrong(NAME, "beta", beta, "between 0 and 1, both excluded", "linear_kl_divergence, where beta is 1")
    if not 0 < temperature < float("inf"):
        raise a.wrong(NAME, "temperature", temperature, "positive and finite", "1.0 for plain softmax")
    if reduction not in REDUCTIONS:
        raise a.wrong(NAME, "reduction", repr(reduction), " or ".join(map(repr, REDUCTIONS)), "choose one of them")


def _layer(name: str, x: torch.Tensor, weight: torch.Tensor, of: str) -> None:
    if x.dim() < 1 or weight.dim() != 2 or weight.shape[1] != x.shape[-1] or weight.shape[0] < 1:
        raise a.wrong(NAME, name, f"of shape {tuple(weight.shape)}",
                      f"(classes, {x.shape[-1] if x.dim() else 'features'}) for {of} of shape {tuple(x.shape)}",
                      f"{name}.t() if the features come first")  # fmt: skip


def results(x: Any, *rest: Any) -> list[Like]:
    *_, reduction, want_x = rest
    lead, each, wide = tuple(x.shape[:-1]), reduction == "none", torch.promote_types(x.dtype, torch.float32)
    dx = tuple(x.shape) if want_x and not each else (0,)
    return [Like(lead if each else (), wide), Like((x.shape[:-1].numel(), 5), torch.float32), Like(dx, x.dtype)]


def outside(x: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, x is float64" if x.dtype == torch.float64 else None


def forward(x: Any, weight: Any, teacher: Any, *rest: Any) -> tuple[torch.Tensor, ...]:
    from ..js_divergence import linear

    with torch.autocast(x.device.type, enabled=False):  # the products keep the dtype of x
        loss, stats, dx = linear.forward(rows(NAME, "x", x), weight, rows(NAME, "teacher", teacher), *rest)
    each = rest[-2] == "none"
    return loss.view(x.shape[:-1]) if each else loss, stats, dx.view(x.shape) if dx.dim() > 1 else dx


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from ..js_divergence import linear

    x, up, dx = saved["x"], grads[0], saved["dx"]
    flat = {n: rows(NAME, n, saved[n]) for n in ("x", "teacher")}
    given = [(saved | flat)[n] for n in ("x", "weight", "teacher", "teacher_weight", "stats")]
    kept = rows(NAME, "dx", dx) if options["want_x"] and options["reduction"] != "none" else dx
    plain = [options[n] for n in ("beta", "temperature", "reduction")]
    wanted = ("x" in needs, "weight" in needs)
    with torch.autocast(x.device.type, enabled=False):
        up = up.reshape(-1) if options["reduction"] == "none" else up
        found = linear.backward(*[up, *given, kept, *plain, wanted])
    return {n: g.view(saved[n].shape) for n, g in zip(("x", "weight"), found, strict=True) if g is not None}


def _calls() -> tuple[Call, ...]:
    def of(*lead: int, count: int = 19, **more: Any) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            new = lambda *s: torch.randn(*s, device=device).to(dtype)  # noqa: E731
            student, teacher = (new(*lead, 6), new(count, 6)), (new(*lead, 4), new(count, 4))
            return dict(zip(("x", "weight", "teacher", "teacher_weight"), (*student, *teacher), strict=True)) | more

        return make

    return (
        Call("mean", of(5)),
        Call("tempered", of(2, 3, temperature=2.0, reduction="sum", beta=0.2)),
        Call("each", of(2, 3, temperature=0.5, reduction="none")),
        Call("blocks", of(140, count=700)),
    )


LINEAR_JS_DIVERGENCE = build(Operator(
    name=NAME, summary="Jensen-Shannon divergence of a student's head from a teacher's, without all logits in memory",
    schema=SCHEMA, reference=linear_js_divergence, results=results, forward=forward, backward=backward, check=check,
    differentiable=("x", "weight"), result_names=("loss", "stats", "dx"), function=NAME,
    saves=("x", "weight", "teacher", "teacher_weight", "stats", "dx"), folder=Path(__file__).parent, dtypes=DTYPES,
    outside=outside, pairs=(Pair("task.py", "kernel", "../js_divergence/linear.py"),), calls=_calls(),
    copies="x or teacher whose leading dims are no evenly spaced rows; incoming gradients that lie unevenly",
    memory="both logits of 128 rows, the gradient in their place; five numbers a row and the gradient of x are kept",
    notes=("sums of a product run in float32 as far as torch.backends.cuda.matmul allows no reduced-precision reduction",),
))  # fmt: skip
