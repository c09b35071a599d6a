"""What the façade has no answer for: CUDA graphs, memory pools, states of the device. Whoever asks is told ``Unsupported``,
with the name and the line, so that a verdict stays open instead of a kernel being blamed for the machine it is checked on.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from ...errors import Unsupported

DEVICE_ONLY = ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle", "MemPool", "use_mem_pool",
               "GreenContext", "CUDAPluggableAllocator", "ExternalStream")  # fmt: skip
"""Names of ``torch.cuda`` that mean nothing without a device."""
NO_CUDA = re.compile(
    r"not compiled with (CUDA|cuda)|dummy base class|no NVIDIA driver|NVTX functions not|ATen_cuda|libcuda"
)
WHOLE = "torch.cuda itself"
OURS = (str(Path(torch.__file__).parent), str(Path(__file__).parent / "_facade"))


class Missing(Unsupported, RuntimeError):
    """Also a RuntimeError, as torch raises one: code that is prepared for that stays so."""

    tilewright_kind = "unsupported"


def missing(name: str) -> Missing:
    """``name`` was asked for, on the line nearest to here that is neither torch's nor ours."""
    return Missing(f"'{name}' needs a GPU", where=_asker(),
                   remedy="check on a machine with one: --device cuda")  # fmt: skip


def _asker() -> str | None:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and (file := frame.f_code.co_filename).startswith((*OURS, "<frozen")):
        frame = frame.f_back
    return None if frame is None else f"{Path(file).name}:{frame.f_lineno}"


def answers(known: set[str]) -> Iterator[tuple[str, Any]]:
    """Names of ``torch.cuda`` that are not ``known``, and what stands in for them."""
    for name, value in list(vars(torch.cuda).items()):
        if name in DEVICE_ONLY:
            yield name, _class(name, value) if isinstance(value, type) else _refusing(name, value)
        elif name not in known and not name.startswith("_") and _own(value):
            yield name, _translated(name, value)
    yield "_lazy_init", _refusing("_lazy_init", torch.cuda._lazy_init, WHOLE)


def _own(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__.startswith("torch.cuda")


def _class(name: str, real: type) -> type:
    """May be named, inherited from and asked for with ``isinstance``; may not be made."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise missing(f"torch.cuda.{name}")

    return type(name, (real,), {"__new__": new, "__module__": real.__module__, "__doc__": real.__doc__})


def _refusing(name: str, real: Callable[..., Any], said: str = "") -> Callable[..., Any]:
    @functools.wraps(real)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise missing(said or f"torch.cuda.{name}")

    return refuse


def _translated(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself; that this machine has no CUDA is said as ours."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return real(*args, **kwargs)
        except (AssertionError, RuntimeError) as e:
            if not NO_CUDA.search(str(e)) and not (isinstance(e, Missing) and WHOLE in e.what):
                raise
        raise missing(f"torch.cuda.{name}")

    return call


def install(known: set[str]) -> None:
    """Put the stand-ins up in this process, for good. ``known``: names that the façade answers."""
    for name, value in answers(known):
        setattr(torch.cuda, name, value)
    for name in ("mark", "range_push", "range_pop"):  # notes for a profiler, which nobody reads here
        setattr(torch.cuda.nvtx, name, _noted(name))


def _noted(name: str) -> Callable[..., int]:
    def note(*args: Any, **kwargs: Any) -> int:
        return 0

    note.__name__ = name
    return note
