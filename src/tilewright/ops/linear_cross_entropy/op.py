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
    "float label_smoothing, float z_loss, float softcap, str reduction, bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor)"
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
    *_, reduction, wanted = rest
    each, wide = reduction == "none", torch.promote_types(x.dtype, torch.float32)
    shapes = [tuple(x.shape), tuple(weight.shape), (weight.shape[0],)]
    shapes = [s if w and not each else (0,) for s, w in zip(shapes, wanted, strict=True)]
    kept = [Like(s, d) for s, d in zip(shapes, (x.dtype, torch.float32, torch.float32), strict=True)]
    return [Like(tuple(target.shape) if each else (), wide), *kept]


def outside(x: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, x is float64" if x.dtype == torch.float64 else None


def forward(x: Any, weight: Any, target: Any, *rest: Any) -> tuple[torch.Tensor, ...]:
    from ..cross_entropy import linear

    with torch.autocast(x.device.type, enabled=False):  # the products keep the dtype of x
        loss, dx, dw, db = linear.forward(rows(NAME, "x", x), weight, target.reshape(-1), *rest)
    each = rest[-2] == "none"
    return loss.view(target.shape) if each else loss, dx.view(x.shape) if dx.dim() > 1 else dx, dw, db


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    """What forward kept, times the incoming gradient; or logits formed again where it could keep nothing."""
    arguments = [saved[n] for n in ("x", "weight", "bias")]
    names, kept = ("x", "weight", "bias"), [saved[n] for n in ("dx", "dw", "db")]
    if options["reduction"] != "none" and all(
        w or n not in needs for n, w in zip(names, options["wanted"], strict=True)
    ):
        found = [grads[0] * k for k in kept]
    else:
        found = _again(grads[0], saved, options, [n in needs for n in names])
    return {n: g.to(t.dtype).view(t.shape) for n, t, g in zip(names, arguments, found, strict=True) if n in needs}


def _again(upstream: Any, saved: Any, options: Any, wanted: list[bool]) -> Any:
    from ..cross_entropy import linear

    target = saved["target"].reshape(-1)
    if options["reduction"] != "none":
        share = linear.divisors_of(target, saved["class_weight"], options["ignore_index"], options["reduction"])[1]
        upstream = (upstream / share).expand(target.shape)
    plain = {n: options[n] for n in ("ignore_index", "label_smoothing", "z_loss", "softcap")}
    given = {n: saved[n] for n in ("weight", "bias", "class_weight")}
    with torch.autocast(target.device.type, enabled=False):
        return linear.again(
            upstream.reshape(-1), rows(NAME, "x", saved["x"]), target=target, wanted=wanted, **given, **plain
        )


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
    )


LINEAR_CROSS_ENTROPY = build(Operator(
    name=NAME, summary="linear layer and cross entropy, without all logits in memory; every option of cross_entropy",
    schema=SCHEMA, reference=linear_cross_entropy, results=results, forward=forward, backward=backward, check=check,
    differentiable=("x", "weight", "bias"), result_names=("loss", "dx", "dw", "db"), function=NAME,
    saves=("x", "weight", "target", "bias", "class_weight", "dx", "dw", "db"), folder=Path(__file__).parent,
    dtypes=DTYPES, outside=outside, pairs=(Pair("task.py", "kernel", "../cross_entropy/linear.py"),), calls=_calls(),
    copies="x whose leading dims are no evenly spaced rows; targets that lie unevenly",
    memory="logits and their gradient for 256 rows; the gradient of x in its dtype, those of weight and bias in float32",
))  # fmt: skip
