"""Layouts: the same values in other strides. Each function takes a contiguous tensor and returns an equal view of new
memory, or None where the layout makes no difference to this shape."""

from __future__ import annotations

from collections.abc import Callable

import torch

NAN_BYTE = 0xFF
LARGE = 3e4  # finite in every float type of two bytes and more


def _poisoned(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """Fresh memory full of NaN (integers: -1), so that a read outside the view shows."""
    t = torch.empty(shape, dtype=like.dtype)
    raw = t.untyped_storage()
    if raw.nbytes():
        torch.empty(0, dtype=torch.uint8).set_(raw).fill_(1 if like.dtype is torch.bool else NAN_BYTE)
    return t


def transposed(x: torch.Tensor) -> torch.Tensor | None:
    """The last two axes swapped in memory."""
    if x.dim() < 2 or x.shape[-1] <= 1 or x.shape[-2] <= 1:
        return None
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def sliced(x: torch.Tensor) -> torch.Tensor | None:
    """A block of a wider tensor: row stride larger than the row, offset not zero."""
    if x.dim() < 2 or x.numel() == 0:
        return None
    wide = _poisoned((*x.shape[:-2], x.shape[-2] + 2, x.shape[-1] + 3), x)
    view = wide[..., 1:-1, 1:-2]
    view.copy_(x)
    return view


def stepped(x: torch.Tensor) -> torch.Tensor | None:
    """Every second element along the last axis: last stride 2."""
    if x.dim() < 1 or x.shape[-1] <= 1:
        return None
    view = _poisoned((*x.shape[:-1], 2 * x.shape[-1]), x)[..., ::2]
    view.copy_(x)
    return view


def offset(x: torch.Tensor) -> torch.Tensor | None:
    """Contiguous, but one element into its storage: not aligned to 16 bytes."""
    if x.dim() < 1 or x.numel() == 0:
        return None
    view = _poisoned((x.numel() + 1,), x)[1:].view(x.shape)
    view.copy_(x)
    return view


def expanded(x: torch.Tensor) -> torch.Tensor | None:
    """Stride 0 along the first axis longer than one: all its slices become the first (values change)."""
    axis = next((i for i, n in enumerate(x.shape) if n > 1), None)
    if axis is None or x.dim() < 2:
        return None
    return x.narrow(axis, 0, 1).clone().expand(x.shape)


def reversed_axes(x: torch.Tensor) -> torch.Tensor | None:
    """All axes in reverse order in memory (column-major)."""
    if x.dim() < 3 or sum(n > 1 for n in x.shape) < 2:
        return None
    order = list(range(x.dim()))[::-1]
    return x.permute(order).contiguous().permute(order)


def crowded(x: torch.Tensor) -> torch.Tensor | None:
    """As ``stepped``, with large numbers of both signs between: a maximum passes over NaN, and not over these."""
    if x.dim() < 1 or x.shape[-1] <= 1 or not x.is_floating_point() or x.itemsize == 1:
        return None
    wide = torch.full((*x.shape[:-1], x.shape[-1], 2), LARGE, dtype=x.dtype)
    wide[..., ::2, 1] = -LARGE
    view = wide.flatten(-2)[..., ::2]
    view.copy_(x)
    return view


MIXED = "mixed"
"""Not a layout of its own: every input in another one."""

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "transposed": transposed, "sliced": sliced, "stepped": stepped, "offset": offset, "expanded": expanded,
    "reversed": reversed_axes, "crowded": crowded,
}  # fmt: skip
