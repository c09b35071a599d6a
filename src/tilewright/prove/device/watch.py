"""Watch a call on a device: fresh buffers are poisoned and lie between guard zones."""

from __future__ import annotations

from typing import Any

import torch

from ..child import watch
from .memory import Zones, bytes_of

FRESH = watch._FRESH
FILLED = frozenset({"aten.zeros.default", "aten.ones.default", "aten.full.default", "aten.zeros_like.default",
                    "aten.ones_like.default", "aten.full_like.default", "aten.new_zeros.default",
                    "aten.new_ones.default", "aten.new_full.default"})  # fmt: skip
MOST_GUARDED = 1 << 30  # bytes; larger buffers get no zones


class DeviceWatch(watch.Watch):
    """Context around one call. ``guard``: the byte of the zones around fresh buffers; None for no zones."""

    def __init__(
        self, device: torch.device, *, poison: int | None = None, guard: int | None = None, observe: bool = False
    ):
        super().__init__(poison=None, observe=observe)
        self.target, self.fresh_byte = device, poison
        self.zones = None if guard is None else Zones(guard)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        name = str(func)
        if (
            not (name in FRESH or name in FILLED)
            or type(out) is not torch.Tensor
            or out.device.type != self.target.type
        ):
            return out
        if name in FRESH and self.fresh_byte is not None:
            fill(out, self.fresh_byte)
        nbytes = out.untyped_storage().nbytes()
        if self.zones is None or name == "aten.resize_.default" or not 0 < nbytes <= MOST_GUARDED:
            return out
        return self.zones.wrap(out)


def fill(t: torch.Tensor, byte: int) -> None:
    """Fill a tensor's storage with one byte (booleans with True)."""
    if t.untyped_storage().nbytes():
        bytes_of(t).fill_(1 if t.dtype is torch.bool else byte)
