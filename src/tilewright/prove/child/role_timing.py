"""The child in which something is timed: the candidate, or a baseline. The parent keeps the clock.

A turn is a number of calls. For each, parent and child shake hands over shared words, so that the parent sees begin and
end by its own clock, and nothing that this process says is needed for a time. What runs here between two calls waits
with all signals blocked; what a candidate could still do in its own process, ``docs/bench.md`` tells.

    parent                         child
    writes the inputs              sleeps
    one byte  ──────────────────▶  cold: overwrites the caches; READY = i
    last lines of the inputs
    clock, GO = i  ─────────────▶  calls
    clock  ◀─────────────────────  DONE = i
                                   copies the outputs out (C kernels wrote them in place)
    clock  ◀─────────────────────  DELIVERED = i
"""

from __future__ import annotations

import gc
import importlib
import os
import platform
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from ...kernel import languages
from ...kernel.languages import _python
from ...task import calling, readers, tree
from ...task.task import Workload
from . import gpu, tampering, timing_device
from .transport import Bundle

READY, GO, SLOT, DONE, DELIVERED, BEGAN, ENDED, FAILED, COLD, WANT, GRAPH, HEAD, HOST = range(13)
WORDS = 16
GO_ON, STOP = b"+", b"-"
ALL = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
_now, _mask, _block = (
    time.perf_counter_ns,
    signal.pthread_sigmask,
    signal.SIG_BLOCK,
)  # before user code can replace them
_plain = (torch.Tensor, torch.nn.Parameter)
ORDERED = platform.machine() in ("x86_64", "AMD64")
"""Whether stores are seen in the order in which they were made; elsewhere a lock orders them."""
_order = threading.Lock()


