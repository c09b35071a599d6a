"""The evaluator's child: runs device kernels for a candidate that lives in another process.

It reads each function from the hashed source file itself and computes the launch; the candidate only ever sees bytes.
The parent sets the mode here, where the candidate can't see it: ``normal``; ``noop`` (launches write nothing);
``perturb`` (what launches write is scaled by 1 + 2**-4, so an output that does not move was not computed by a launch).
"""

from __future__ import annotations

import select
import socket
from typing import Any

import torch

from . import roles, transport
from .engine_interpreter import InterpreterEngine
from .engine_ir import IrEngine
from .transport import Bundle

PERTURB = 1 + 2.0**-4


class Role:
    """Serves the candidate on one socket and the parent on another."""

    def __init__(self, others: list[socket.socket]):
        (self.candidate,) = others
        self.engine: Any = None
        self.mode = "normal"
        self.launches: list[dict[str, Any]] = []
        self.sources: dict[str, str] = {}

    def serve(self, channel: socket.socket) -> int:
        """Until the parent closes its end."""
        open_sockets = [channel, self.candidate]
        while True:
            ready, _, _ = select.select(open_sockets, [], [])
            if channel in ready:
                try:
                    head, fds = transport.receive(channel)
                except transport.ProtocolFault:
                    return 0
                answer, bundles = roles.answer(self, head, fds)
                transport.send(channel, answer, tuple(b.fd for b in bundles))
            elif self.candidate in ready:
                try:
                    head, fds = transport.receive(self.candidate, 60.0)
                    reply = self.launch(head, fds)
                    transport.send(self.candidate, reply)
                except (transport.ProtocolFault, transport.Timeout) as e:
                    open_sockets.remove(self.candidate)
                    self.launches.append({"fault": f"malformed launch record: {e}"})

    def on_start(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """``files``: path and text of the candidate's own source, as the parent read it. ``engine``: ``ir`` or
        ``interpreter``."""
        self.sources = head["files"]
        self.engine = (InterpreterEngine if head.get("engine") == "interpreter" else IrEngine)(self.sources)
        return {"engine": self.engine.name}, []

    def on_mode(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Set the mode for the launches to come and forget those that were."""
        self.mode = head["mode"]
        self.launches = []
        return {}, []

    def on_report(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Launches since the last ``mode``, with what they touched."""
        report, self.launches = self.launches, []
        return {"launches": report}, []

    def launch(self, head: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Compute one launch and note it."""
        note: dict[str, Any] = {"function": str(head.get("function")), "grid": head.get("grid")}
        self.launches.append(note)
        try:
            bundle = Bundle.open(head["bundle"], fds[0])
            before = bundle.bytes().clone()
            if self.mode != "noop":
                note.update(self.engine.run(head, bundle) or {})
            note["damage"] = bundle.damage(before)
            note["wrote"] = wrote(bundle, before)
            if self.mode == "perturb":
                perturb(bundle, before)
            bundle.close()
            return {"ok": True}
        except BaseException as e:
            error = roles.describe(e)
            note["error"] = error
            return {"error": error}


def wrote(bundle: Bundle, before: torch.Tensor) -> dict[str, int]:
    """Bytes changed per tensor argument."""
    now = bundle.bytes()
    out = {}
    for name, e in bundle.head["tensors"].items():
        s = bundle.head["storages"][e["storage"]]
        part = slice(s["begin"], s["begin"] + s["nbytes"])
        out[name] = int((now[part] != before[part]).sum())
    return out


def perturb(bundle: Bundle, before: torch.Tensor) -> None:
    """Scale every floating-point element that the launch changed; flip the lowest bit of changed integers."""
    old = before.clone()
    done: set[int] = set()
    for e in bundle.head["tensors"].values():
        s = bundle.head["storages"][e["storage"]]
        if e["storage"] in done or s["nbytes"] == 0:
            continue
        done.add(e["storage"])
        dtype = getattr(torch, e["dtype"])
        part = slice(s["begin"], s["begin"] + s["nbytes"] // dtype.itemsize * dtype.itemsize)
        now, was = bundle.bytes()[part].view(dtype), old[part].view(dtype)
        raw, raw_was = bundle.bytes()[part].view(-1, dtype.itemsize), old[part].view(-1, dtype.itemsize)
        changed = (raw != raw_was).any(1)
        if dtype.is_floating_point:
            now[changed] = (now[changed].double() * PERTURB).to(dtype)
        elif dtype is torch.bool:
            now[changed] = ~now[changed]
        else:
            now[changed] = now[changed] ^ 1
        del was
