"""The head of a sparse retriever as an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .reference import sparse_retrieval_head

NAME = "sparse_retrieval_head"
SCHEMA = "(Tensor x, Tensor weight, Tensor? bias, Tensor? mask, bool keep) -> (Tensor, Tensor)"
DTYPES = ("float32", "float16", "bfloat16", "float64")


def check(x: torch.Tensor, weight: torch.Tensor, bias: Any, mask: Any, keep: bool) -> None:
    a.floating(NAME, "x", x, DTYPES)
    for n, t in (("weight", weight), ("bias", bias)):
        a.same_dtype(NAME, n, t, x, "x")
        a.same_device(NAME, n, t, x, "x")
    if x.dim() != 3:
        raise a.wrong(NAME, "x", f"of shape {tuple(x.shape)}", "(sequences, positions, features)", "x[None]")
    if weight.dim() != 2 or weight.shape[1] != x.shape[2] or not x.shape[2]:
        raise a.wrong(NAME, "weight", f"of shape {tuple(weight.shape)}",
                      f"(words, {x.shape[2]}) for x of shape {tuple(x.shape)}, of at least 1 feature",
                      "weight.t() if the features come first")  # fmt: skip
    if bias is not None:
        a.shape(NAME, "bias", bias, weight.shape[:1], "one for each word")
    a.same_device(NAME, "mask", mask, x, "x")
    if mask is not None:
        if mask.dtype != torch.bool:
            raise a.wrong(NAME, "mask", f"a tensor of {a.short(mask.dtype)}", "bool (True: a token)", "mask.bool()")
        a.shape(NAME, "mask", mask, x.shape[:2], "one for each position of x")


def results(x: Any, weight: Any, bias: Any, mask: Any, keep: bool) -> list[Like]:
    shape = (x.shape[0], weight.shape[0])
    return [Like(shape, torch.promote_types(x.dtype, torch.float32)), Like(shape if keep else (0,), torch.int32)]


def forward(x: Any, weight: Any, bias: Any, mask: Any, keep: bool) -> tuple[torch.Tensor, ...]:
    from . import kernel

    return kernel.forward(x, weight, bias, mask, keep)


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    names, given = ("x", "weight", "bias"), (saved["x"], saved["weight"], saved["bias"])
    at = saved["at"] if options["keep"] else kernel.forward(*given, saved["mask"], True)[1]
    got = kernel.backward(grads[0], *given, saved["y"], at, tuple(n in needs for n in names))
    return {n: g for n, g in zip(names, got, strict=True) if g is not None}


def outside(x: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, x is float64" if x.dtype == torch.float64 else None


def _calls() -> tuple[Call, ...]:
    def of(*sizes: int, words: int = 37, bias: bool = True, masked: bool = True) -> Any:
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            given = {"x": torch.randn(*sizes, device=device).to(dtype),
                     "weight": torch.randn(words, sizes[-1], device=device).to(dtype)}  # fmt: skip
            given |= {"bias": torch.randn(words, device=device).to(dtype)} if bias else {}
            if masked:
                mask = torch.rand(sizes[:2], device=device) > 0.4
                mask[-1] = False  # a sequence without a token
                given["mask"] = mask
            return given

        return make

    return (Call("masked", of(3, 9, 12)), Call("plain", of(2, 70, 20, words=150, bias=False, masked=False)),
            Call("no_positions", of(2, 0, 6, masked=False)), Call("no_sequences", of(0, 4, 6, masked=False)))  # fmt: skip


def _reference(x: Any, weight: Any, bias: Any = None, mask: Any = None, keep: bool = False) -> torch.Tensor:
    return sparse_retrieval_head(x, weight, bias, mask)


SPARSE_RETRIEVAL_HEAD = build(Operator(
    name=NAME, summary="linear layer, ReLU, log(1 + x) and masked maximum over positions, without the logits in memory",
    schema=SCHEMA, reference=_reference,
    results=results, forward=forward, backward=backward, check=check, outside=outside, function=NAME,
    differentiable=("x", "weight", "bias"), saves=("x", "weight", "bias", "mask", "y", "at"), result_names=("y", "at"),
    folder=Path(__file__).parent, dtypes=DTYPES, calls=_calls(),
    pairs=(Pair("task.py", "kernel"), Pair("task_ties.py", "kernel")),
    memory="the result; where a gradient is wanted four bytes for each sequence and word, and a sort of those in backward",
    notes=("a masked position takes no part, whatever it holds; a sequence without a token gives 0",
           "backward goes through the position of the largest logit, the first of equal ones as in torch.max",
           "products of float32 are summed in float32 (no TF32), those of float16 and bfloat16 too; no logit is rounded"),
))  # fmt: skip
