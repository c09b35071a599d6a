"""Tensors between parent and child: a message (``messages.py``) whose descriptors are bundles.

A ``Bundle`` is a memory file that holds storages, each between two guard zones, and a description of tensors over
them. Nothing is pickled, so a message can at worst be malformed: that is a ``ProtocolFault``, blamed on the sender.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Mapping
from typing import Any

import torch

from .messages import ProtocolFault, Timeout, close, receive, send

__all__ = ["GUARD", "PAGE", "Bundle", "ProtocolFault", "Timeout", "close", "receive", "send", "span"]

PAGE = mmap.PAGESIZE
GUARD = PAGE


# ------------------------------------------------------------------------------------------------------- bundles


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def span(t: torch.Tensor) -> int:
    """Elements from the first to one past the last that a strided tensor touches."""
    if t.numel() == 0:
        return 0
    return 1 + sum((n - 1) * abs(s) for n, s in zip(t.shape, t.stride(), strict=True))


class Bundle:
    """Tensors in a memory file. The side that made it knows every byte, guards included."""

    def __init__(self, fd: int, size: int, head: dict[str, Any]):
        self.fd, self.size, self.head = fd, size, head
        self.map = mmap.mmap(fd, max(size, 1)) if size else None

    @classmethod
    def pack(
        cls, tensors: Mapping[str, torch.Tensor], *, guard: int = 0xFF, place: str = "start", whole: bool = True
    ) -> Bundle:
        """Copy ``tensors`` in. Each storage (tensors that share one keep sharing it) lies between guard zones filled
        with the byte ``guard`` (0xFF: NaN in every float format, -1 in integers). ``place``: whether the data begins
        right after the first zone (``start``) or ends right before the second (``end``). ``whole=False`` packs
        only the span that a tensor touches."""
        storages: dict[int, dict[str, Any]] = {}
        entries: dict[str, dict[str, Any]] = {}
        position = GUARD
        pieces: list[tuple[int, torch.Tensor]] = []
        for name, t in tensors.items():
            t = t.detach()
            if whole:
                raw = t.untyped_storage()
                key, first = (raw.data_ptr() or id(t)), 0
                data = (
                    torch.empty(0, dtype=torch.uint8).set_(raw) if raw.nbytes() else torch.empty(0, dtype=torch.uint8)
                )
            else:
                key, first = -1 - len(storages), int(t.storage_offset())
                data = torch.empty(0, dtype=torch.uint8)
                if t.numel():
                    begin = first * t.element_size()
                    data = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
                    data = data[begin : begin + span(t) * t.element_size()]
            if key not in storages:
                nbytes = data.numel()
                room = -(-nbytes // PAGE) * PAGE
                begin = position + (room - nbytes if place == "end" else 0)
                storages[key] = {"index": len(storages), "begin": begin, "nbytes": nbytes}
                pieces.append((begin, data))
                position += room + 2 * GUARD  # a zone of its own on each side
            entries[name] = {
                "storage": storages[key]["index"], "dtype": dtype_name(t.dtype), "shape": list(t.shape),
                "strides": list(t.stride()), "offset": t.storage_offset() - first,
            }  # fmt: skip
        fd = os.memfd_create("tw", os.MFD_CLOEXEC)
        size = position if storages else 0
        os.ftruncate(fd, size)
        head = {"storages": sorted(storages.values(), key=lambda s: s["index"]), "tensors": entries, "size": size,
                "guard": guard}  # fmt: skip
        bundle = cls(fd, size, head)
        if bundle.map is not None:
            flat = bundle.bytes()
            flat.fill_(guard)
            for begin, data in pieces:
                if data.numel():
                    flat[begin : begin + data.numel()] = data
        return bundle

    @classmethod
    def open(cls, head: Any, fd: int) -> Bundle:
        """A bundle that came in a message. Everything in ``head`` is checked before use."""
        try:
            size = int(head["size"])
            if size < 0 or os.fstat(fd).st_size < size:
                raise ProtocolFault("bundle is larger than its file")
            for s in head["storages"]:
                if not (s["begin"] >= 0 and s["nbytes"] >= 0 and s["begin"] + s["nbytes"] <= size):
                    raise ProtocolFault("bundle: a storage lies outside the file")
            for e in head["tensors"].values():
                if not 0 <= e["storage"] < len(head["storages"]) or len(e["shape"]) != len(e["strides"]):
                    raise ProtocolFault("bundle: malformed tensor")
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise ProtocolFault(f"bundle: {e!r}") from None
        return cls(fd, size, head)

    def bytes(self) -> torch.Tensor:
        """The whole file as a uint8 tensor over shared memory."""
        if self.map is None:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self.map, dtype=torch.uint8)

    def tensors(self, *, copy: bool = False) -> dict[str, torch.Tensor]:
        """The tensors: over shared memory, or private copies that the other side can no longer change."""
        out: dict[str, torch.Tensor] = {}
        private: dict[int, torch.Tensor] = {}
        for name, e in self.head["tensors"].items():
            s = self.head["storages"][e["storage"]]
            dtype = getattr(torch, e["dtype"], None)
            if not isinstance(dtype, torch.dtype):
                raise ProtocolFault(f"bundle: unknown dtype {e['dtype']!r}")
            if e["storage"] not in private:
                view = self.bytes()[s["begin"] : s["begin"] + s["nbytes"]]
                if copy:
                    private[e["storage"]] = view.clone()
                elif (
                    view.numel()
                ):  # a storage of its own, so that sizes, offsets and data_ptr are those of a plain tensor
                    private[e["storage"]] = torch.frombuffer(self.map, dtype=torch.uint8, count=s["nbytes"],
                                                             offset=s["begin"])  # fmt: skip
                else:
                    private[e["storage"]] = torch.empty(0, dtype=torch.uint8)
            out[name] = _strided(private[e["storage"]], dtype, e)
        return out

    def damage(self, before: torch.Tensor) -> list[tuple[str, int]]:
        """Bytes that changed outside every storage since ``before`` (a copy of ``bytes()``): which tensor's guard zone
        (``after x`` / ``before x``), and how many bytes."""
        changed = self.bytes() != before
        for s in self.head["storages"]:
            changed[s["begin"] : s["begin"] + s["nbytes"]] = False
        if not bool(changed.any()):
            return []
        names = {e["storage"]: n for n, e in reversed(self.head["tensors"].items())}
        found: dict[str, int] = {}
        for at in changed.nonzero().flatten().tolist():
            where = self._zone(at, names)
            found[where] = found.get(where, 0) + 1
        return sorted(found.items())

    def _zone(self, at: int, names: dict[int, str]) -> str:
        nearest = min(
            self.head["storages"], key=lambda s: min(abs(at - s["begin"]), abs(at - s["begin"] - s["nbytes"]))
        )
        return ("before " if at < nearest["begin"] else "after ") + names[nearest["index"]]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)


def _strided(flat: torch.Tensor, dtype: torch.dtype, e: dict[str, Any]) -> torch.Tensor:
    size = torch.empty(0, dtype=dtype).element_size()
    shape, strides, offset = e["shape"], e["strides"], e["offset"]
    if any(not isinstance(v, int) or v < 0 for v in (*shape, *strides, offset)):
        raise ProtocolFault("bundle: negative or non-integer layout")
    touched = 0 if 0 in shape else 1 + offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if touched * size > flat.numel():
        raise ProtocolFault("bundle: a tensor reaches outside its storage")
    if flat.numel() == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.empty(0, dtype=dtype).set_(flat.untyped_storage(), offset, shape, strides)
