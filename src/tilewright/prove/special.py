"""Special values planted into drawn inputs: NaN, infinities, zeros of both signs, subnormals, extremes; and values
that make a long sum hard."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch

from ..task.tensors import TensorSpec

_NAMES = re.compile(r"[A-Za-z_]\w*")


def _some(x: torch.Tensor, g: torch.Generator, share: float = 0.05) -> torch.Tensor:
    """A mask over a few elements, at least one."""
    mask = torch.rand(x.shape, generator=g) < share
    if x.numel():
        mask.view(-1)[int(torch.randint(0, x.numel(), (1,), generator=g))] = True
    return mask


def _set(value: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    return lambda x, g: torch.where(_some(x, g), torch.full_like(x, value), x)


def _row(value: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    def plant(x: torch.Tensor, g: torch.Generator) -> torch.Tensor:
        x = x.clone()
        if x.dim() and x.shape[0]:
            x[int(torch.randint(0, x.shape[0], (1,), generator=g))] = value
        return x

    return plant


def _prefix(x: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """-Inf over the first half of the last axis: a masked prefix longer than a tile."""
    x = x.clone()
    if x.dim():
        x[..., : max(x.shape[-1] // 2, 1)] = float("-inf")
    return x


def _subnormal(x: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    tiny = torch.finfo(x.dtype).smallest_normal
    return torch.where(_some(x, g, 0.5), torch.full_like(x, tiny / 4), x)


def _extreme(x: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """Near the largest number of a narrow dtype; of a wide one, as large as a sum of squares in float32 bears."""
    top = torch.finfo(x.dtype).max
    return torch.where(_some(x, g), torch.full_like(x, top / 4 if top < 1e6 else float(top) ** 0.5 / 64), x)


SPECIALS: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "nan": _set(float("nan")), "inf": _set(float("inf")), "-inf": _set(float("-inf")), "-inf row": _row(float("-inf")),
    "-inf prefix": _prefix, "nan row": _row(float("nan")), "inf row": _row(float("inf")), "-0": _set(-0.0),
    "zeros": lambda x, g: torch.zeros_like(x), "extreme": _extreme, "subnormal": _subnormal,
}  # fmt: skip


def _at(value: float, x: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """A value of either sign in a third of the elements: the edge of a branch."""
    sign = torch.where(torch.rand(x.shape, generator=g) < 0.5, -1.0, 1.0).to(x.dtype)
    return torch.where(_some(x, g, 0.3), sign * value, x)


def _positive(x: torch.Tensor, g: torch.Generator, axis: int, first: bool) -> torch.Tensor:
    return torch.rand(x.shape, generator=g, dtype=torch.float64) + 0.5


def _cancel(x: torch.Tensor, g: torch.Generator, axis: int, first: bool) -> torch.Tensor:
    """``[y, -y + small]`` along the axis; the other tensors repeat there, so that products cancel as well."""
    half = x.shape[axis] // 2
    y = torch.randn(x.shape, generator=g, dtype=torch.float64)
    small = 1e-3 * torch.randn(x.shape, generator=g, dtype=torch.float64).narrow(axis, 0, half) if first else 0.0
    mirrored = y.narrow(axis, 0, half) * (-1 if first else 1) + small
    y.narrow(axis, half, half).copy_(mirrored)
    return y


def _large_mean(x: torch.Tensor, g: torch.Generator, axis: int, first: bool) -> torch.Tensor:
    """Mean 1000 (less where the sum would leave the dtype) with unit noise; the other tensors just positive."""
    if not first:
        return _positive(x, g, axis, first)
    mean = min(1e3, torch.finfo(x.dtype).max / (4.0 * max(x.shape[axis], 1)))
    return mean + torch.randn(x.shape, generator=g, dtype=torch.float64)


STRUCTURED: dict[str, Callable[[torch.Tensor, torch.Generator, int, bool], torch.Tensor]] = {
    "positive": _positive, "cancel": _cancel, "large mean": _large_mean,
}  # fmt: skip
_OWN = ("probabilities", "log_probabilities", "permutation", "sorted")


def plant(name: str, x: torch.Tensor, spec: TensorSpec, g: torch.Generator, *, first: bool = True,
          bounded: bool = False) -> torch.Tensor:  # fmt: skip
    """``x`` with special values; other than float tensors, and values whose domain excludes them, stay as they are.

    ``name``: a key of ``SPECIALS``; ``at <number>``: that number in many places; or
    ``<key of STRUCTURED>@<dim>``: values made for a long sum along that dim.
    ``first``: whether this is the task's first tensor (cancelling pairs need one factor that changes sign and one that
    does not). ``bounded``: the bounds of uniform values are a domain.
    """
    if not x.is_floating_point() or spec.values.kind in _OWN:
        return x
    if name.startswith("at "):
        return _at(float(name.removeprefix("at ")), x, g)
    key, _, dim = name.partition("@")
    if key in SPECIALS:
        return SPECIALS[key](x, g)
    if spec.values.kind in ("custom", "constant") or x.dim() == 0:
        return x
    made = STRUCTURED[key](x, g, axis_of(spec, dim), first)
    low, high = spec.values.low, spec.values.high
    if bounded and spec.values.kind == "uniform" and not isinstance(low, str) and not isinstance(high, str):
        made = made.clamp(low, high)
    return made.to(x.dtype)


def dims_of(spec: TensorSpec) -> set[str]:
    """The dims that a tensor's shape names."""
    return {d for entry in spec.shape if isinstance(entry, str) for d in _NAMES.findall(entry)}


def axis_of(spec: TensorSpec, dim: str) -> int:
    """The axis of a tensor that has a dim's size: the last whose entry names it; else the last axis."""
    named = [i for i, entry in enumerate(spec.shape) if isinstance(entry, str) and dim in _NAMES.findall(entry)]
    return named[-1] if dim and named else -1
