"""The candidate in its sealed child: what the parent asks it, and what the parent itself sees.

>>> with KernelSession(kernel) as k:                     # doctest: +SKIP
...     k.build(calling, state)
...     outcome = k.call(inputs)
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ...kernel import Kernel
from ...task.calling import Calling
from . import transport
from .session import Inputs, Outcome, Session, Trouble, same_bits, split, trouble
from .transport import Bundle


class KernelSession(Session):
    """The candidate in its sealed child, with its evaluator beside it where launches are evaluated elsewhere."""

    def __init__(self, kernel: Kernel, *, engine: str = "ir", **options: Any):
        self.kernel = kernel
        options["reads"] = (*options.get("reads", ()), str(Path(kernel.path).resolve().parent))
        self.engine = engine
        self.evaluator: Session | None = None
        self._held: Bundle | None = None
        others: tuple[socket.socket, ...] = ()
        ends: tuple[socket.socket, ...] = ()
        if kernel.language == "triton":
            a, b = socket.socketpair()
            ends = (a, b)
            self.evaluator = Session(
                "evaluator", interpret=engine == "interpreter", others=(b,), name="evaluator", **options
            )
            others = (a,)
        super().__init__("kernel", others=others, name="kernel", **options)
        for s in ends:
            s.close()
        self.load_trouble = self._load()

    def _load(self) -> Trouble | None:
        path = str(Path(self.kernel.path).resolve())
        if self.evaluator is not None:
            answer, _ = self.evaluator.ask_raw(
                {"do": "start", "files": {path: self.kernel.text}, "engine": self.engine}
            )
            if "error" in answer:
                return trouble(answer["error"])
        sheet = {"path": path, "text": self.kernel.text, "entry": self.kernel.entry}
        answer, _ = self.ask_raw({"do": "load", "language": self.kernel.language, "kernel": sheet})
        return trouble(answer["error"]) if "error" in answer else None

    def build(self, how: Calling, state: Mapping[str, torch.Tensor]) -> Trouble | None:
        """Make the callable."""
        if self.load_trouble:
            return self.load_trouble
        bundle = Bundle.pack(state)
        answer, _ = self.ask_raw({"do": "build", "calling": how.model_dump(mode="json")}, (bundle,))
        bundle.close()
        return trouble(answer["error"]) if "error" in answer else None

    def update(self, state: Mapping[str, torch.Tensor]) -> bool | Trouble:
        """Change a module's parameters and buffers in place; False where the kernel is no module."""
        bundle = Bundle.pack(state)
        answer, _ = self.ask_raw({"do": "update"}, (bundle,))
        bundle.close()
        return trouble(answer["error"]) if "error" in answer else bool(answer["updated"])

    def call(
        self,
        inputs: Inputs,
        *,
        requires_grad: tuple[str, ...] = (),
        cotangents: Mapping[str, torch.Tensor] | None = None,
        poison: int | None = 0xFF,
        guard: int = 0xFF,
        place: str = "start",
        observe: bool = False,
        keep: bool = False,
        mode: str = "normal",
        seconds: float | None = None,
        seed: int = 0,
        reuse: bool = False,
        twice: bool = False,
        only: int | None = None,
        salt: int = 0,
        order: int = 0,
        seal: dict[str, Any] | None = None,
        frozen: tuple[str, ...] = (),
        trace: bool = False,
        mutated: tuple[str, ...] = (),
        config: int = 0,
        tune: bool = False,
        binary: bool = False,
    ) -> Outcome:
        """One call. ``mode``, ``only``, ``salt`` and ``order`` are for the evaluator (``role_evaluator.py``). ``reuse``:
        the inputs take the addresses of the last call with ``reuse``, if their layouts agree. ``twice``: run backward
        twice. ``seal``: unreadable pages around the inputs, ``frozen``: inputs that can only be read (``pages.py``).
        ``trace``: record what the call does (``prove/trace.py``), with the inputs ``mutated`` among its results.
        ``config``, ``tune``: which configuration of tuned kernels, and whether all are tried first (``_launches.py``).
        ``binary``: compile launches for the target too (``binaries.py``)."""
        tensors, scalars = split(inputs)
        bundle, held = self._inputs(tensors, guard, place, reuse)
        before = bundle.bytes().clone()
        bundles = [bundle] + ([Bundle.pack(cotangents)] if cotangents is not None else [])
        if self.evaluator is not None:
            self.evaluator.ask_raw(
                {"do": "mode", "mode": mode, "only": only, "salt": salt, "order": order, "binary": binary}
            )
        head = {
            "do": "call",
            "order": list(inputs),
            "scalars": scalars,
            "requires_grad": list(requires_grad),
            "poison": poison,
            "observe": observe,
            "keep": keep,
            "seed": seed,
            "held": held,
            "twice": twice,
            "seal": seal,
            "frozen": list(frozen),
            "trace": trace,
            "mutated": list(mutated),
            "config": config,
            "tune": tune,
        }
        answer, out = self.ask_raw(head, tuple(bundles), seconds=seconds)
        launches: list[dict[str, Any]] = []
        if self.evaluator is not None:
            launches = self.evaluator.ask_raw({"do": "report"})[0].get("launches", [])
        outcome = self._outcome(answer, out, bundle, before, tensors)
        outcome.launches = launches
        if cotangents is not None:
            now = bundles[1].tensors()
            outcome.cotangents_changed = tuple(n for n, t in cotangents.items() if not same_bits(t, now[n]))
        for b in (*bundles, *out):
            if b is not self._held:
                b.close()
        return outcome

    def virtual(self, tensors: Mapping[str, list[Any]], scalars: dict[str, Any], order: list[str],
                probing: dict[str, Any], seconds: float | None = None) -> Outcome:  # fmt: skip
        """A call at sizes beyond memory (``virtual.py``, ``probes.py``): only ``trouble`` and ``launches`` are set."""
        assert self.evaluator is not None
        self.evaluator.ask_raw({"do": "mode", "mode": "normal", "probing": probing})
        head = {"do": "virtual", "virtual": dict(tensors), "scalars": scalars, "order": order}
        answer, _ = self.ask_raw(head, seconds=seconds)
        launches = self.evaluator.ask_raw({"do": "report"})[0].get("launches", [])
        return Outcome(trouble=trouble(answer["error"]) if "error" in answer else None, launches=launches)

    def _inputs(self, tensors: dict[str, torch.Tensor], guard: int, place: str, reuse: bool) -> tuple[Bundle, str]:
        """The bundle of a call, and what the child is to do with its memory."""
        fresh = Bundle.pack(tensors, guard=guard, place=place)
        if not reuse:
            return fresh, ""
        if self._held is not None and self._held.head == fresh.head:
            self._held.bytes().copy_(fresh.bytes())
            fresh.close()
            return self._held, "again"
        self._held = fresh
        return fresh, "first"

    def _outcome(self, answer: dict[str, Any], out: list[Bundle], bundle: Bundle, before: torch.Tensor,
                 tensors: dict[str, torch.Tensor]) -> Outcome:  # fmt: skip
        after = bundle.tensors(copy=True)
        seen = Outcome(
            inputs_after=after, damage=tuple(bundle.damage(before)),
            changed=tuple(n for n, t in tensors.items() if not same_bits(t, after[n])),
        )  # fmt: skip
        if "error" in answer:
            seen.trouble = trouble(answer["error"])
            return seen
        try:
            seen.tree, seen.odd = answer["tree"], dict(answer["odd"])
            if seen.odd:
                return seen
            seen.outputs = out[0].tensors(copy=True)
            seen.grads = out[1].tensors(copy=True) if len(out) > 1 else {}
            seen.grads_again = out[2].tensors(copy=True) if len(out) > 2 else {}
            seen.patched, seen.late = tuple(map(str, answer["patched"])), tuple(map(str, answer["late"]))
            seen.places = dict(answer.get("places", {}))
            seen.tuned = dict(answer.get("tuned", {}))
            seen.alias, seen.stale = dict(answer["alias"]), tuple(answer["stale"])
            seen.seen, seen.threads = dict(answer["seen"]), int(answer["threads"])
            seen.requires_grad = dict(answer["requires_grad"])
            seen.trace = answer.get("trace")
        except (KeyError, TypeError, ValueError, IndexError, transport.ProtocolFault) as e:
            seen.trouble = Trouble("protocol", f"the process sent a malformed answer ({e!r})")
        return seen

    def close(self) -> None:
        super().close()
        if self.evaluator is not None:
            self.evaluator.close()
