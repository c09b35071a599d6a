"""Logits that are formed when someone looks at them; cross entropy doesn't, and gets the fused loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F

from ..linear_cross_entropy.api import linear_cross_entropy


@dataclass(eq=False)
class Source:
    """One call of the head. ``used``: a loss was taken without forming logits. ``form`` gives the logits of an input."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    form: Callable[[torch.Tensor], torch.Tensor]
    used: bool = False


@dataclass(eq=False)
class Pending:
    """``source.form(x)``, then ``cap * tanh(. / cap)`` and a cast: what models do between head and loss.

    Anything else that is done to it forms the logits and goes on with them. ``stage``: how far a soft cap has come.
    """

    source: Source
    x: torch.Tensor
    dtype: torch.dtype
    cap: float = 0.0
    stage: str = "plain"
    _formed: list[torch.Tensor] = field(default_factory=list)

    # --- what a tensor answers ---------------------------------------------------------------------------------

    @property
    def classes(self) -> int:
        return self.source.weight.shape[0]

    @property
    def shape(self) -> torch.Size:
        return torch.Size((*self.x.shape[:-1], self.classes))

    @property
    def device(self) -> torch.device:
        return self.x.device

    @property
    def ndim(self) -> int:
        return self.x.dim()

    @property
    def requires_grad(self) -> bool:
        return True

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self.x.dim()

    def numel(self) -> int:
        return math.prod(self.shape)

    # --- what leaves the logits unformed ------------------------------------------------------------------------

    def _new(self, **changed: Any) -> Pending:
        return replace(self, _formed=[], **changed)

    def float(self) -> Pending:
        return self._new(dtype=torch.float32)

    def contiguous(self) -> Pending:
        return self

    def to(self, *given: Any, **named: Any) -> Any:
        """A cast to float32, or to where and what it is, waits; another one forms the logits."""
        whole = [*given, *named.values()]
        if len(whole) == 1 and (whole[0] in (torch.float32, self.dtype) or whole[0] == self.device):
            return self._new(dtype=whole[0]) if isinstance(whole[0], torch.dtype) else self
        return self.formed().to(*given, **named)

    def view(self, *sizes: Any) -> Any:
        """Other leading dims wait; what touches the classes does not."""
        flat = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
        rows = math.prod(self.shape[:-1])
        if flat and flat[-1] in (self.classes, -1) and math.prod(flat[:-1]) == (rows if -1 not in flat[:-1] else -rows):
            return self._new(x=self.x.reshape(*flat[:-1], self.x.shape[-1]))
        if len(flat) == 2 and flat[0] == -1 and flat[1] == self.classes:
            return self._new(x=self.x.reshape(rows, self.x.shape[-1]))
        return self.formed().reshape(*flat)

    reshape = view

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Any:
        if end_dim % self.dim() < self.dim() - 1:
            return self._new(x=self.x.flatten(start_dim, end_dim))
        return self.formed().flatten(start_dim, end_dim)

    def __getitem__(self, index: Any) -> Any:
        """Slices of leading dims wait."""
        parts = list(index) if isinstance(index, tuple) else [index]
        if ... in [p for p in parts if p is ...]:
            at = next(i for i, p in enumerate(parts) if p is ...)
            parts[at : at + 1] = [slice(None)] * (self.dim() - len(parts) + 1)
        sliced = len(parts) <= self.dim() and all(isinstance(p, slice) for p in parts)
        if sliced and (len(parts) < self.dim() or parts[-1] == slice(None)):
            return self._new(x=self.x[tuple(parts[: self.dim() - 1])])
        return self.formed()[index]

    def __truediv__(self, other: Any) -> Any:
        if self.stage == "plain" and not self.cap and isinstance(other, int | float) and other > 0:
            return self._new(cap=float(other), stage="over")
        return self.formed() / other

    def tanh(self) -> Any:
        return self._new(stage="bent") if self.stage == "over" else self.formed().tanh()

    def __mul__(self, other: Any) -> Any:
        if self.stage == "bent" and isinstance(other, int | float) and float(other) == self.cap:
            return self._new(stage="plain")
        return self.formed() * other

    __rmul__ = __mul__

    # --- forming -----------------------------------------------------------------------------------------------

    def formed(self) -> torch.Tensor:
        """The logits, as the model would have had them."""
        if not self._formed:
            logits = self.source.form(self.x)
            if self.cap:
                logits = logits / self.cap
                logits = logits if self.stage == "over" else torch.tanh(logits)
                logits = logits * self.cap if self.stage == "plain" else logits
            self._formed.append(logits.to(self.dtype))
        return self._formed[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in self.__dataclass_fields__:
            raise AttributeError(name)
        return getattr(self.formed(), name)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if function is F.cross_entropy and isinstance(args[0] if args else given.get("input"), Pending):
            return cross_entropy(*args, **given)
        if function is torch.tanh and args:
            return args[0].tanh()
        return function(*made(args), **made(given))


def made(value: Any) -> Any:
    """``value`` with all logits formed."""
    if isinstance(value, Pending):
        return value.formed()
    if isinstance(value, dict):
        return {k: made(v) for k, v in value.items()}
    return type(value)(made(v) for v in value) if type(value) in (tuple, list) else value


def cross_entropy(input: Pending, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
                  reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0) -> Any:  # fmt: skip
    """``torch.nn.functional.cross_entropy`` of logits that are not there."""
    old = size_average is not None or reduce is not None
    ready = input.stage == "plain" and input.dim() == 2 and target.dim() == 1 and target.dtype == torch.int64
    if old or not ready or target.device != input.device:
        return F.cross_entropy(
            input.formed(), target, weight, size_average, ignore_index, reduce, reduction, label_smoothing
        )
    source = input.source
    source.used = True
    x, w, b = autocast(input.x, source.weight, source.bias)
    loss = linear_cross_entropy(x, w, target, b, class_weight=weight, ignore_index=ignore_index, softcap=input.cap,
                                label_smoothing=label_smoothing, reduction=reduction)  # fmt: skip
    return loss.to(input.dtype)


def autocast(*tensors: torch.Tensor | None) -> list[Any]:
    """Tensors in the dtype in which a linear layer would take them here."""
    device = next(t for t in tensors if t is not None).device.type
    if not torch.is_autocast_enabled(device):
        return list(tensors)
    dtype = torch.get_autocast_dtype(device)
    return [t if t is None else t.to(dtype) for t in tensors]


def _forwarded(name: str) -> Any:
    def method(self: Pending, *given: Any) -> Any:
        return getattr(self.formed(), name)(*made(given))

    return method


for _name in ("add", "radd", "sub", "rsub", "neg", "pow", "matmul", "eq", "ne", "lt", "le", "gt", "ge", "len", "iter", "abs",
              "rtruediv"):  # fmt: skip
    setattr(Pending, f"__{_name}__", _forwarded(f"__{_name}__"))