class Role:
    """Requests: ``load`` or ``source``, ``build``, ``attach``, ``try``, ``turn``."""

    def __init__(self, others: list[Any]):
        self.bell = others[0]
        self.loaded: Any = None
        self.source: Any = None
        self.language = ""
        self.callable: Callable[[dict[str, Any]], Any] | None = None
        self.how = calling.Calling()
        self.bound: list[Callable[[], Any]] = []
        self.outs: list[dict[str, torch.Tensor]] = []
        self.control: Any = None
        self.trash: torch.Tensor | None = None
        self.gpu: Any = None
        self.rig: timing_device.Rig | None = None
        self.kept: list[Bundle] = []

    def on_load(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """A kernel file."""
        self.language = head["language"]
        self._device(head)
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # a candidate that compiles must leave no threads behind
        module = importlib.import_module(f"{languages.__name__}.{self.language}")
        tampering.hide_tilewright()
        self.loaded = module.Loaded(head["kernel"], None)
        return {"loaded": True}, []

    def _device(self, head: dict[str, Any]) -> None:
        """Take hold of the device before user code can."""
        if head.get("device", "cpu") != "cpu":
            self.gpu = gpu.Host() if head["device"] == "host" else gpu.Cuda()

    def on_source(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """The problem itself, as a baseline."""
        self._device(head)
        self.source = readers.read(head["path"], overrides=head.get("overrides"), reference=head.get("reference"))
        return {"loaded": True}, []

    def on_build(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Make the callable; ``transform`` says how a baseline is compiled (``baseline_calls``)."""
        self.how = calling.Calling.model_validate(head["calling"])
        state = bundles[0].tensors(copy=True)
        if self.loaded is not None:
            self.callable = self.loaded.build(self.how, state)
            module = getattr(self.callable, "module", None)
            if self.gpu is not None and isinstance(module, torch.nn.Module):
                module.to(self.gpu.device)
        else:
            from . import baseline_calls

            workload = Workload.model_validate(head["workload"])
            place = "cpu" if self.gpu is None else str(self.gpu.device)
            self.callable = baseline_calls.make(self.source, workload, self.how, state, head["transform"], place)
        return {"built": True}, []

    def on_attach(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Shared memory: words of control, and ``slots`` places with inputs (``s0.in.x``) and outputs (``s0.out.y``)."""
        self.kept = list(bundles)
        first = bundles[0].head["storages"][0]
        shared = bundles[0].map
        assert shared is not None
        self.control = memoryview(shared)[first["begin"] : first["begin"] + 8 * WORDS].cast("q")
        if self.gpu is not None:
            return self._attach_device(head, bundles[1])
        given = bundles[1].tensors()
        touched = bundles[1].bytes().clone()  # page faults belong to no call
        bundles[1].bytes().copy_(touched)
        self.bound, self.outs = [], []
        for s in range(head["slots"]):
            own = {n.partition(".")[2]: t for n, t in given.items() if n.startswith(f"s{s}.")}
            inputs = {n: own[f"in.{n}"] if f"in.{n}" in own else tree.unflatten(head["scalars"][n], {})
                      for n in head["order"]}  # fmt: skip
            outs = {n.removeprefix("out."): t for n, t in own.items() if n.startswith("out.")}
            self.outs.append(outs)
            self.bound.append(self._bind(inputs, outs))
        self.trash = torch.zeros(head["flush"], dtype=torch.uint8) if head["flush"] else None
        return {"attached": True}, []

    def _attach_device(self, head: dict[str, Any], bundle: Bundle) -> tuple[dict[str, Any], list[Bundle]]:
        assert self.callable is not None
        with torch.no_grad():
            self.rig = timing_device.Rig(self.gpu, head, bundle, self.callable)
            if head.get("replayed"):  # a baseline that is eager replayed from a graph
                self.rig.capture(head["warmups"])
                self.rig.bound = [_replay(*g) for g in self.rig.graphs]
        return {"attached": True}, []

    def on_graph(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Capture the call as a CUDA graph, if it is not one."""
        assert self.rig is not None
        with torch.no_grad():
            if not self.rig.graphs:
                self.rig.capture(head["warmups"])
        return {"captured": True}, []

    def on_memory(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Peak device memory of a call."""
        assert self.rig is not None
        with torch.no_grad():
            peak, extra = self.rig.memory()
        return {"peak": peak, "extra": extra}, []

    def _bind(self, inputs: dict[str, Any], outs: dict[str, torch.Tensor]) -> Callable[[], Any]:
        call = self.callable
        assert call is not None
        if self.language == "native":
            bound: Callable[[], Any] = self.loaded.bind(self.how, inputs, list(outs.values()))
            return bound
        return lambda: call(inputs)

    def on_try(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """One call with the inputs of a slot, without a clock: what comes out, as in a check."""
        with torch.no_grad():
            if self.rig is not None:
                self.rig.prepare(head["slot"], cold=False, graph=False)
            result = (self.rig.bound if self.rig is not None else self.bound)[head["slot"]]()
        if self.language == "native":
            made = tuple(self.outs[head["slot"]].values())
            result = made[0] if len(made) == 1 else made
        structure, leaves = tree.flatten(result)
        odd = {n: type(t).__name__ for n, t in leaves.items() if type(t) not in _plain}
        plain = {} if odd else {n: t.detach().cpu().contiguous() for n, t in leaves.items()}
        del result, leaves
        if self.gpu is not None:
            self.gpu.trim()
        gc.collect()
        gc.freeze()  # what is there now stays; else every turn's collection walks over all of torch
        return {"tree": structure, "odd": odd}, [Bundle.pack(plain)]

    def on_turn(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """``calls`` calls from number ``first``, each at the parent's word."""
        gc.collect()
        gc.disable()
        try:
            with torch.no_grad():
                calls = self._calls if self.rig is None else self._device_calls
                calls(head["first"], head["calls"])
        except BaseException:
            self.control[FAILED] = 1
            raise
        finally:
            gc.enable()
        if self.gpu is not None:
            self.gpu.trim()
        return {"turned": head["calls"]}, []

    def _calls(self, first: int, calls: int) -> None:
        words, bound, outs, native, bell = self.control, self.bound, self.outs, self.language == "native", self.bell
        for i in range(first, first + calls):
            _mask(_block, ALL)
            if bell.recv(1) != GO_ON:
                return
            if words[COLD] and self.trash is not None:
                self.trash.add_(1)
            words[READY] = i
            while words[GO] != i:
                pass
            if not ORDERED:
                _fence()
            slot = words[SLOT]
            call = bound[slot]
            began = _now()
            result = call()
            ended = _now()
            if not ORDERED:
                _fence()
            words[DONE] = i
            if not native:
                _deliver(result, outs[slot])
            words[BEGAN], words[ENDED] = began, ended
            del result
            if not ORDERED:
                _fence()
            words[DELIVERED] = i

    def _device_calls(self, first: int, calls: int) -> None:
        words, rig, bell = self.control, self.rig, self.bell
        assert rig is not None
        for i in range(first, first + calls):
            _mask(_block, ALL)
            if bell.recv(1) != GO_ON:
                return
            slot, graph = words[SLOT], bool(words[GRAPH])
            empty = slot < 0
            if not empty:
                rig.prepare(slot, cold=bool(words[COLD]), graph=graph)
            words[READY] = i
            while words[GO] != i:
                pass
            seconds = rig.empty(words[HEAD]) if empty else rig.timed(slot, words[HEAD], graph=graph)
            words[BEGAN], words[ENDED], words[HOST] = 0, int(seconds * 1e9), int(rig.host * 1e9)
            words[DONE] = i
            while abs(words[WANT]) != i:
                pass
            rig.deliver(words[WANT] == i, _deliver)
            words[DELIVERED] = i


def _replay(replay: Callable[[], None], result: Any) -> Callable[[], Any]:
    def call() -> Any:
        replay()
        return result

    return call


def _deliver(result: Any, outs: dict[str, torch.Tensor]) -> None:
    """Copy the outputs to where the parent looks; one that is no plain tensor, or of another form, ends the turn."""
    leaves = {"out": result} if type(result) is torch.Tensor and len(outs) == 1 else tree.flatten(result)[1]
    for (name, t), own in zip(leaves.items(), outs.values(), strict=True):
        if type(t) not in _plain or t.shape != own.shape or t.dtype != own.dtype:
            raise _python.KernelFault(f"output '{name}' of a timed call is another than in the check: {type(t).__name__}"
                                      f" {getattr(t, 'dtype', '')} {tuple(getattr(t, 'shape', ()))}")  # fmt: skip
        own.copy_(t)


def _fence() -> None:
    with _order:
        pass
