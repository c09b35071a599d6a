"""Special values planted into drawn inputs: NaN, infinities, zeros of both signs, subnormals, extremes."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..task.tensors import TensorSpec


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
    top = torch.finfo(x.dtype).max
    return torch.where(_some(x, g), torch.full_like(x, top / 4), x)


SPECIALS: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "nan": _set(float("nan")), "inf": _set(float("inf")), "-inf": _set(float("-inf")), "-0": _set(-0.0),
    "-inf row": _row(float("-inf")), "-inf prefix": _prefix, "inf row": _row(float("inf")), "nan row": _row(float("nan")),
    "zeros": lambda x, g: torch.zeros_like(x), "subnormal": _subnormal, "extreme": _extreme,
}  # fmt: skip


def plant(name: str, x: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """``x`` with special values; other than float tensors, and values whose domain excludes them, stay as they are."""
    if not x.is_floating_point() or spec.values.kind in ("probabilities", "log_probabilities", "permutation", "sorted"):
        return x
    return SPECIALS[name](x, g)
