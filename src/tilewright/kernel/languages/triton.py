"""Kernels in Triton. On a machine without a GPU the child only *records* launches: it sends function, arguments, grid
and constexprs to the evaluator, another process, and copies back what that one computed. The candidate's process never
runs a device kernel.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ._python import KernelFault, PythonLoaded
from ._launches import Recorder

__all__ = ["Loaded"]


class Loaded(PythonLoaded):
    """A Triton kernel file. The recorder is in place before the file runs."""

    def __init__(self, kernel: dict[str, Any], evaluator: Any = None):
        if evaluator is None and not torch.cuda.is_available():
            raise KernelFault("no evaluator for Triton launches")
        if evaluator is not None:
            Recorder(evaluator, kernel).install()
        super().__init__(kernel, evaluator)


def source_file(fn: Any) -> str:
    """File in which a jitted function was written."""
    return inspect.getsourcefile(inspect.unwrap(fn)) or ""
