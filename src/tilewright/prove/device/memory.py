"""Buffers on a device: the parent's memory file as a whole, guard zones included, and zones around fresh tensors.

A bundle's file is copied to the device byte by byte, so what lay between guard zones in shared memory lies between them
there. After the call it is copied back, and the parent compares as it does on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..child.transport import Bundle

ZONE = 4096  # bytes on each side of a fresh buffer; a multiple of any alignment that kernels ask for
KEPT_BYTES = 4 << 30


@dataclass
class Arena:
    """A bundle's bytes on the device."""

    bundle_head: dict[str, Any]
    raw: torch.Tensor

    @classmethod
    def upload(cls, bundle: Bundle, device: torch.device) -> Arena:
        """The file's bytes in device memory."""
        raw = torch.empty(bundle.size, dtype=torch.uint8, device=device)
        arena = cls(bundle.head, raw)
        arena.fill_from(bundle)
        return arena

    def fill_from(self, bundle: Bundle) -> None:
        """The file's bytes again, at the same addresses; waits until they are there."""
        if bundle.size:
            self.raw.copy_(bundle.bytes())

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors, each storage as large as it was and no larger."""
        storages: dict[int, Any] = {}
        return {n: self._tensor(e, storages) for n, e in self.bundle_head["tensors"].items()}

    def _tensor(self, e: dict[str, Any], storages: dict[int, Any]) -> torch.Tensor:
        s = self.bundle_head["storages"][e["storage"]]
        dtype = getattr(torch, e["dtype"])
        if not s["nbytes"]:
            return torch.empty(e["shape"], dtype=dtype, device=self.raw.device)
        if e["storage"] not in storages:
            storages[e["storage"]] = storage_at(self.raw, s["begin"], s["nbytes"])
        empty = torch.empty(0, dtype=dtype, device=self.raw.device)
        return empty.set_(storages[e["storage"]], e["offset"], e["shape"], e["strides"])

    def download(self, bundle: Bundle) -> None:
        """Bytes that changed on the device, back into the file."""
        if bundle.size:
            bundle.bytes().copy_(self.raw)


def storage_at(raw: torch.Tensor, begin: int, nbytes: int) -> Any:
    """A storage over part of a buffer. The buffer must live as long as the storage is used."""
    if raw.device.type == "cpu":
        return torch.frombuffer(raw.numpy(), dtype=torch.uint8, count=nbytes, offset=begin).untyped_storage()
    return torch._C._construct_storage_from_data_pointer(raw.data_ptr() + begin, raw.device, nbytes)


class Kept:
    """Arenas of the last calls, as a candidate may hold on to their tensors."""

    def __init__(self) -> None:
        self.arenas: list[Arena] = []

    def add(self, arena: Arena) -> None:
        self.arenas.append(arena)
        while len(self.arenas) > 1 and sum(a.raw.numel() for a in self.arenas) > KEPT_BYTES:
            self.arenas.pop(0)


class Zones:
    """Guard zones around tensors that were allocated during a call."""

    def __init__(self, byte: int):
        self.byte = byte
        self.held: list[tuple[torch.Tensor, int, torch.Tensor]] = []

    def wrap(self, t: torch.Tensor) -> torch.Tensor:
        """A tensor like ``t`` (its bytes copied) in a buffer with a zone on each side."""
        nbytes = t.untyped_storage().nbytes()
        room = -(-nbytes // 256) * 256
        raw = torch.empty(room + 2 * ZONE, dtype=torch.uint8, device=t.device)
        raw[:ZONE] = self.byte
        raw[ZONE + nbytes :] = self.byte
        raw[ZONE : ZONE + nbytes] = bytes_of(t)
        first = ZONE // t.element_size() + t.storage_offset()
        made = torch.empty(0, dtype=t.dtype, device=t.device).set_(raw.untyped_storage(), first, t.shape, t.stride())
        self.held.append((raw, nbytes, made))
        return made

    def damage(self, outputs: dict[str, torch.Tensor]) -> list[tuple[str, int]]:
        """Zones that were written: ``before NAME`` or ``after NAME``, and how many bytes."""
        names = {o.untyped_storage().data_ptr(): n for n, o in reversed(outputs.items())}
        found = []
        for raw, nbytes, made in self.held:
            shape = tuple(made.shape)
            name = names.get(raw.untyped_storage().data_ptr(), f"a buffer of shape {shape}")
            for side, part in (("before", raw[:ZONE]), ("after", raw[ZONE + nbytes :])):
                if count := int((part != self.byte).sum()):
                    found.append((f"{side} {name}", count))
        return found


def bytes_of(t: torch.Tensor) -> torch.Tensor:
    """All bytes of a tensor's storage."""
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage())
