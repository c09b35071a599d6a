"""Late interaction as operators: padded, pairs, packed, and documents of int8."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .._builder import Built, Call, Like, Operator, Pair, build
from .._builder import arguments as a
from . import reference
from .calls import INT8, PACKED, PADDED, PAIRS

FOLDER = Path(__file__).parent
PAIRED = {
    "padded": (Pair("task.py", "kernel"), Pair("task_ties.py", "kernel")),
    "pairs": (Pair("task_pairs.py", "max_sim_pairs"),),
    "packed": (Pair("task_packed.py", "max_sim_packed"),),
    "int8": (Pair("task_int8.py", "max_sim_int8"),),
}
TENSORS = ("q", "d", "scale", "q_mask", "d_mask", "cu_q", "cu_d")
DTYPES = ("float32", "float16", "bfloat16", "float64")
MEMORY = (
    "the scores; for a gradient 4 bytes for each query token and document, for that of d 12 more while they are sorted"
)
NOTES = (
    "a masked or padded token takes no part; a document without a token scores -inf, a query without one 0",
    "of equal similarities the first counts in backward, as in torch.max; NaN counts as the largest",
    "products of float32 are summed in float32 (no TF32), those of float16 and bfloat16 too; nothing is rounded between",
    "a query alone and in a batch may differ in the last bit",
)


def _sides(name: str, q: torch.Tensor, d: torch.Tensor, dims: int, byte: bool = False) -> None:
    a.floating(name, "q", q, DTYPES)
    if byte:
        if d.dtype != torch.int8:
            raise a.wrong(name, "d", f"a tensor of {a.short(d.dtype)}", "int8", "max_sim for documents of floats")
    else:
        a.floating(name, "d", d, DTYPES)
        a.same_dtype(name, "d", d, q, "q")
    a.same_device(name, "d", d, q, "q")
    for n, t in (("q", q), ("d", d)):
        if t.dim() != dims:
            shape = "(tokens, features)" if dims == 2 else "(sequences, tokens, features)"
            raise a.wrong(name, n, f"of shape {tuple(t.shape)}", shape, f"{n}.reshape(...)")
    if q.shape[-1] != d.shape[-1] or not q.shape[-1]:
        raise a.wrong(name, "d", f"of {d.shape[-1]} features", f"{q.shape[-1]} as q, and at least 1",
                      "project both to the same features")  # fmt: skip


def _masks(name: str, q: torch.Tensor, d: torch.Tensor, q_mask: Any, d_mask: Any) -> None:
    for n, mask, of in (("q_mask", q_mask, q), ("d_mask", d_mask, d)):
        a.same_device(name, n, mask, of, n[0])
        if mask is None:
            continue
        if mask.dtype != torch.bool:
            raise a.wrong(name, n, f"a tensor of {a.short(mask.dtype)}", "bool (True: a token)", f"{n}.bool()")
        a.shape(name, n, mask, of.shape[:2], f"one for each token of {n[0]}")


def _check(name: str, byte: bool, pair: bool) -> Callable[..., None]:
    def check(q: Any, d: Any, *rest: Any) -> None:
        *scale, q_mask, d_mask, _keep = rest
        _sides(name, q, d, 3, byte)
        _masks(name, q, d, q_mask, d_mask)
        if pair and q.shape[0] != d.shape[0]:
            raise a.wrong(
                name, "d", f"{d.shape[0]} documents", f"{q.shape[0]}, one for each query", "max_sim for all pairs"
            )
        if byte:
            a.floating(name, "scale", scale[0], DTYPES)
            a.same_device(name, "scale", scale[0], q, "q")
            a.shape(name, "scale", scale[0], d.shape[:2], "one for each token of d")
            if scale[0].dtype != torch.promote_types(q.dtype, torch.float32):
                raise a.wrong(name, "scale", f"a tensor of {a.short(scale[0].dtype)}",
                              "float32 (float64 where q is float64)", "scale.float()")  # fmt: skip

    return check


def _check_packed(q: Any, d: Any, cu_q: Any, cu_d: Any, _keep: bool) -> None:
    name = "max_sim_packed"
    _sides(name, q, d, 2)
    for n, cu in (("cu_q", cu_q), ("cu_d", cu_d)):
        a.same_device(name, n, cu, q, "q")
        if cu.dtype not in (torch.int32, torch.int64) or cu.dim() != 1 or cu.numel() < 1:
            raise a.wrong(name, n, f"a tensor of {a.short(cu.dtype)} and shape {tuple(cu.shape)}",
                          "int32 or int64, (sequences + 1), beginning with 0",
                          f"torch.nn.functional.pad(lengths.cumsum(0), (1, 0)) for {n}")  # fmt: skip


def _results(form: str) -> Callable[..., list[Like]]:
    def results(q: Any, d: Any, *rest: Any) -> list[Like]:
        sizes = [q.shape[0], d.shape[0]] if form != "packed" else [cu.shape[0] - 1 for cu in rest[:2]]
        tokens = q.shape[0] if form == "packed" else q.shape[0] * q.shape[1]
        kept = (1 if form == "pairs" else sizes[1], tokens) if rest[-1] else (0,)
        out = Like(tuple(sizes[: 1 if form == "pairs" else 2]), torch.promote_types(q.dtype, torch.float32))
        return [out, Like(kept, torch.int32)]

    return results


def _arguments(form: str, rest: Any) -> Any:
    """scale, masks and offsets of any form, as the kernel takes them."""
    if form == "packed":
        return (None, None, None, rest[0], rest[1])
    return (rest[0] if form == "int8" else None, rest[-2], rest[-1], None, None)


def _forward(form: str) -> Callable[..., Any]:
    def forward(q: Any, d: Any, *rest: Any) -> Any:
        from . import kernel

        given = (q, d, *_arguments(form, rest[:-1]), form == "pairs", rest[-1])
        return kernel.forward(*given)

    return forward


def _backward(form: str) -> Callable[..., dict[str, torch.Tensor]]:
    def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
        from . import kernel

        q, d, scale, q_mask, d_mask, cu_q, cu_d = (saved.get(n) for n in TENSORS)
        at, pair = saved["at"], form == "pairs"
        if not options["keep"]:  # asked for later: the choices are made again
            at = kernel.forward(q, d, scale, q_mask, d_mask, cu_q, cu_d, pair, True)[1]
        got = kernel.backward(grads[0], q, d, scale, at, cu_q, cu_d, pair, ("q" in needs, "d" in needs))
        return {n: g for n, g in zip(("q", "d"), got, strict=True) if g is not None}

    return backward


def outside(q: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, q is float64" if q.dtype == torch.float64 else None


def _build(form: str, given: str, function: Any, check: Any, calls: tuple[Call, ...], what: str) -> Built:
    name = function.__name__
    tensors = tuple(g.split()[-1] for g in given.split(", "))
    count = len(tensors)
    return build(Operator(
        name=name, summary=f"sum over query tokens of the maximum over document tokens of their products: {what}",
        schema=f"({given}, bool keep) -> (Tensor, Tensor)", 
        reference=lambda *given, **named: function(*given[:count], **named),
        results=_results(form), forward=_forward(form), backward=_backward(form), check=check, outside=outside,
        differentiable=("q",) if form == "int8" else ("q", "d"), saves=(*tensors, "at"), result_names=("scores", "at"),
        function=name, folder=FOLDER, dtypes=DTYPES, calls=calls,
        pairs=PAIRED[form], notes=NOTES,
        memory=MEMORY,
        copies=f"{'cu_q and cu_d that lie unevenly' if form == 'packed' else 'none'}: strides are arguments of the kernel",
    ))  # fmt: skip


MASKS = "Tensor? q_mask, Tensor? d_mask"
MAX_SIM = _build("padded", f"Tensor q, Tensor d, {MASKS}", reference.max_sim, _check("max_sim", False, False), PADDED,
                 "each query with each document, padded, with masks on both sides")  # fmt: skip
MAX_SIM_PAIRS = _build("pairs", f"Tensor q, Tensor d, {MASKS}", reference.max_sim_pairs,
                       _check("max_sim_pairs", False, True), PAIRS,
                       "each query with the document of the same number")  # fmt: skip
MAX_SIM_PACKED = _build("packed", "Tensor q, Tensor d, Tensor cu_q, Tensor cu_d", reference.max_sim_packed,
                        _check_packed, PACKED,
                        "each query with each document, sequences one after the other")  # fmt: skip
MAX_SIM_INT8 = _build("int8", f"Tensor q, Tensor d, Tensor scale, {MASKS}", reference.max_sim_int8,
                      _check("max_sim_int8", True, False), INT8,
                      "documents of int8 with a scale for each token")  # fmt: skip
