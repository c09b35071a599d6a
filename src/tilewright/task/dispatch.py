"""Dispatch modes that cost nothing where nothing is compiled.

torch keeps its compiler out of the code of a dispatch mode by a wrapper that imports the compiler (a second) on the first
operation. Where the compiler was never imported there is nothing to keep out, so the wrapper is passed by until it was.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A ``TorchDispatchMode`` whose ``__torch_dispatch__`` does not import ``torch._dynamo``."""

    def __init_subclass__(cls, **options: Any) -> None:
        raw = cls.__dict__.get("__torch_dispatch__")
        super().__init_subclass__(**options)
        wrapped = cls.__dict__.get("__torch_dispatch__")
        if raw is not None and wrapped is not None and wrapped is not raw:
            cls.__torch_dispatch__ = unless_compiling(raw, wrapped)  # type: ignore[method-assign]


def unless_compiling(raw: Callable[..., Any], wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """``wrapped`` where torch's compiler was imported, else ``raw``."""

    @functools.wraps(raw)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        return (wrapped if "torch._dynamo" in sys.modules else raw)(*args, **kwargs)

    return dispatch
