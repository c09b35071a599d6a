"""What torch operations beside (or instead of) launches do: bytes, operations, and the tensors that they leave in
memory for each other. Read off the trace of one call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..prove.gates._launches import short
from .facts import Intermediate, TorchOp

IDLE = ("empty", "view", "as_strided", "detach", "transpose", "permute", "expand", "slice", "select", "unsqueeze",
        "squeeze", "alias", "reshape", "t.default", "_local_scalar", "unbind", "split", "_unsafe_view",
        "new_empty", "_reshape_alias", "lift_fresh", "unfold", "diagonal", "narrow", "chunk", "set_")  # fmt: skip
ONLY_WRITE = ("fill", "zero", "copy", "normal", "uniform")
PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "mv": 0, "addmv": 1, "dot": 0, "vdot": 0, "convolution": 0}
PER_ELEMENT = {"_softmax": 5, "_log_softmax": 5, "native_layer_norm": 8, "native_batch_norm": 8, "native_group_norm": 8,
               "gelu": 8, "silu": 4, "sigmoid": 3, "tanh": 4, "clone": 0, "copy": 0, "fill": 0, "zero": 0, "_to_copy": 0,
               "cat": 0, "index": 0, "gather": 0, "arange": 0, "zeros": 0, "ones": 0, "full": 0}  # fmt: skip

Place = list[Any]


def works(name: str) -> bool:
    """Whether an aten operation moves data (views and allocations don't)."""
    return not name.removeprefix("aten.").startswith(IDLE)


def operations(trace: Mapping[str, Any]) -> tuple[TorchOp, ...]:
    """Torch operations that move data, in order; repeats of one line and size counted together."""
    found: dict[tuple[str, str, str], TorchOp] = {}
    for step in trace.get("steps", ()):
        if "op" not in step or not works(step["op"]):
            continue
        made = _operation(step)
        key = (made.name, made.where, made.shape)
        held = found.get(key)
        found[key] = made if held is None else held.model_copy(update={
            "times": held.times + 1, "read": held.read + made.read, "written": held.written + made.written,
            "flops": held.flops + made.flops})  # fmt: skip
    return tuple(found.values())


def _operation(step: Mapping[str, Any]) -> TorchOp:
    name = base(step["op"])
    inputs, outputs = list(_places(step["args"], step["kwargs"].values())), list(_places(step["out"]))
    if step["op"].removeprefix("aten.").partition(".")[0].rstrip("_") in ONLY_WRITE:
        inputs = [p for p in inputs if p not in outputs]
    distinct = {repr(p): p for p in inputs}.values()
    out = outputs[0] if outputs else None
    return TorchOp(
        name=name, where=short(step["where"]), shape=_shape(out), dtype=out[4] if out else "", times=1,
        read=sum(map(nbytes, distinct)), written=sum(map(nbytes, outputs)), flops=_flops(name, inputs, outputs),
    )  # fmt: skip


def base(op: str) -> str:
    """``aten.add_.Tensor`` as ``add_``."""
    return op.removeprefix("aten.").partition(".")[0]


def nbytes(place: Place) -> int:
    """Bytes behind a place; what a stride of 0 repeats is there once."""
    _, _, shape, strides, dtype = place
    count = math.prod(n for n, s in zip(shape, strides, strict=False) if s or n == 0)
    return count * getattr(torch, dtype).itemsize


def _flops(name: str, inputs: list[Place], outputs: list[Place]) -> int:
    plain = name.rstrip("_")
    size = max((math.prod(p[2]) for p in (*outputs, *inputs)), default=0)
    if plain not in PRODUCTS:
        return PER_ELEMENT.get(plain, 1) * size
    out = math.prod(outputs[0][2]) if outputs else 0
    at = PRODUCTS[plain]
    if plain == "convolution":
        return 2 * out * math.prod(inputs[1][2][1:])
    return 2 * out * inputs[at][2][-1]


def intermediates(trace: Mapping[str, Any]) -> tuple[Intermediate, ...]:
    """Tensors that are neither inputs nor results, written by one step and read by a later one; largest first."""
    outside = {p[0] for p in (*trace.get("inputs", {}).values(), *trace.get("outputs", {}).values())}
    outside |= {int(n) for n in trace.get("captured", {})}
    wrote: dict[int, tuple[str, Place]] = {}
    read: dict[int, list[str]] = {}
    for label, reads, writes in _steps(trace):
        for p in reads:
            if p[0] in wrote and wrote[p[0]][0] != label:
                read.setdefault(p[0], []).append(label)
        for p in writes:
            wrote.setdefault(p[0], (label, p))
    found = [
        Intermediate(bytes=nbytes(wrote[n][1]), shape=_shape(wrote[n][1]), dtype=wrote[n][1][4], made=wrote[n][0],
                     read=tuple(dict.fromkeys(by)))
        for n, by in read.items() if n not in outside
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda i: -i.bytes))


def _steps(trace: Mapping[str, Any]) -> Iterator[tuple[str, list[Place], list[Place]]]:
    """Who reads and writes what; a launch may do both with each of its tensors."""
    for step in trace.get("steps", ()):
        if "launch" in step:
            every = list(_places(step["tensors"].values()))
            yield f"launch of {step['launch'].get('function', '?')}", every, every
        elif works(step["op"]):
            yield (f"{base(step['op'])} at {short(step['where'])}", list(_places(step["args"], step["kwargs"].values())),
                   list(_places(step["out"])))  # fmt: skip


def _places(*encoded: Any) -> Iterator[Place]:
    for group in encoded:
        for v in group:
            if isinstance(v, dict) and "t" in v:
                yield v["t"]
            elif isinstance(v, dict) and "list" in v:
                yield from _places(v["list"])


def _shape(place: Place | None) -> str:
    return "x".join(map(str, place[2])) or "1" if place else ""
