"""What a launch touched, as data for the launch log: who wrote which elements, what was read, what was rounded."""

from __future__ import annotations

import base64
from typing import Any

import torch

from ...ir.records import Result
from .transport import Bundle

SHOWN = 64
MASKED = 1 << 18


def footprint(r: Result, bundle: Bundle) -> dict[str, Any]:
    """``writes``: by argument, see ``writes``. ``accesses``: totals of each load and store. ``ledger``: roundings and
    dots. ``waits``: programs wait for each other; ``synchronises``: they may order themselves by atomics."""
    return {
        "writes": writes(r, bundle),
        "accesses": [vars(a) for a in r.accesses[:SHOWN]],
        "ledger": {
            "casts": [[*key, n] for key, n in list(r.ledger.casts.items())[:SHOWN]],
            "dots": [[*key, n] for key, n in list(r.ledger.dots.items())[:SHOWN]],
            "constants": [[*key, e] for key, e in list(r.ledger.constants.items())[:SHOWN]],
        },
        "waits": r.sequential,
        "synchronises": r.synchronises,
        "unreleased": list(r.unreleased),
        "uninitialised": [vars(u) for u in r.uninitialised[:SHOWN]],
        "launched": r.programs,
    }


def writes(r: Result, bundle: Bundle) -> dict[str, dict[str, Any]]:
    """Of each storage that was written, under its first argument's name: ``size`` in elements and of how many bytes
    each, how many were ``written`` (atomics included), by several programs (``shared``), only by atomics (``atomic``),
    and which: ``mask``, one bit an element (left out of large ones)."""
    out: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for name, w in r.writes.items():
        entry = bundle.head["tensors"].get(name)
        if entry is None or id(w) in seen:
            continue
        seen.add(id(w))
        by_atomic = w.atomic != 0
        touched = (w.count > 0) | by_atomic
        total = int(touched.sum())
        if not total:
            continue
        out[name] = {
            "size": len(touched),
            "itemsize": getattr(torch, entry["dtype"]).itemsize,
            "written": total,
            "shared": int((w.program == -1).sum()),
            "atomic": int((by_atomic & (w.count == 0)).sum()),
        }
        if total < len(touched) <= MASKED:
            out[name]["mask"] = pack(touched)
    return out


def pack(mask: torch.Tensor) -> str:
    """A bool tensor as text."""
    padded = torch.zeros(-(-len(mask) // 8) * 8, dtype=torch.uint8)
    padded[: len(mask)] = mask
    powers = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8)
    return base64.b64encode((padded.view(-1, 8) * powers).sum(1).to(torch.uint8).numpy().tobytes()).decode()


def unpack(text: str, size: int) -> torch.Tensor:
    """The bool tensor that ``pack`` was given."""
    raw = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
    powers = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8)
    return (raw.unsqueeze(1) & powers).ne(0).reshape(-1)[:size]
