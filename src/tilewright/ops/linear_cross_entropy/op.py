"""Linear layer and cross entropy as one operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows
from ..cross_entropy.op import classes, options
from .reference import linear_cross_entropy

NAME = "linear_cross_entropy"
SCHEMA = (
    "(Tensor x, Tensor weight, Tensor target, Tensor? bias, Tensor? class_weight, int ignore_index, "
    "float label_smoothing, float z_loss, float softcap, str reduction, bool want_x) -> (Tensor, Tensor, Tensor)"
)
DTYPES = ("float32", "float16", "bfloat16", "float64")


def check(x: Any, weight: Any, target: Any, bias: Any, class_weight: Any, ignore_index: int, *rest: Any) -> None:
    a.floating(NAME, "x", x, DTYPES)
    for n, t in (("weight", weight), ("bias", bias)):
        a.same_dtype(NAME, n, t, x, "x")
        a.same_device(NAME, n, t, x, "x")
    if x.dim() < 1 or weight.dim() != 2 or weight.shape[1] != x.shape[-1] or weight.shape[0] < 1:
        raise a.wrong(NAME, "weight", f"of shape {tuple(weight.shape)}",
                      f"(classes, {x.shape[-1] if x.dim() else 'features'}) for x of shape {tuple(x.shape)}",
                      "weight.t() if the features come first")  # fmt: skip
    a.shape(NAME, "target", target, x.shape[:-1], "x without the last dim, the features")
    if bias is not None:
        a.shape(NAME, "bias", bias, weight.shape[:1], "one for each class")
    classes(NAME, x, target, class_weight, weight.shape[0], name="class_weight")
    options(NAME, *rest[:-1])


def results(x: Any, weight: Any, target: Any, *rest: Any) -> list[Like]:
    *_, reduction, want_x = rest
    each, wide = reduction == "none", torch.promote_types(x.dtype, torch.float32)
    dx = tuple(x.shape) if want_x and not each else (0,)
    return [
        Like(tuple(target.shape) if each else (), wide),
        Like((target.numel(), 2), torch.float32),
        Like(dx, x.dtype),
    ]


def outside(x: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, x is float64" if x.dtype == torch.float64 else None


def forward(x: Any, weight: Any, target: Any, *rest: Any) -> tuple[torch.Tensor, ...]:
    from ..cross_entropy import linear

    with torch.autocast(x.device.type, enabled=False):  # the products keep the dtype of x
        loss, stats, dx = linear.forward(rows(NAME, "x", x), weight, target.reshape(-1), *rest)
    each = rest[-2] == "none"
    return loss.view(target.shape) if each else loss, stats, dx.view(x.shape) if dx.dim() > 1 else dx


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from ..cross_entropy import linear

    x, up, dx = saved["x"], grads[0], saved["dx"]
    flat = {"x": rows(NAME, "x", x), "target": saved["target"].reshape(-1)}
    given = [(saved | flat)[n] for n in ("x", "weight", "target", "bias", "class_weight", "stats")]
    kept = rows(NAME, "dx", dx) if options["want_x"] and options["reduction"] != "none" else dx
    plain = [options[n] for n in ("ignore_index", "label_smoothing", "z_loss", "softcap", "reduction")]
    names = ("x", "weight", "bias")
    with torch.autocast(x.device.type, enabled=False):
        up = up.reshape(-1) if options["reduction"] == "none" else up
        found = linear.backward(*[up, *given, kept, *plain, [n in needs for n in names]])
    return {n: g.view(saved[n].shape) for n, g in zip(names, found, strict=True) if g is not None}


def _calls() -> tuple[Call, ...]:
    def of(*lead: int, count: int = 19, bias: bool = False, weighted: bool = False, **more: Any) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            target = torch.randint(count, lead, device=device)
            given = {"x": torch.randn(*lead, 6, device=device).to(dtype), "target": target,
                     "weight": torch.randn(count, 6, device=device).to(dtype), **more}  # fmt: skip
            given |= {"bias": torch.randn(count, device=device).to(dtype)} if bias else {}
            return given | ({"class_weight": torch.rand(count, device=device) + 0.5} if weighted else {})

        return make

    return (
        Call("mean", of(7, ignore_index=3)),
        Call("all_options", of(2, 3, bias=True, weighted=True, label_smoothing=0.1, z_loss=0.01, softcap=5.0)),
        Call("each", of(2, 3, bias=True, reduction="none")),
        Call("chunks", of(300, count=5, reduction="sum")),
        Call("blocks", of(300, count=700, ignore_index=3)),
    )


LINEAR_CROSS_ENTROPY = build(Operator(
    name=NAME, summary="linear layer and cross entropy, without all logits in memory; every option of cross_entropy",
    schema=SCHEMA, reference=linear_cross_entropy, results=results, forward=forward, backward=backward, check=check,
    differentiable=("x", "weight", "bias"), result_names=("loss", "stats", "dx"), function=NAME,
    saves=("x", "weight", "target", "bias", "class_weight", "stats", "dx"), folder=Path(__file__).parent,
    dtypes=DTYPES, outside=outside, pairs=(Pair("task.py", "kernel", "../cross_entropy/linear.py"),), calls=_calls(),
    copies="x whose leading dims are no evenly spaced rows; targets that lie unevenly",
    memory="logits of 256 rows, their gradient in the same place; two numbers a row and the gradient of x are kept",
    notes=("sums of a product run in float32 as far as torch.backends.cuda.matmul allows no reduced-precision reduction",),
))  # fmt: skip
