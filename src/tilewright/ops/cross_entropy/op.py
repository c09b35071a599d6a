"""Cross entropy as an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .reference import cross_entropy

NAME = "cross_entropy"
SCHEMA = (
    "(Tensor logits, Tensor target, Tensor? weight, int ignore_index, float label_smoothing, float z_loss, "
    "float softcap, str reduction) -> (Tensor, Tensor, Tensor)"
)
DTYPES = ("float32", "float16", "bfloat16", "float64")
INFINITY = float("inf")
REDUCTIONS = ("mean", "sum", "none")


def options(op: str, label_smoothing: float, z_loss: float, softcap: float, reduction: str) -> None:
    """The options that every form of cross entropy shares."""
    if not 0 <= label_smoothing <= 1:
        raise a.wrong(op, "label_smoothing", label_smoothing, "between 0 and 1", "0 for none")
    for name, value in (("z_loss", z_loss), ("softcap", softcap)):
        if not 0 <= value < INFINITY:
            raise a.wrong(op, name, value, "finite and not negative", "0 for none")
    if reduction not in REDUCTIONS:
        raise a.wrong(op, "reduction", repr(reduction), " or ".join(map(repr, REDUCTIONS)), "choose one of them")


def classes(op: str, like: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, count: int,
            name: str = "weight") -> None:  # fmt: skip
    """Targets and class weights of ``count`` classes."""
    if target.dtype != torch.int64:
        raise a.wrong(op, "target", f"a tensor of {a.short(target.dtype)}", "int64 (classes)", "target.long()")
    a.same_device(op, "target", target, like, "the input")
    a.same_device(op, name, weight, like, "the input")
    if weight is not None:
        a.floating(op, name, weight, DTYPES)
        a.shape(op, name, weight, (count,), "one for each class")


def check(
    logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, ignore_index: int, *rest: Any
) -> None:
    a.floating(NAME, "logits", logits, DTYPES)
    if logits.dim() < 1 or logits.shape[-1] < 1:
        raise a.wrong(NAME, "logits", f"of shape {tuple(logits.shape)}", "(..., classes) with at least one class",
                      "logits.movedim(1, -1) if the classes are dim 1")  # fmt: skip
    a.shape(NAME, "target", target, logits.shape[:-1], "logits without the last dim, the classes")
    classes(NAME, logits, target, weight, logits.shape[-1])
    options(NAME, *rest)


def results(logits: torch.Tensor, target: torch.Tensor, *rest: Any) -> list[Like]:
    each, wide = rest[-1] == "none", torch.promote_types(logits.dtype, torch.float32)
    return [Like(tuple(target.shape) if each else (), wide), Like((target.numel(), 2), torch.float32),
            Like((0,) if each else (), torch.float32)]  # fmt: skip


def outside(logits: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, the logits are float64" if logits.dtype == torch.float64 else None


def forward(*arguments: Any) -> tuple[torch.Tensor, ...]:
    from . import kernel

    return kernel.forward(*arguments)


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    return {"logits": kernel.backward(grads[0], **saved, **options)}


def _calls() -> tuple[Call, ...]:
    def of(*lead: int, classes: int, weighted: bool = False, ignored: bool = False, **more: Any) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            target = torch.randint(classes, lead, device=device)
            target = target.masked_fill(torch.rand(lead, device=device) < 0.4, -100) if ignored else target
            given = {"logits": 3 * torch.randn(*lead, classes, device=device).to(dtype), "target": target, **more}
            return given | ({"weight": torch.rand(classes, device=device) + 0.5} if weighted else {})

        return make

    return (
        Call("mean", of(6, classes=33, ignored=True)),
        Call(
            "all_options",
            of(3, 5, classes=70, weighted=True, ignored=True, label_smoothing=0.1, z_loss=0.01, softcap=5.0),
        ),
        Call("each", of(2, 3, classes=17, reduction="none", label_smoothing=0.1)),
        Call("long", of(2, classes=40000, reduction="sum")),
    )


CROSS_ENTROPY = build(Operator(
    name=NAME, summary="cross entropy: ignored targets, class weights, label smoothing, z-loss, soft cap, each reduction",
    schema=SCHEMA, reference=cross_entropy, results=results, forward=forward, backward=backward, check=check,
    differentiable=("logits",), saves=("logits", "target", "weight", "stats", "divisor"),
    result_names=("loss", "stats", "divisor"), function=NAME, folder=Path(__file__).parent, dtypes=DTYPES, outside=outside,
    pairs=(Pair("task.py", "kernel"), Pair("task_weighted.py", "weighted")), calls=_calls(),
    memory="8 bytes a row and 16 bytes a piece of 32768 classes; the gradient; the logits are kept for backward, unchanged",
))  # fmt: skip
