"""Trace: what one call did, in order: every torch operation, allocation and view, and every launch.

The recorder sits in the process that makes the call. A tensor is written down as its *place*: storage, offset, sizes,
strides, dtype; so views, in-place work and aliasing need no special treatment: a replay (``replay_trace.py``) keeps one
array a storage and reads and writes places in it. Storages that existed before the call and are no input are *captured*
with their bytes. The trace is plain JSON.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Mapping
from typing import Any

import torch

from ..task.dispatch import DispatchMode

MOST_CAPTURED = 8 << 20
MOST_STEPS = 20_000
DEPTH = 60
_SKIP = ("/torch/", "/tilewright/", "/triton/", "<")


class Trace(DispatchMode):
    """Context around one call. ``inputs``: the call's tensors by name; ``user``: the file whose lines are noted."""

    def __init__(self, inputs: Mapping[str, torch.Tensor], user: str = ""):
        super().__init__()
        self.user = user
        self.paused = False
        self.problem = ""
        self.steps: list[dict[str, Any]] = []
        self.sizes: dict[int, int] = {}
        self.captured: dict[int, list[str]] = {}
        self.outputs: dict[str, Any] = {}
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []
        self._captured_bytes = 0
        self.inputs = {n: self.place(t) for n, t in inputs.items()}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.paused or self.problem:
            return func(*args, **kwargs)
        step = {"op": str(func), "args": [self.encode(a) for a in args],
                "kwargs": {k: self.encode(v) for k, v in kwargs.items()}, "where": self.line()}  # fmt: skip
        out = func(*args, **kwargs)
        results = out if isinstance(out, tuple | list) else (out,)
        step["out"] = [self.encode(r, made=True) for r in results]
        self.add(step)
        return out

    def add(self, step: dict[str, Any]) -> None:
        """One more step. From a certain length on the trace is given up."""
        if len(self.steps) >= MOST_STEPS:
            self.problem = self.problem or f"a call of more than {MOST_STEPS} operations"
        else:
            self.steps.append(step)

    def launch(self, head: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
        """Note a launch before it is computed."""
        if not self.paused:
            places = {n: self.encode(t) for n, t in tensors.items()}
            self.add({"launch": dict(head), "tensors": places, "where": self.line()})

    def finish(self, outputs: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """The trace as data, with the places of the results."""
        self.outputs = {n: self.place(t) for n, t in outputs.items()}
        return {"inputs": self.inputs, "outputs": self.outputs, "steps": self.steps, "problem": self.problem,
                "sizes": {str(k): v for k, v in self.sizes.items()},
                "captured": {str(k): v for k, v in self.captured.items()}}  # fmt: skip

    # -- values as data
    def encode(self, v: Any, made: bool = False) -> Any:
        """A value as JSON; tensors by place. ``made``: results, whose storages may be new."""
        if isinstance(v, torch.Tensor):
            return {"t": self.place(v, capture=not made)}
        if v is None or isinstance(v, bool | int | str):
            return {"=": v}
        if isinstance(v, float):
            return {"f": v.hex() if math.isfinite(v) else repr(v)}
        if isinstance(v, torch.dtype):
            return {"dtype": str(v).removeprefix("torch.")}
        if isinstance(v, torch.device | torch.layout | torch.memory_format):
            return {"word": str(v)}
        if isinstance(v, tuple | list):
            return {"list": [self.encode(x, made) for x in v]}
        return {"?": type(v).__name__}

    def place(self, t: torch.Tensor, capture: bool = False) -> list[Any]:
        """[storage, offset, sizes, strides, dtype], offsets and strides in elements."""
        if t.layout is not torch.strided or t.is_conj() or t.is_neg():
            self.problem = self.problem or f"a tensor of layout {t.layout}, or conjugated"
            return [-1, 0, list(t.shape), [], str(t.dtype).removeprefix("torch.")]
        raw = t.untyped_storage()
        key = raw._cdata
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._held.append(raw)
            if capture:
                self._capture(self._numbers[key], raw, t.dtype)
        number = self._numbers[key]
        self.sizes[number] = raw.nbytes()
        return [number, t.storage_offset(), list(t.shape), list(t.stride()), str(t.dtype).removeprefix("torch.")]

    def _capture(self, number: int, raw: Any, dtype: torch.dtype) -> None:
        self._captured_bytes += raw.nbytes()
        if self._captured_bytes > MOST_CAPTURED:
            self.problem = self.problem or "more data from before the call than a trace carries"
            return
        held, self.paused = self.paused, True
        flat = torch.empty(0, dtype=torch.uint8).set_(raw) if raw.nbytes() else torch.empty(0, dtype=torch.uint8)
        body = base64.b64encode(bytes(flat.numpy().tobytes())).decode()
        self.paused = held
        self.captured[number] = [str(dtype).removeprefix("torch."), body]

    def line(self) -> str:
        """``file:line`` of the innermost frame of the user's file (or else of the user's code)."""
        frame: Any = sys._getframe(2)
        other = ""
        for _ in range(DEPTH):
            if frame is None:
                break
            name = frame.f_code.co_filename
            if self.user and name == self.user:
                return f"{name}:{frame.f_lineno}"
            if not other and not any(s in name for s in _SKIP):
                other = f"{name}:{frame.f_lineno}"
            frame = frame.f_back
        return other
