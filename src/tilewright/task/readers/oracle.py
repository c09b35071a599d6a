"""Running a reference as the float64 oracle, although its text says ``.float()`` or ``dtype=torch.float16``.

Two modes, since neither sees all: a function mode sees Python numbers before they are rounded
(``torch.tensor(0.1, dtype=torch.float32)``), a dispatch mode sees casts made inside of torch's own Python and C++.
float8 casts are left alone: there the rounding is the point.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...errors import Unsupported
from ..dispatch import DispatchMode

_NARROW = frozenset({torch.float32, torch.float16, torch.bfloat16})
_COMPLEX = frozenset({torch.complex64, torch.complex32})
_LEGACY = {"torch.FloatTensor", "torch.HalfTensor", "torch.BFloat16Tensor"}


def _widen(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        if value in _NARROW:
            return torch.float64
        return torch.complex128 if value in _COMPLEX else value
    return torch.float64 if isinstance(value, str) and value in _LEGACY else value


class _WidenFunctions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.view and any(isinstance(a, torch.dtype) for a in (*args[1:], *kwargs.values())):
            return func(*args, **kwargs)
        return func(*(_widen(a) for a in args), **{k: _widen(v) for k, v in kwargs.items()})


class _WidenOps(DispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten.view.dtype:
            raise Unsupported(
                f"the reference reinterprets bits ({args[0].dtype} as {args[1]}), which has no float64 counterpart",
                remedy="give the float64 oracle as arithmetic, or compare in the given dtype",
            )
        return func(*(_widen(a) for a in args), **{k: _widen(v) for k, v in kwargs.items()})


@contextmanager
def widened(dtype: torch.dtype | None) -> Iterator[None]:
    """Within: nothing is rounded below float64, if ``dtype`` is float64; else nothing changes."""
    if dtype is not torch.float64:
        yield
        return
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _WidenOps(), _WidenFunctions():
            yield
    finally:
        torch.set_default_dtype(before)


def as_dtype(value: Any, dtype: torch.dtype | None) -> Any:
    """A float tensor (not float8) in ``dtype``; anything else as it is."""
    if dtype is None or not isinstance(value, torch.Tensor):
        return value
    if value.dtype in _NARROW or value.dtype is torch.float64:
        return value.to(dtype)
    return value.to(torch.complex128) if dtype is torch.float64 and value.dtype in _COMPLEX else value


def in_dtype(value: Any, name: str | None) -> Any:
    """A float tensor in the float dtype that a workload asks for; anything else as it is."""
    if name is None or not isinstance(value, torch.Tensor) or value.dtype not in _NARROW | {torch.float64}:
        return value
    dtype = getattr(torch, name)
    return value.to(dtype) if dtype.is_floating_point else value
