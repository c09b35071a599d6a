"""Kernels in Triton. On a machine without a GPU the child only *records* launches: it sends function, arguments, grid
and constexprs to the evaluator, another process, and copies back what that one computed. The candidate's process never
runs a device kernel.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _facade
from ._launches import Recorder
from ._python import PythonLoaded

__all__ = ["Loaded", "Recorder"]


def prepare() -> None:
    """Before anything else in the candidate's process: without a GPU, speak for one."""
    if not torch.cuda.is_available():
        _facade.install()


class Loaded(PythonLoaded):
    """A Triton kernel file. The recorder is in place before the file runs."""

    def __init__(self, kernel: dict[str, Any], evaluator: Any = None):
        self.recorder = Recorder(evaluator, kernel) if evaluator is not None else None
        if self.recorder is not None:
            self.recorder.install()
        super().__init__(kernel, evaluator)
