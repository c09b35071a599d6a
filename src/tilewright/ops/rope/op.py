"""Rotary embedding as two operators: into new tensors, and in place by contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .reference import rope

DTYPES = ("float32", "float16", "bfloat16", "float64")
REST = "Tensor cos, Tensor sin, Tensor? positions, bool interleaved"


def check(name: str, q: Any, k: Any, cos: Any, sin: Any, positions: Any, interleaved: bool) -> None:
    a.floating(name, "q", q, DTYPES)
    a.same_dtype(name, "k", k, q, "q")
    for n, t in (("k", k), ("cos", cos), ("sin", sin), ("positions", positions)):
        a.same_device(name, n, t, q, "q")
    if q.dim() != 4:
        raise a.wrong(name, "q", f"of shape {tuple(q.shape)}", "(batch, heads, length, dims)",
                      "q.transpose(1, 2) if the heads come after the length")  # fmt: skip
    if k.dim() != 4 or (k.shape[0], *k.shape[2:]) != (q.shape[0], *q.shape[2:]):
        raise a.wrong(name, "k", f"of shape {tuple(k.shape)}", f"({q.shape[0]}, heads, {q.shape[2]}, {q.shape[3]}) as q",
                      "only the number of heads may differ")  # fmt: skip
    _tables(name, q, cos, sin, positions)


def _tables(name: str, q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, positions: torch.Tensor | None) -> None:
    batch, _, length, dims = q.shape
    a.floating(name, "cos", cos, DTYPES)
    a.floating(name, "sin", sin, DTYPES)
    a.shape(name, "sin", sin, cos.shape, "as cos")
    if cos.dim() not in (2, 3) or (cos.dim() == 3 and cos.shape[0] not in (1, batch)):
        raise a.wrong(name, "cos", f"of shape {tuple(cos.shape)}", f"(table, half) or ({batch} or 1, table, half)",
                      "leave out other dims")  # fmt: skip
    if not 1 <= cos.shape[-1] <= dims // 2:
        raise a.wrong(name, "cos", f"of {cos.shape[-1]} angles a token", f"1 to {dims // 2} for {dims} dims",
                      "cos[..., : cos.shape[-1] // 2] if each angle stands there twice")  # fmt: skip
    if positions is None and cos.shape[-2] < length:
        raise a.wrong(name, "cos", f"for {cos.shape[-2]} positions", f"one for each of {length} tokens",
                      "a longer table, or positions")  # fmt: skip
    if positions is not None and positions.dtype != torch.int64:
        raise a.wrong(name, "positions", f"a tensor of {a.short(positions.dtype)}", "int64", "positions.long()")
    if positions is not None and (
        positions.dim() != 2 or positions.shape[0] not in (1, batch) or positions.shape[1] != length
    ):
        raise a.wrong(name, "positions", f"of shape {tuple(positions.shape)}", f"({batch} or 1, {length})",
                      "positions[None] if all sequences share them")  # fmt: skip


def outside(q: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, q is float64" if q.dtype == torch.float64 else None


def forward(q: Any, k: Any, cos: Any, sin: Any, positions: Any, interleaved: bool) -> tuple[torch.Tensor, ...]:
    from . import kernel

    p, r = (t.new_empty(t.shape) for t in (q, k))
    kernel.rotate(q, k, p, r, cos, sin, positions, interleaved, 1.0)
    return p, r


def write(q: Any, k: Any, cos: Any, sin: Any, positions: Any, interleaved: bool) -> tuple[torch.Tensor, ...]:
    from . import kernel

    kernel.rotate(q, k, q, k, cos, sin, positions, interleaved, 1.0)
    return ()


def backward(grads: Any, saved: Any, options: Any, needs: Any) -> dict[str, torch.Tensor]:
    """Each gradient turned back; what nobody wants or nobody sent has no heads."""
    from . import kernel

    given = dict(zip(("q", "k"), grads, strict=True))
    some = next(g for g in grads if g is not None)
    none = some[:, :0]
    up = [g if g is not None and n in needs else none for n, g in given.items()]
    turned = [t.new_empty(t.shape) for t in up]
    tables = {n: saved[n] for n in ("cos", "sin", "positions")}
    kernel.rotate(up[0], up[1], turned[0], turned[1], **tables, **options, sign=-1.0)
    back = dict(zip(given, turned, strict=True))
    return {n: back[n] if given[n] is not None else torch.zeros_like(saved[f"{n}_turned"]) for n in needs}


def _calls() -> tuple[Call, ...]:
    def of(heads: int, groups: int, length: int, half: int, rest: int = 0, places: bool = False, lines: bool = False,
           **more: Any) -> Any:  # fmt: skip
        def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
            q, k = (torch.randn(2, n, length, 2 * half + rest, device=device).to(dtype) for n in (heads, groups))
            angle = torch.rand(*((2,) if lines else ()), length if lines else 40, half, device=device) * 6
            given = {"q": q, "k": k, "cos": angle.cos(), "sin": angle.sin(), **more}
            return given | ({"positions": torch.randint(40, (2, length), device=device)} if places else {})

        return make

    return (
        Call("halves", of(4, 2, 5, 8)),
        Call("positions", of(4, 1, 5, 6, rest=3, places=True)),
        Call("interleaved", of(3, 3, 4, 6, rest=4, places=True, interleaved=True)),
        Call("lines", of(2, 2, 3, 4, lines=True)),
    )


_SHARED: dict[str, Any] = {
    "reference": rope, "outside": outside, "dtypes": DTYPES, "folder": Path(__file__).parent, "calls": _calls(),
}  # fmt: skip

ROPE = build(Operator(
    name="rope", summary="rotary embedding of queries and keys: halves or pairs, partial, positions, grouped heads",
    schema=f"(Tensor q, Tensor k, {REST}) -> (Tensor, Tensor)", function="rope", forward=forward, backward=backward,
    results=lambda q, k, *_: [Like(tuple(q.shape), q.dtype), Like(tuple(k.shape), k.dtype)],
    check=lambda *given: check("rope", *given), differentiable=("q", "k"),
    saves=("cos", "sin", "positions", "q_turned", "k_turned"), gradient_like={"q": "q_turned", "k": "k_turned"},
    result_names=("q_turned", "k_turned"), public=2,
    pairs=(Pair("task.py", "kernel"), Pair("task_tables.py", "tables")),
    memory="the results; backward keeps the tables and the results, not q and k", **_SHARED,
))  # fmt: skip

ROPE_ = build(Operator(
    name="rope_", summary="rotary embedding, written over queries and keys",
    schema=f"(Tensor(a!) q, Tensor(b!) k, {REST}) -> ()", function="rope_", forward=write, results=lambda *_: [],
    check=lambda *given: check("rope_", *given), mutates=("q", "k"), result_names=(), public=0,
    pairs=(Pair("task_in_place.py", "in_place"),), memory="none", **_SHARED,
))  # fmt: skip
