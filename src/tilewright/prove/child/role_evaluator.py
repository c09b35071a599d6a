"""The evaluator's child: runs device kernels for a candidate that lives in another process.

It reads each function from the hashed source file itself and computes the launch; the candidate only ever sees bytes.
The parent sets the mode here, where the candidate can't see it: ``normal``; ``noop`` (launches write nothing); ``fail``
(launches are refused, as by a driver); ``perturb`` (what launches write is scaled by random factors of the parent's
secret, so that an output which does not move was not computed by a launch, and a candidate that compares can't tell a
perturbed launch from a wrong one); ``scramble`` (the same with factors between -4 and 4). ``only``: the mode holds
for the launch of this number alone. ``undefined``: masked loads without ``other`` give NaN. ``order``: programs run in
another order.
"""

from __future__ import annotations

import select
import socket
from typing import Any

import torch

from . import probes, roles, transport
from .engine_interpreter import InterpreterEngine
from .engine_ir import IrEngine
from .transport import Bundle

RANGES = {"perturb": (2.0**-5, 2.0**-3), "scramble": (-5.0, 3.0)}  # of the relative change
RECEIVE_S = 10.0


class LaunchFailed(Exception):
    """A launch refused on purpose, in words that a driver would use."""

    tilewright_kind = "launch"


