"""The candidate's child: load it, call it, hand back what it returned."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

import torch

from ...kernel import languages
from ...kernel.languages._python import copy_state
from ...task import calling, tree
from ..trace import Trace
from . import pages, tampering, virtual, watch
from .evaluator_client import EvaluatorClient
from .preload import seed
from .transport import Bundle

_nothing = contextlib.nullcontext()
KEPT = 16
LATE_S = 0.05
_plain = (torch.Tensor, torch.nn.Parameter)


class Role:
    """Requests: ``load``, ``build``, ``update``, ``call``."""

    def __init__(self, others: list[Any]):
        self.evaluator = EvaluatorClient(others[0]) if others else None
        self.loaded: Any = None
        self.callable: Any = None
        self.path = ""
        self.calls = 0
        self.kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.held: dict[str, torch.Tensor] = {}
        self.functions: dict[str, Any] = {}
        self.recorder: Any = None
        self.threads = 1

    def on_load(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Run the candidate's file. After this, Tilewright can't be imported here."""
        language = importlib.import_module(f"{languages.__name__}.{head['language']}")
        getattr(language, "prepare", lambda: None)()
        self.functions = tampering.snapshot()
        self.recorder = getattr(language, "Recorder", None) if self.evaluator is not None else None
        tampering.hide_tilewright()
        self.threads = threads()
        self.path = head["kernel"]["path"]
        self.loaded = language.Loaded(head["kernel"], self.evaluator)
        return {"loaded": True}, []

    def on_build(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Make the callable: for a module, construct it and copy the reference's state in."""
        how = calling.Calling.model_validate(head["calling"])
        state = bundles[0].tensors(copy=True) if bundles else {}
        self.callable = self.loaded.build(how, state)
        return {"built": True}, []

    def on_update(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Change the module's parameters and buffers in place, as an optimiser does. Answers whether there is one."""
        module = getattr(self.callable, "module", None)
        if module is None:
            return {"updated": False}, []
        copy_state(module, bundles[0].tensors(copy=True))
        return {"updated": True}, []

    def on_virtual(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Call once with tensors that have sizes and no memory."""
        return virtual.call(self, head), []

    def on_call(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Call once. Options: ``scalars`` (name to tree), ``order``, ``requires_grad`` (names), ``poison`` (byte),
        ``observe``, ``keep`` (hold the outputs, and tell in later calls whether they changed), ``held`` (use the
        tensors of the call before, whose memory the parent has rewritten), ``twice`` (backward a second time),
        ``seal`` and ``frozen`` (``pages.py``); a
        second bundle holds cotangents by output name."""
        tensors = self._tensors(head, bundles[0])
        inputs = {n: tensors[n] if n in tensors else tree.unflatten(head["scalars"][n], {}) for n in head["order"]}
        if head.get("seal"):
            pages.protect(bundles[0], head["seal"])
        if head.get("frozen"):
            pages.freeze(bundles[0], head["frozen"])
        wanted = head.get("requires_grad", ())
        for name in wanted:
            inputs[name].requires_grad_(True)
        self.calls += 1
        recorder = getattr(self.loaded, "recorder", None)
        if recorder is not None:
            recorder.choose(int(head.get("config", 0)), bool(head.get("tune", False)))
        if self.evaluator is not None:
            self.evaluator.begin()
        seed(head.get("seed", 0))
        upstream = bundles[1].tensors() if len(bundles) > 1 else {}
        trace = self._trace(head, {**tensors, **{f"grad of {n}": t for n, t in upstream.items()}})
        with watch.Watch(poison=head.get("poison"), observe=head.get("observe", False)) as seen, trace or _nothing:
            with torch.set_grad_enabled(bool(wanted)):
                result = self.callable(inputs)
            structure, leaves = tree.flatten(result)
            odd = {n: type(t).__name__ for n, t in leaves.items() if type(t) not in _plain}
            rounds: list[dict[str, torch.Tensor]] = []
            if len(bundles) > 1 and not odd:
                for i in range(2 if head.get("twice") else 1):
                    got = backward(leaves, upstream, inputs, wanted, again=bool(head.get("twice")) and i == 0)
                    rounds.append({n: g.clone() for n, g in got.items()} if head.get("twice") else got)
        answer: dict[str, Any] = {"tree": structure, "odd": odd, "seen": seen.summary(), "threads": self._threads(),
                                  "patched": tampering.replaced(self.functions)
                                  + tampering.hooks_replaced(self.recorder)}  # fmt: skip
        if odd:
            return answer, []
        if trace is not None:
            answer["trace"] = traced(trace, leaves, rounds, tensors, head)
            self._untrace()
        answer["alias"] = {n: i for n, t in leaves.items() for i, x in tensors.items() if overlap(t, x)}
        if self.evaluator is not None:
            answer["tuned"] = dict(recorder.tuned) if recorder is not None else {}
            answer["places"] = self.evaluator.places(leaves)
        answer["requires_grad"] = {n: t.requires_grad for n, t in leaves.items()}
        answer["device"] = {n: t.device.type for n, t in leaves.items()}
        answer["stale"] = [i for i, (t, copy) in enumerate(self.kept) if not same_bytes(t, copy)]
        out = [Bundle.pack(plain(leaves), whole=False), *(Bundle.pack(plain(g), whole=False) for g in rounds)]
        answer["late"] = self._late(leaves, out[0]) if answer["threads"] else []
        if head.get("keep"):
            self.kept = [*self.kept, *((t.detach(), t.detach().clone()) for t in leaves.values())][-KEPT:]
        return answer, out

    def _tensors(self, head: dict[str, Any], bundle: Bundle) -> dict[str, torch.Tensor]:
        """The inputs, in new memory or in that of the call before."""
        if head.get("held") == "again" and self.held:
            for t in self.held.values():
                torch.autograd.graph.increment_version(t)  # as copy_ would: a cache that minds versions is honest
            return self.held
        tensors = bundle.tensors()
        if head.get("held"):
            self.held = tensors
        return tensors

    def _trace(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Trace | None:
        """A recorder of this call, if it is asked for; launches go through it."""
        if not head.get("trace"):
            self._untrace()
            return None
        trace = Trace(tensors, self.path)
        if self.evaluator is not None:
            self.evaluator.trace = trace
        return trace

    def _untrace(self) -> None:
        if self.evaluator is not None:
            self.evaluator.trace = None

    def _threads(self) -> int:
        """Threads that the candidate left running. ``torch.compile`` keeps some of its own."""
        return 0 if "torch._inductor.async_compile" in sys.modules else threads() - self.threads

    def _late(self, leaves: dict[str, torch.Tensor], packed: Bundle) -> list[str]:
        """Outputs that change after the call has returned."""
        time.sleep(LATE_S)
        now, then = plain(leaves), packed.tensors()
        return [n for n in now if not same_bytes(now[n], then[n])]


def traced(trace: Trace, leaves: dict[str, torch.Tensor], rounds: list[dict[str, torch.Tensor]],
           inputs: dict[str, torch.Tensor], head: dict[str, Any]) -> dict[str, Any]:  # fmt: skip
    """The trace as data. Its outputs: results, gradients (``grad of x``), and inputs changed by contract (``x after``)."""
    grads = {f"grad of {n}": g for n, g in rounds[0].items()} if rounds else {}
    changed = {f"{n} after": inputs[n] for n in head.get("mutated", ()) if n in inputs}
    return trace.finish({**leaves, **grads, **changed})


def plain(leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Strided CPU tensors with conjugate and negative bits resolved."""
    return {n: t.detach().cpu().resolve_conj().resolve_neg() if t.layout is torch.strided
            else t.detach().to_dense() for n, t in leaves.items()}  # fmt: skip


def backward(
    outputs: dict[str, torch.Tensor],
    cotangents: dict[str, torch.Tensor],
    inputs: dict[str, Any],
    wanted: Iterable[str],
    *,
    again: bool = False,
) -> dict[str, torch.Tensor]:
    """Gradients of ``wanted`` inputs for the given cotangents; an input without gradient is left out. ``again``: the
    graph is kept for another time."""
    pairs = [(outputs[n], c) for n, c in cotangents.items() if n in outputs and outputs[n].requires_grad]
    if not pairs:
        return {}
    names = [n for n in wanted if n in inputs]
    # The engine itself: torch.autograd.grad would switch function modes off, and with them the façade in backward.
    got = torch.autograd.Variable._execution_engine.run_backward(
        tuple(o for o, _ in pairs), tuple(c for _, c in pairs), again, False, tuple(inputs[n] for n in names),
        allow_unreachable=True, accumulate_grad=False,
    )  # fmt: skip
    return {n: g for n, g in zip(names, got, strict=True) if g is not None}


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors share a byte of memory (by storage)."""
    x, y = a.untyped_storage(), b.untyped_storage()
    if x.nbytes() == 0 or y.nbytes() == 0:
        return False
    return x.data_ptr() < y.data_ptr() + y.nbytes() and y.data_ptr() < x.data_ptr() + x.nbytes()


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bit for bit."""
    if a.shape != b.shape:
        return False
    x, y = (t.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8) for t in (a, b))
    return torch.equal(x, y)


def threads() -> int:
    """Threads of this process, as the kernel counts them."""
    return max(len(os.listdir("/proc/self/task")), threading.active_count())
