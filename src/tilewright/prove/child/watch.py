"""Watch a call: fill fresh memory with poison, and note which torch operations ran.

``torch.empty`` and its relatives hand out memory with whatever it held. Under the watch it holds a known byte: 0xFF
(NaN in every float format, -1 in integers) or 0x4B (finite in every format). What is still poison afterwards was
never written.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from ...kernel.languages._facade import is_host
from ...task.dispatch import DispatchMode

NAN_BYTE = 0xFF
FINITE_BYTE = 0x4B
_FRESH = frozenset({"aten.empty.memory_format", "aten.empty_strided.default", "aten.empty_like.default",
                    "aten.new_empty.default", "aten.new_empty_strided.default", "aten.empty.names",
                    "aten.resize_.default"})  # fmt: skip


class Watch(DispatchMode):
    """Context around one call."""

    def __init__(self, *, poison: int | None = None, observe: bool = False):
        super().__init__()
        self.poison = poison
        self.observe = observe
        self.ops: Counter[str] = Counter()
        self.numel: Counter[str] = Counter()
        self.work: Counter[str] = Counter()  # elements of the largest tensor that an operation took or gave
        self.bytes_allocated = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = str(func)
        if name in _FRESH and isinstance(out, torch.Tensor) and is_host(out):
            self.bytes_allocated += out.untyped_storage().nbytes()
            if self.poison is not None:
                fill(out, self.poison)
        if self.observe:
            self.ops[name] += 1
            if isinstance(out, torch.Tensor):
                self.numel[name] += out.numel()
            self.work[name] = max(self.work[name], _largest((out, *args)))
        return out

    def summary(self) -> dict[str, Any]:
        return {"ops": dict(self.ops), "numel": dict(self.numel), "work": dict(self.work),
                "bytes": self.bytes_allocated}  # fmt: skip


def _largest(values: Any) -> int:
    return max((v.numel() for v in values if isinstance(v, torch.Tensor)), default=0)


def fill(t: torch.Tensor, byte: int) -> None:
    """Fill a tensor's storage with one byte (booleans with True)."""
    raw = t.untyped_storage()
    if raw.nbytes():
        torch.empty(0, dtype=torch.uint8).set_(raw).fill_(1 if t.dtype is torch.bool else byte)
