"""The candidate's end of the channel to its evaluator: one launch out, the storages back."""

from __future__ import annotations

import socket
from typing import Any

import torch

from . import transport
from .transport import Bundle

TIMEOUT_S = 600.0


class LaunchFault(Exception):
    """The evaluator refused or could not run a launch."""

    tilewright_kind = "launch"


class EvaluatorClient:
    """Hands launches to the evaluator process and copies back what they wrote."""

    def __init__(self, channel: socket.socket):
        self.channel = channel
        self.count = 0

    def launch(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """Compute a launch on the storages of ``tensors``, in place. Raises LaunchFault with the evaluator's words."""
        bundle = Bundle.pack(tensors)
        transport.send(self.channel, {**head, "index": self.count, "bundle": bundle.head}, (bundle.fd,))
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

    @staticmethod
    def _fault(error: dict[str, Any]) -> LaunchFault:
        fault = LaunchFault(error["message"])
        fault.where = error.get("where", "")  # type: ignore[attr-defined]
        fault.tilewright_kind = error.get("kind", "launch")
        return fault


def _bytes(t: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
