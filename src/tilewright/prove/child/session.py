"""The parent's side of a sealed child: open it, ask it, learn how it ended. What each role is asked stands in
``kernel_session.py``, ``reference_session.py`` and ``algebra_session.py``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ...errors import EnvironmentProblem
from ...task import tree
from . import ends, transport
from .pool import ForkServer, server
from .transport import Bundle

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """What a child may use: seconds per request, bytes of memory, of one file and of all its files, processes."""

    seconds: float = 60.0
    memory_bytes: int = 8 << 30
    file_bytes: int = 2 << 30
    processes: int = 64
    scratch_bytes: int = 1 << 30


@dataclass(frozen=True)
class Trouble:
    """Why there is no result. ``kind``: ``exception``, ``exit``, ``crash``, ``timeout``, ``memory``, ``protocol``,
    ``interface``, ``launch``, ``forged``, ``unsupported``."""

    kind: str
    message: str
    where: str = ""
    trace: str = ""
    type: str = ""
    output: str = ""
    user_code: bool = True
    remedy: str | None = None
    detail: str = ""

    def __str__(self) -> str:
        at = f" at {Path(self.where).name}" if self.where else ""
        return f"{self.type or self.kind}: {self.message}{at}" if self.kind == "exception" else f"{self.message}{at}"


@dataclass
class Outcome:
    """What a call gave: ``outputs`` by leaf name, ``tree`` their structure, and what the parent itself saw.

    ``changed``: inputs whose bytes changed. ``damage``: guard zones written, with the number of bytes. ``alias``:
    output to input that shares its memory. ``launches``: the evaluator's own log. ``seen``: torch operations that the
    child reports. ``places``: where outputs lie, by the child's word (storage as launches number it).
    ``stale``: outputs kept from earlier calls that this one changed. ``patched``: functions that the
    candidate replaced. ``late``: outputs that changed after the call. ``grads_again``: of a second backward.
    ``seconds``: how long it took, a build included.
    """

    trouble: Trouble | None = None
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    grads: dict[str, torch.Tensor] = field(default_factory=dict)
    tree: dict[str, Any] = field(default_factory=dict)
    inputs_after: dict[str, torch.Tensor] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    damage: tuple[tuple[str, int], ...] = ()
    alias: dict[str, str] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    stale: tuple[int, ...] = ()
    seen: dict[str, Any] = field(default_factory=dict)
    threads: int = 0
    requires_grad: dict[str, bool] = field(default_factory=dict)
    launches: list[dict[str, Any]] = field(default_factory=list)
    patched: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    grads_again: dict[str, torch.Tensor] = field(default_factory=dict)
    cotangents_changed: tuple[str, ...] = ()
    places: dict[str, Any] = field(default_factory=dict)
    tuned: dict[str, list[list[str]]] = field(default_factory=dict)
    trace: dict[str, Any] | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.trouble is None


@dataclass
class LawAnswer:
    """Where a law stands: decided (``ok``), or waiting for the kernel's result on ``inputs`` (``gradient``: the names
    whose gradients it wants, for ``cotangents``)."""

    ok: bool | None = None
    message: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    gradient: tuple[str, ...] = ()
    cotangents: dict[str, torch.Tensor] = field(default_factory=dict)
    trouble: Trouble | None = None


class Session:
    """One sealed child. ``role`` as in ``worker.py``."""

    def __init__(self, role: str, *, limits: Limits | None = None, sandbox: str = "best", interpret: bool = False,
                 others: tuple[socket.socket, ...] = (), name: str = "", reads: tuple[str, ...] = ()):  # fmt: skip
        self.limits = limits or Limits()
        self.server: ForkServer = server(interpret=interpret)
        self.output = os.memfd_create("tw-output", os.MFD_CLOEXEC)
        ours, theirs = socket.socketpair()
        request = {"role": role, "sandbox": sandbox, "limits": vars(self.limits), "name": name,
                   "reads": list(reads)}  # fmt: skip
        self.pid = self.server.spawn(request, (theirs.fileno(), self.output, *(s.fileno() for s in others)))
        theirs.close()
        self.channel = ours
        self.dead: Trouble | None = None
        self.sealed: dict[str, Any] = {}
        answer, _ = self.ask_raw({}, wait_only=True)
        if "error" in answer:
            failed = trouble(answer["error"])
            self.close()
            raise EnvironmentProblem(
                f"the sealed child for the {role} did not start: {failed.message}",
                remedy=failed.remedy or "run 'tilewright doctor'",
                detail=failed.output or None,
            )
        self.sealed = answer.get("sealed", {})

    def ask_raw(
        self,
        head: dict[str, Any],
        bundles: tuple[Bundle, ...] = (),
        *,
        wait_only: bool = False,
        seconds: float | None = None,
    ) -> tuple[dict[str, Any], list[Bundle]]:
        """Send a request and wait for the answer. A child that dies, hangs or talks nonsense gives ``{"error": ...}``
        and stays dead."""
        if self.dead is not None:
            return {"error": vars(self.dead)}, []
        ticket = secrets.token_hex(8)  # an answer without it is not the answer to this request
        try:
            if not wait_only:
                transport.send(self.channel, {**head, "ticket": ticket, "bundles": [b.head for b in bundles]},
                               tuple(b.fd for b in bundles))  # fmt: skip
            answer, fds = transport.receive(self.channel, seconds or self.limits.seconds)
            if not wait_only and answer.get("ticket") != ticket:
                transport.close(fds)
                raise transport.ProtocolFault("an answer that was not asked for")
            return answer, [Bundle.open(h, fd) for h, fd in zip(answer.get("bundles", []), fds, strict=True)]
        except transport.Timeout:
            self.server.kill(self.pid)
            self._die("timeout", f"no answer within {seconds or self.limits.seconds:g} s")
        except (transport.ProtocolFault, ValueError) as e:
            self._died(str(e))
        assert self.dead is not None
        return {"error": vars(self.dead)}, []

    def _died(self, why: str) -> None:
        ended = self.server.ended(self.pid, 2.0)
        if ended is None:
            self.server.kill(self.pid)
            self._die("protocol", f"the process sent something that is no message ({why})")
        elif ended.code < 0:
            self._die(*ends.explain(ended, self.printed()))
        else:
            self._die("exit", f"the process {ended} in the middle of a call")

    def _die(self, kind: str, message: str) -> None:
        self.dead = Trouble(kind=kind, message=message, output=self.printed())

    def printed(self) -> str:
        """The tail of what the child wrote to stdout and stderr."""
        size = os.fstat(self.output).st_size
        return os.pread(self.output, 4000, max(0, size - 4000)).decode(errors="replace")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.channel.close()
        with contextlib.suppress(OSError):
            os.close(self.output)
        self.server.kill(self.pid)
        self.dead = self.dead or Trouble("exit", "the session was closed")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def trouble(error: dict[str, Any]) -> Trouble:
    """A Trouble from a child's words."""
    known = {k: v for k, v in error.items() if k in Trouble.__dataclass_fields__}
    return Trouble(**{"kind": "exception", "message": "", **known})


def split(inputs: Inputs) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors, and the other arguments as trees."""
    tensors = {n: v for n, v in inputs.items() if isinstance(v, torch.Tensor)}
    return tensors, {n: tree.flatten(v)[0] for n, v in inputs.items() if n not in tensors}


def folders(*files: str | None) -> tuple[str, ...]:
    """Folders of files that a child must be able to read (``file.py::name`` is taken as ``file.py``)."""
    return tuple(str(Path(f.partition("::")[0]).resolve().parent) for f in files if f)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bit for bit (NaN equals itself), by element."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.numel() == 0:
        return True
    x, y = (t.detach().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8) for t in (a, b))
    return torch.equal(x, y)
