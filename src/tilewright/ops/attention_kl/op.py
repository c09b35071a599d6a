"""Divergence of two attention distributions as an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .reference import attention_kl

NAME = "attention_kl"
SIDES = ("teacher_q", "teacher_k", "q", "k")
SCHEMA = (
    "(Tensor teacher_q, Tensor teacher_k, Tensor q, Tensor k, Tensor? key_mask, Tensor? query_mask, float? teacher_scale, "
    "float? scale, bool causal, str divergence, str reduction) -> (Tensor, Tensor)"
)
DTYPES = ("float32", "float16", "bfloat16", "float64")
CHOICES = {"divergence": ("forward", "reverse", "js"), "reduction": ("mean", "sum", "none")}
LARGEST = 256  # head dim that the kernel takes


def check(teacher_q: Any, teacher_k: Any, q: Any, k: Any, key_mask: Any, query_mask: Any, teacher_scale: Any, scale: Any,
          causal: bool, divergence: str, reduction: str) -> None:  # fmt: skip
    a.floating(NAME, "q", q, DTYPES)
    for n, t in zip(SIDES, (teacher_q, teacher_k, q, k), strict=True):
        a.same_dtype(NAME, n, t, q, "q")
        a.same_device(NAME, n, t, q, "q")
        if t.dim() != 4 or not t.shape[3]:
            raise a.wrong(NAME, n, f"of shape {tuple(t.shape)}", "(batch, heads, tokens, head dim), none of 0 features",
                          f"{n}.unflatten(-1, (heads, -1)).transpose(1, 2)")  # fmt: skip
    a.shape(NAME, "teacher_q", teacher_q, (*q.shape[:3], teacher_q.shape[3]), "batch, heads and queries as q")
    for n, keys, of, queries in (("k", k, "q", q), ("teacher_k", teacher_k, "teacher_q", teacher_q)):
        a.shape(NAME, n, keys, (q.shape[0], keys.shape[1], k.shape[2], queries.shape[3]), f"batch and head dim as {of}")
        if not keys.shape[1] or q.shape[1] % keys.shape[1]:
            raise a.wrong(NAME, n, f"of {keys.shape[1]} heads", f"a number that divides the heads of {of}, {q.shape[1]}",
                          "repeat or pool its heads")  # fmt: skip
    for n, mask, length in (("key_mask", key_mask, k.shape[2]), ("query_mask", query_mask, q.shape[2])):
        a.same_device(NAME, n, mask, q, "q")
        if mask is None:
            continue
        if mask.dtype != torch.bool:
            raise a.wrong(NAME, n, f"a tensor of {a.short(mask.dtype)}", "bool (True: a token)", f"{n}.bool()")
        a.shape(NAME, n, mask, (q.shape[0], length), "(batch, tokens)")
    for n, value in (("divergence", divergence), ("reduction", reduction)):
        if value not in CHOICES[n]:
            raise a.wrong(NAME, n, repr(value), " or ".join(map(repr, CHOICES[n])), "choose one of them")


def results(teacher_q: Any, teacher_k: Any, q: Any, *rest: Any) -> list[Like]:
    shape, wide = tuple(q.shape[:3]), torch.promote_types(q.dtype, torch.float32)
    return [Like(shape if rest[-1] == "none" else (), wide), Like((6, *shape), torch.float32)]


def outside(teacher_q: Any, teacher_k: Any, q: Any, *_: Any) -> str | None:
    if q.dtype == torch.float64:
        return "the kernel computes in float32, q is float64"
    largest = max(q.shape[3], teacher_q.shape[3])
    return f"the kernel takes head dims up to {LARGEST}, one is {largest}" if largest > LARGEST else None


def forward(*given: Any) -> tuple[torch.Tensor, ...]:
    from . import kernel

    return kernel.forward(*given)  # type: ignore[no-any-return]


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    from . import kernel

    got = kernel.backward(grads[0], **saved, **options, wanted=tuple(n in needs for n in SIDES))
    return {n: g for n, g in zip(SIDES, got, strict=True) if g is not None}


def _calls() -> tuple[Call, ...]:
    def of(queries: int, keys: int, heads: tuple[int, int, int] = (4, 2, 4), dims: tuple[int, int] = (8, 12),
           masked: bool = False, **more: Any) -> Any:  # fmt: skip
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            h, teachers, students = heads
            shapes = ((2, h, queries, dims[0]), (2, teachers, keys, dims[0]), (2, h, queries, dims[1]),
                      (2, students, keys, dims[1]))  # fmt: skip
            given = {n: torch.randn(s, device=device).to(dtype) for n, s in zip(SIDES, shapes, strict=True)}
            if masked:
                given |= {n: torch.rand(2, size, device=device) > 0.4
                          for n, size in (("key_mask", keys), ("query_mask", queries))}  # fmt: skip
                given["query_mask"][0, 0] = True
            return given | more

        return make

    return (
        Call("forward", of(5, 9)),
        Call("reverse", of(5, 9, divergence="reverse", reduction="sum", scale=0.5)),
        Call("js", of(7, 7, divergence="js", causal=True, reduction="none")),
        Call("masked", of(9, 6, masked=True, causal=True)),
        Call("tiles", of(70, 100, (2, 1, 2), reduction="none", causal=True)),
        Call("no_keys", of(3, 0, reduction="sum")),
    )


ATTENTION_KL = build(Operator(
    name=NAME, summary="KL or Jensen–Shannon divergence of two attention distributions, without either matrix in memory",
    schema=SCHEMA, reference=attention_kl, results=results, forward=forward, backward=backward, check=check,
    differentiable=SIDES, saves=("stats", *SIDES, "key_mask", "query_mask"), result_names=("loss", "stats"), function=NAME,
    folder=Path(__file__).parent, dtypes=DTYPES, outside=outside, calls=_calls(),
    pairs=(Pair("task.py", "kernel"), Pair("task_masked.py", "kernel")),
    error_bound="2**-20 absolute, as of a difference of logarithms; else as the reference in float32",
    memory="24 bytes a query and head for backward; queries and keys of both sides are kept",
    copies="none: strides are arguments of the kernel",
    notes=("a query that is masked or sees no key gives 0; a mean is over heads and queries that are not masked",
           "causal: query i of N sees keys up to i + M - N of M",
           "logits of float32 are summed in float32 (no TF32); gradients of the others are TF32 products",
           f"head dims above {LARGEST} and float64 run the reference"),
))  # fmt: skip
