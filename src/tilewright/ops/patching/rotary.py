"""Rotary embeddings: functions ``f(q, k, cos, sin)`` that forwards call by a global name, found by what they compute.

The module gets a copy of its forward whose global name leads to the operator; the function itself, which other models may
share, stays as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import torch

from ..rope.api import rope
from . import probe

BATCH, HEADS, GROUPS, LENGTH, HALF = 2, 4, 2, 5, 3


@dataclass(frozen=True)
class Layout:
    """How a model lays out its tables and heads. ``dims``: of a table, ``(batch, length, angles)`` if 3."""

    twice: bool
    dims: int
    heads_first: bool
    interleaved: bool

    def table(self, angles: torch.Tensor) -> torch.Tensor:
        """A table as the model has it, from (batch, length, half)."""
        if self.twice:
            angles = angles.repeat_interleave(2, -1) if self.interleaved else torch.cat((angles, angles), -1)
        if self.dims == 2:
            return angles[0]
        return angles if self.dims == 3 else angles.unsqueeze(1 if self.heads_first else 2)

    def halves(self, t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The two copies of each angle; the same where angles stand there once."""
        if not self.twice:
            return t, t
        return (t[..., 0::2], t[..., 1::2]) if self.interleaved else t.chunk(2, -1)  # type: ignore[return-value]

    def half(self, t: torch.Tensor) -> torch.Tensor:
        """What ``rope`` takes, from a table of the model."""
        t = self.halves(t)[0]
        return t.squeeze(1 if self.heads_first else 2) if self.dims == 4 else t

    def turn(self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
        c, s = self.half(cos), self.half(sin)
        if self.heads_first:
            return rope(q, k, c, s, interleaved=self.interleaved)
        return tuple(t.transpose(1, 2) for t in rope(q.transpose(1, 2), k.transpose(1, 2), c, s,
                                                     interleaved=self.interleaved))  # fmt: skip


LAYOUTS = [Layout(t, d, h, i) for i in (False, True) for h in (True, False) for t in (True, False) for d in (3, 2, 4)]


@dataclass(frozen=True)
class Found:
    """Global name, function, layout, and whether tables of another dtype leave the dtype of ``q``."""

    name: str
    function: Callable[..., Any]
    layout: Layout
    mixed: bool

    def __call__(self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *rest: Any,
                 **named: Any) -> Any:  # fmt: skip
        if rest or named or not self.takes(q, k, cos, sin):
            return self.function(q, k, cos, sin, *rest, **named)
        return self.layout.turn(q, k, cos, sin)

    def takes(self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> bool:
        """Whether this call is one that the probe stands for."""
        dtypes = q.dtype == k.dtype and cos.dtype == sin.dtype and (self.mixed or cos.dtype == q.dtype)
        angles = 2 if not self.layout.twice else 1
        shapes = q.dim() == 4 and cos.dim() == self.layout.dims and cos.shape[-1] * angles == q.shape[-1]
        return dtypes and shapes and not (cos.requires_grad or sin.requires_grad) and q.is_floating_point()


def innermost(function: Any) -> Any:
    """The function that decorators wrap."""
    return innermost(function.__wrapped__) if hasattr(function, "__wrapped__") else function


def called(module: torch.nn.Module) -> Iterator[tuple[str, FunctionType]]:
    """Python functions that forward calls by a global name and that take four arguments."""
    forward = innermost(type(module).forward)
    if not isinstance(forward, FunctionType):
        return
    for name in forward.__code__.co_names:
        f = forward.__globals__.get(name)
        if isinstance(f, FunctionType) and four(f):
            yield name, f


def four(function: FunctionType) -> bool:
    """Takes four arguments by position, and needs no more."""
    try:
        inspect.signature(function).bind(*[None] * 4)
    except (TypeError, ValueError):
        return False
    return True


def identify(name: str, function: Callable[..., Any]) -> Found | None:
    """Layout of the rotary embedding that ``function`` computes, or None where it computes none."""
    for layout in LAYOUTS:
        given = example(layout, torch.float64)
        try:
            error = _apart(layout.turn, function, given)
        except Exception:  # it is someone's function: whatever it raises, it is no rotary embedding of this layout
            continue
        if error <= probe.bound(torch.float64):
            return Found(name, function, layout, _keeps(function, layout))
    return None


def example(layout: Layout, dtype: torch.dtype, device: Any = "cpu", half: int = HALF) -> list[torch.Tensor]:
    """Queries, keys and tables; each token and sequence has angles of its own."""
    angles = probe.seeded((BATCH, LENGTH, half), 4, torch.float64)
    q, k = (probe.seeded((BATCH, n, LENGTH, 2 * half), n, torch.float64) for n in (HEADS, GROUPS))
    if not layout.heads_first:
        q, k = q.transpose(1, 2).contiguous(), k.transpose(1, 2).contiguous()
    return [t.to(device=device, dtype=dtype) for t in (q, k, layout.table(angles.cos()), layout.table(angles.sin()))]


def _apart(new: Any, old: Any, given: list[torch.Tensor]) -> float:
    q, k, cos, sin = given
    return probe.apart(lambda a, b: tuple(new(a, b, cos, sin)), lambda a, b: tuple(old(a, b, cos, sin)), [q, k])


def _keeps(function: Callable[..., Any], layout: Layout) -> bool:
    q, k, cos, sin = example(layout, torch.float32)
    results = function(q.bfloat16(), k.bfloat16(), cos, sin)
    return all(t.dtype == torch.bfloat16 for t in results)


def verify(found: Found, dtype: torch.dtype, device: Any, seen: list[tuple[torch.Tensor, ...]]) -> float:
    """Old and new function in the model's dtype and device; and in the model's own tables each angle stands twice."""
    if not seen:
        raise probe.Unequal("its tables were not seen, since no example call of the model reached it")
    for q, k, cos, sin in seen:
        if not found.takes(q, k, cos, sin):
            raise probe.Unequal(f"the model calls it with q {tuple(q.shape)}, cos {tuple(cos.shape)}, {cos.dtype}")
        if not all(torch.equal(*found.layout.halves(t)) for t in (cos, sin)):
            raise probe.Unequal("the two copies of an angle in its tables differ")
    half = seen[0][0].shape[-1] // 2
    given = example(found.layout, dtype, device, half)
    return probe.equal("rope", _apart(found, found.function, given), dtype)


def redirected(function: Any, name: str, new: Any) -> Any:
    """A copy of ``function``, through its decorators, for which the global ``name`` is ``new``."""
    if hasattr(function, "__wrapped__"):
        inner, copied = function.__wrapped__, redirected(function.__wrapped__, name, new)
        cells = tuple(CellType(copied) if c.cell_contents is inner else c for c in function.__closure__ or ())
        if all(c.cell_contents is not copied for c in cells):
            raise probe.Unequal(f"a decorator of its forward hides the function that calls {name}")
        made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
        made.__wrapped__ = copied  # type: ignore[attr-defined]
    else:
        # Without __name__ torch.compile reads names here, and not in the module of that name.
        scope = {k: v for k, v in function.__globals__.items() if k != "__name__"} | {name: new}
        made = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__, made.__module__ = function.__doc__, function.__module__
    made.__annotations__ = dict(getattr(function, "__annotations__", {}))
    return made