class Role:
    """Serves the candidate on one socket and the parent on another."""

    def __init__(self, others: list[socket.socket]):
        (self.candidate,) = others
        self.engine: Any = None
        self.mode = "normal"
        self.only: int | None = None
        self.salt = 0
        self.order = 0
        self.launches: list[dict[str, Any]] = []
        self.probing: dict[str, Any] = {}
        self.binary = False
        self.sources: dict[str, str] = {}
        self.walked: dict[str, Any] = {}

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
                    head, fds = transport.receive(self.candidate, RECEIVE_S)
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
        self.mode, self.only = head["mode"], head.get("only")
        self.salt, self.order = int(head.get("salt", 0)), int(head.get("order", 0))
        self.binary = bool(head.get("binary", False))
        self.launches, self.probing = [], head.get("probing", {})
        return {}, []

    def on_report(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Launches since the last ``mode``, with what they touched."""
        report, self.launches = self.launches, []
        return {"launches": report}, []

    def on_index(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """A question about a launch at symbolic sizes (``ir/domains/index_launch.py``)."""
        from ...ir.domains.index_launch import answer

        spec, key = head["spec"], repr(head["spec"])
        return answer(spec, head["question"], head["seconds"], self.walked, key), []

    def launch(self, head: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Compute one launch and note it."""
        if "virtual" in head:
            return self.probe(head)
        mode = self.mode if self.only is None or self.only == len(self.launches) else "normal"
        note: dict[str, Any] = {"function": str(head.get("function")), "grid": head.get("grid"),
                                "storages": head.get("storages", {})}  # fmt: skip
        self.launches.append(note)
        try:
            if mode == "fail":
                raise LaunchFailed("CUDA error: too many resources requested for launch")
            bundle = Bundle.open(head["bundle"], fds[0])
            before = bundle.bytes().clone()
            if mode != "noop":
                note.update(
                    self._run(
                        {**head, "undefined": mode == "undefined", "order": self.order, "binary": self.binary}, bundle
                    )
                )
            note["damage"] = bundle.damage(before)
            note["wrote"] = changed = wrote(bundle, before)
            note["copied"] = copied(bundle, before, note["wrote"])
            if mode in RANGES:
                perturb(bundle, before, self.salt + len(self.launches), RANGES[mode])
            bundle.close()
            return {"ok": True, "wrote": [n for n, count in changed.items() if count]}
        except BaseException as e:
            error = roles.describe(e)
            note["error"] = error
            return {"error": error}
        finally:
            transport.close(fds[1:])

    def probe(self, head: dict[str, Any]) -> dict[str, Any]:
        """A launch at sizes beyond memory; ``probing`` are the parent's options for it (``probes.py``)."""
        note: dict[str, Any] = {"function": str(head.get("function")), "grid": head.get("grid")}
        self.launches.append(note)
        try:
            note.update(probes.run(self.engine.sources, head, self.probing))
            return {"ok": True}
        except BaseException as e:
            note["error"] = error = roles.describe(e)
            return {"error": error}

    def _run(self, head: dict[str, Any], bundle: Bundle) -> dict[str, Any]:
        try:
            return self.engine.run(head, bundle) or {}
        except Exception as e:
            if not hasattr(e, "tilewright_kind") and self.engine.name == "ir":
                e.tilewright_kind = "unsupported"  # type: ignore[attr-defined]  # ours: never held against the kernel
            raise


def wrote(bundle: Bundle, before: torch.Tensor) -> dict[str, int]:
    """Bytes changed per tensor argument."""
    now = bundle.bytes()
    out = {}
    for name, e in bundle.head["tensors"].items():
        s = bundle.head["storages"][e["storage"]]
        part = slice(s["begin"], s["begin"] + s["nbytes"])
        out[name] = int((now[part] != before[part]).sum())
    return out


def copied(bundle: Bundle, before: torch.Tensor, wrote_to: dict[str, int]) -> dict[str, str]:
    """Arguments that the launch filled with exactly what another argument held before it."""
    found: dict[str, str] = {}
    entries = bundle.head["tensors"]
    now = bundle.tensors() if any(wrote_to.values()) else {}
    for n, count in wrote_to.items():
        for m, e in entries.items() if count else ():
            alike = e["storage"] != entries[n]["storage"] and e["dtype"] == entries[n]["dtype"]
            if alike and now[m].numel() == now[n].numel() and _same(now[n], _earlier(bundle, before, m)):
                found[n] = m
    return found


def _earlier(bundle: Bundle, before: torch.Tensor, name: str) -> torch.Tensor:
    """A tensor of the bundle as it was in ``before``."""
    e = bundle.head["tensors"][name]
    s = bundle.head["storages"][e["storage"]]
    dtype = getattr(torch, e["dtype"])
    flat = before[s["begin"] : s["begin"] + s["nbytes"] // dtype.itemsize * dtype.itemsize].clone().view(dtype)
    return flat.as_strided(e["shape"], e["strides"], e["offset"])


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    x, y = (t.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8) for t in (a, b))
    return torch.equal(x, y)


PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def perturb(bundle: Bundle, before: torch.Tensor, salt: int, change: tuple[float, float]) -> None:
    """Change every floating-point element that the launch wrote by a random share in ``change`` (zeros become small
    numbers); flip the lowest bit of changed integers."""
    done: set[int] = set()
    g = torch.Generator().manual_seed(salt % (1 << 62))
    for e in bundle.head["tensors"].values():
        s = bundle.head["storages"][e["storage"]]
        if e["storage"] in done or s["nbytes"] == 0:
            continue
        done.add(e["storage"])
        dtype = getattr(torch, e["dtype"])
        dtype = PARTS.get(dtype, dtype)
        part = slice(s["begin"], s["begin"] + s["nbytes"] // dtype.itemsize * dtype.itemsize)
        raw = bundle.bytes()[part].view(-1, dtype.itemsize)
        changed = (raw != before[part].view(-1, dtype.itemsize)).any(1)
        if bool(changed.any()):
            raw[changed] = (
                _moved(raw[changed].reshape(-1).view(dtype), g, change).view(torch.uint8).view(-1, dtype.itemsize)
            )


def _moved(x: torch.Tensor, g: torch.Generator, change: tuple[float, float]) -> torch.Tensor:
    if x.dtype is torch.bool:
        return ~x
    if not x.is_floating_point():
        return x ^ 1
    wide = x.double()
    factor = torch.rand(wide.shape, generator=g, dtype=torch.float64) * (change[1] - change[0]) + change[0]
    return torch.where(wide == 0, factor, wide * (1 + factor)).to(x.dtype)
