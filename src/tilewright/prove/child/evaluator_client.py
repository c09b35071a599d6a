"""The candidate's end of the channel to its evaluator: one launch out, the storages back."""

from __future__ import annotations

import socket
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from . import transport
from .transport import Bundle
from .virtual import storages

TIMEOUT_S = 600.0
MOST_PROBES = 64  # launches of one call at sizes beyond memory


class LaunchFault(Exception):
    """The evaluator refused or could not run a launch."""

    tilewright_kind = "launch"


class EvaluatorClient:
    """Hands launches to the evaluator process and copies back what they wrote."""

    def __init__(self, channel: socket.socket):
        self.channel = channel
        self.count = 0
        self.virtual: dict[int, str] | None = None
        self.probes = 0
        self.known: dict[int, tuple[StorageWeakRef, int]] = {}
        self.trace: Any = None

    def launch(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """Compute a launch on the storages of ``tensors``, in place. Raises LaunchFault with the evaluator's words."""
        if self.virtual is not None:
            return self._probe(head, tensors, self.virtual)
        if self.trace is None:
            return self._launch(head, tensors)
        self.trace.launch(head, tensors)
        self.trace.paused = True
        try:
            self._launch(head, tensors)
        finally:
            self.trace.paused = False

    def _launch(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        bundle = Bundle.pack(tensors)
        message = {**head, "index": self.count, "bundle": bundle.head,
                   "storages": {n: self.number(t) for n, t in tensors.items()}}  # fmt: skip
        transport.send(self.channel, message, (bundle.fd,))
        self.count += 1
        answer, fds = transport.receive(self.channel, TIMEOUT_S)
        transport.close(fds)
        try:
            if "error" in answer:
                raise self._fault(answer["error"])
            back = bundle.tensors()
            done: set[int] = set()
            for n, t in tensors.items():
                raw = t.untyped_storage()
                if n in answer["wrote"] and raw.nbytes() and raw.data_ptr() not in done:
                    done.add(raw.data_ptr())
                    _bytes(t).copy_(_bytes(back[n]))
        finally:
            bundle.close()

    def _probe(self, head: dict[str, Any], tensors: dict[str, torch.Tensor], inputs: dict[int, str]) -> None:
        """A launch at sizes beyond memory: sizes go out, nothing comes back."""
        self.probes += 1
        if self.probes > MOST_PROBES:
            raise self._fault({"message": f"more than {MOST_PROBES} launches in a call", "kind": "unsupported"})
        transport.send(self.channel, {**head, "virtual": storages(tensors, self.number, inputs)})
        answer, fds = transport.receive(self.channel, TIMEOUT_S)
        transport.close(fds)
        if "error" in answer:
            raise self._fault(answer["error"])

    def begin(self) -> None:
        """A new call: storages are numbered anew."""
        self.known.clear()
        self.probes = 0

    def number(self, t: torch.Tensor) -> int:
        """The storage's number within the call. The weak reference keeps its key from being used again."""
        raw = t.untyped_storage()
        if raw._cdata not in self.known:
            self.known[raw._cdata] = (StorageWeakRef(raw), len(self.known))
        return self.known[raw._cdata][1]

    def places(self, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
        """Where tensors lie: [storage's number, offset, sizes, strides], in elements."""
        return {n: [self.number(t), t.storage_offset(), list(t.shape), list(t.stride())]
                for n, t in tensors.items() if t.layout is torch.strided}  # fmt: skip

    @staticmethod
    def _fault(error: dict[str, Any]) -> LaunchFault:
        fault = LaunchFault(error["message"])
        fault.where = error.get("where", "")  # type: ignore[attr-defined]
        fault.tilewright_kind = error.get("kind", "launch")
        return fault


def _bytes(t: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
