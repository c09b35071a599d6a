"""Whether there is a kernel at all: without a GPU an operator that was only begun runs its reference, unnoticed."""

from __future__ import annotations

import os

import torch

from . import hazard
from .case import Case


@hazard(13, device="cpu")
def kernel_written(case: Case) -> str | None:
    """The launchers, forward and backward, do something other than say that they are not written. What is kept for backward
    is made up, so nothing may really be launched here."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        return "under the interpreter launches are real"
    op, given = case.built.op, case.arguments()
    arguments = case.passed_on(given)
    named = dict(zip(case.built.names, arguments, strict=True))
    saved = {n: named.get(n, next(v for v in arguments if isinstance(v, torch.Tensor))) for n in op.saves}
    wanted = list(case.differentiable(given))
    sent = tuple(torch.ones(like.shape, dtype=like.dtype) for like in op.results(*arguments)[: op.public])
    options = {n: named[n] for n in case.built.options}
    _tried("forward", lambda: op.forward(*arguments))
    if op.backward is not None and wanted:
        _tried("backward", lambda: op.backward(sent, saved, options, wanted))
    return None


def _tried(what: str, launch: object) -> None:
    try:
        launch()  # type: ignore[operator]
    except NotImplementedError as e:
        raise AssertionError(f"the kernel of {what} is not written: {e}") from None
    except Exception:
        return  # nothing is launched without a GPU; what it computes is asked by the gates
