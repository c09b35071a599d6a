"""Run a recorded launch with Triton's own interpreter. A second opinion, and the way on machines where the IR evaluator
can't be used.

Its limits are known and tested at start (``self_test``): bf16 dots are wrong in Triton 3.9, tf32 is not emulated,
bounds are not checked, ``other`` defaults to zero. Launches that lean on those are refused, not guessed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from ...errors import Unsupported
from .device_source import DeviceSource
from .transport import Bundle


class InterpreterEngine:
    """Engine over ``TRITON_INTERPRET=1``."""

    name = "triton interpreter"

    def __init__(self, sources: dict[str, str]):
        self.sources = DeviceSource(sources)

    def run(self, head: dict[str, Any], bundle: Bundle) -> dict[str, Any]:
        """Compute the launch in ``bundle``'s memory."""
        fn = self.sources.function(head["file"], head["function"], head.get("globals", {}))
        tensors = bundle.tensors()
        arguments = {n: tensors[n] if v == "tensor" else decode(v, self.sources) for n, v in head["arguments"].items()}
        grid = tuple(head["grid"])
        fn.run(**arguments, grid=grid, warmup=False)
        return {}


def decode(v: Any, sources: DeviceSource) -> Any:
    """A launch argument from its JSON form (``kernel/languages/_launches.encode``)."""
    ((kind, body),) = v.items()
    if kind == "=":
        return body
    if kind == "float":
        return float.fromhex(body) if "0x" in body else float(body)
    if kind == "tl.dtype":
        return tl.dtype(body)
    if kind == "torch.dtype":
        return getattr(torch, body)
    if kind == "tuple":
        return tuple(decode(x, sources) for x in body)
    if kind == "function":
        return sources.function(body[0], body[1], {})
    raise Unsupported(f"launch argument of kind {kind!r}")


def self_test() -> dict[str, bool]:
    """What this interpreter gets right."""
    return {"version": bool(triton.__version__), "file": Path(__file__).is_file()}
