"""The candidate's child on a device: inputs go up, results come down, and the parent compares.

What runs here shares a process with the candidate, as code on the CPU does: a candidate that rewrites this module can
hide that it wrote into its inputs or beyond a buffer. It can't make a wrong result right.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import threading
from typing import Any

import torch

from ...errors import EnvironmentProblem
from ...kernel.languages import _cuda_extension, _facade
from ...task import tree
from ..child import role_kernel
from ..child.role_kernel import backward, overlap, plain
from ..child.transport import Bundle
from . import calls, errors, files, sanitize
from .experiments import Experiments
from .memory import Arena, Kept
from .watch import DeviceWatch, fill

launches: Any = importlib.import_module(".launches", __package__) if importlib.util.find_spec("triton") else None
DEVICE = "TW_DEVICE"


class Role(role_kernel.Role):
    """Requests: those of ``role_kernel``, and ``hello`` (which device is this), ``harvest`` (what was compiled)."""

    def __init__(self, others: list[Any]):
        super().__init__([])
        self.device = torch.device(os.environ.get(DEVICE, "cuda"))
        self.arena: Arena | None = None
        self.arenas = Kept()
        self.triton: Any = None
        self.experiments = Experiments()
        self.own_threads = python_threads()
        self.destination = False
        self.left = ""

    def on_hello(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Start the device and say what it is."""
        if self.device.type != "cuda":
            return {"name": "host memory", "capability": [0, 0], "memory": 0}, []
        torch.ones(1, device=self.device).sum().item()
        p = torch.cuda.get_device_properties(self.device)
        return {"name": p.name, "capability": [p.major, p.minor], "memory": p.total_memory,
                "multiprocessors": p.multi_processor_count, "cuda": torch.version.cuda}, []  # fmt: skip

    def on_load(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Run the candidate's file; a bundle holds what an earlier child of the same kernel compiled."""
        if self.device.type == "cpu":
            _facade.install = lambda *a: None  # host memory in a device's place, for tests: nothing pretends
        else:
            if not torch.cuda.is_available():  # else the façade would go up, and host memory pass for the device
                raise EnvironmentProblem("the device is gone", remedy="does 'nvidia-smi' work?")
            torch.backends.cudnn.allow_tf32 = False  # as for matrix products: who wants it says so
            torch.cuda.set_per_process_memory_fraction(float(os.environ.get("TW_DEVICE_SHARE", "0.9")))
        if bundles:
            files.restore(bundles[0])
        if head["language"] == "triton" and launches is not None and self.device.type == "cuda":
            self.triton = launches.Recorder(self.experiments)
            self.triton.install()
        _cuda_extension.AROUND = self.experiments.around
        answer = super().on_load(head, [])
        if self.triton is not None:
            self.loaded.recorder = self.triton
        return answer

    def on_sanitize(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """One call in a process of its own under compute-sanitizer."""
        return {"seen": sanitize.run(head, bundles)}, []

    def on_harvest(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Files that compilers left in the scratch folder."""
        return {}, [files.collect()]

    def on_build(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Make the callable, modules on the device."""
        answer = super().on_build(head, bundles)
        self.destination = head["calling"].get("style") == "destination"
        module = getattr(self.callable, "module", None)
        if isinstance(module, torch.nn.Module):
            module.to(self.device)
        return answer

    def on_update(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """As on the CPU; tensors are copied to where the module lies."""
        answer = super().on_update(head, bundles)
        errors.synchronise(self.device)
        return answer

    def _here(self) -> Any:
        """Where outputs that we make for the candidate lie. What it makes itself lies where it says."""
        return torch.device(self.device) if self.destination else contextlib.nullcontext()

    # ------------------------------------------------------------------------------------------------- one call

    def on_call(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Call once. Options beside those of ``role_kernel``: ``mode``, ``only``, ``salt`` (what launches do), ``stream``
        (``calls.on_stream``), ``graph`` (capture on other inputs, replay on these), ``far`` (stretch first axes)."""
        arena = self._arena(head, bundles[0])
        tensors = self._tensors_of(arena, head)
        upstream = self._upstream(bundles, head)
        self._prepare(head)
        inputs = self._inputs(head, tensors)
        wanted = head.get("requires_grad", ())
        for name in wanted:
            inputs[name].requires_grad_(True)
        watch = DeviceWatch(self.device, poison=head.get("poison"), observe=head.get("observe", False),
                            guard=None if head.get("graph") else head.get("zones", 0xFF))  # fmt: skip
        if self.device.type == "cuda":
            errors.forget()
        self.left = ""
        try:
            result, rounds, early = self._run(head, bundles[0], arena, inputs, watch, wanted, upstream)
        except RuntimeError as e:
            if errors.is_fault(e):
                raise errors.fault(e).with_traceback(e.__traceback__) from None
            raise
        structure, leaves = tree.flatten(result)
        errors.synchronise(self.device)
        answer = self._answer(head, structure, leaves, tensors, watch)
        answer["left"] = self.left
        if answer["odd"]:
            arena.download(bundles[0])
            return answer, []
        answer["late"] = [n for n, t in early.items() if not role_kernel.same_bytes(t, leaves[n].detach())]
        out = [Bundle.pack(plain(leaves), whole=False), *(Bundle.pack(plain(g), whole=False) for g in rounds)]
        arena.download(bundles[0])
        if head.get("keep"):
            held = ((t.detach(), t.detach().clone()) for t in leaves.values())
            self.kept = [*self.kept, *held][-role_kernel.KEPT :]
        return answer, out

    def _arena(self, head: dict[str, Any], bundle: Bundle) -> Arena:
        """The inputs on the device, in new memory or in that of the call before."""
        if head.get("held") == "again" and self.arena is not None:
            self.arena.fill_from(bundle)
            return self.arena
        arena = Arena.upload(bundle, self.device)
        self.arenas.add(arena)
        if head.get("held"):
            self.arena = arena
        return arena

    def _tensors_of(self, arena: Arena, head: dict[str, Any]) -> dict[str, torch.Tensor]:
        """The inputs; those of the call before under their old names and objects, where its memory is used again."""
        if head.get("held") == "again" and self.held:
            for t in self.held.values():
                torch.autograd.graph.increment_version(t)
            return self.held
        tensors = arena.tensors()
        if head.get("held"):
            self.held = tensors
        return tensors

    def _upstream(self, bundles: list[Bundle], head: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Incoming gradients."""
        if len(bundles) < 2 or head.get("graph"):
            return {}
        arena = Arena.upload(bundles[1], self.device)
        self.arenas.add(arena)
        return arena.tensors()

    def _prepare(self, head: dict[str, Any]) -> None:
        self.calls += 1
        if self.triton is not None:
            self.triton.choose(int(head.get("config", 0)), bool(head.get("tune", False)))
        self.experiments.begin(head.get("mode", "normal"), head.get("only"), int(head.get("salt", 0)),
                               bool(head.get("observe")))  # fmt: skip
        torch.manual_seed(head.get("seed", 0))

    def _inputs(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
        if far := head.get("far"):
            tensors = {n: calls.far_apart(t, int(far)) if t.dim() and t.shape[0] > 1 else t for n, t in tensors.items()}
        return {n: tensors[n] if n in tensors else tree.unflatten(head["scalars"][n], {}) for n in head["order"]}

    def _run(self, head: dict[str, Any], bundle: Bundle, arena: Arena, inputs: dict[str, Any], watch: DeviceWatch,
             wanted: Any, upstream: dict[str, torch.Tensor]) -> tuple[Any, list[Any], dict[str, torch.Tensor]]:  # fmt: skip
        """The result, gradients by round, and copies of the outputs as the caller's stream saw them."""
        if head.get("graph"):
            return self._replayed(bundle, arena, inputs), [], {}
        kind = head.get("stream", "")
        right = arena.raw.clone() if kind in ("side", "late") else arena.raw
        if kind in ("side", "late"):
            arena.raw.fill_(0xFF)
            errors.synchronise(self.device)
        with calls.on_stream(kind, lambda: copy(arena.raw, right)), watch, self._here():
            with torch.set_grad_enabled(bool(wanted)):
                result = self.callable(inputs)
            self.left = errors.pending() if self.device.type == "cuda" else ""  # before our own calls meet it
            leaves = tree.flatten(result)[1]
            rounds = self._backward(head, leaves, upstream, inputs, wanted) if upstream else []
        return result, rounds, self._early(leaves, kind)

    def _early(self, leaves: dict[str, torch.Tensor], kind: str) -> dict[str, torch.Tensor]:
        """The outputs as a caller sees who waits for its own stream alone."""
        if self.device.type != "cuda" or kind == "side":
            return {}
        copies = {n: t.detach().clone() for n, t in leaves.items() if type(t) in role_kernel._plain}
        torch.cuda.current_stream().synchronize()
        return copies

    def _backward(self, head: dict[str, Any], leaves: dict[str, torch.Tensor], upstream: dict[str, torch.Tensor],
                  inputs: dict[str, Any], wanted: Any) -> list[dict[str, torch.Tensor]]:  # fmt: skip
        if any(type(t) not in role_kernel._plain for t in leaves.values()):
            return []
        twice = bool(head.get("twice"))
        rounds = []
        for i in range(2 if twice else 1):
            got = backward(leaves, upstream, inputs, wanted, again=twice and i == 0)
            rounds.append({n: g.clone() for n, g in got.items()} if twice else got)
        return rounds

    def _replayed(self, bundle: Bundle, arena: Arena, inputs: dict[str, Any]) -> Any:
        """The call captured on poisoned-free but other inputs (each storage reversed), then replayed on the given ones."""
        flip_storages(arena)
        with self._here(), torch.no_grad():
            graph, result = calls.captured(lambda: self.callable(inputs))
        for t in tree.flatten(result)[1].values():
            if not any(overlap(t, v) for v in inputs.values() if isinstance(v, torch.Tensor)):
                fill(t, 0xFF)
        arena.fill_from(bundle)
        graph.replay()
        torch.cuda.synchronize()
        self.graph = graph  # its memory holds the outputs
        return result

    def _answer(self, head: dict[str, Any], structure: Any, leaves: dict[str, torch.Tensor],
                tensors: dict[str, torch.Tensor], watch: DeviceWatch) -> dict[str, Any]:  # fmt: skip
        odd = {n: type(t).__name__ for n, t in leaves.items() if type(t) not in role_kernel._plain}
        answer: dict[str, Any] = {"tree": structure, "odd": odd, "seen": watch.summary(),
                                  "threads": max(python_threads() - self.own_threads, 0), "late": [],
                                  "patched": role_kernel.tampering.replaced(self.functions)}  # fmt: skip
        if odd:
            return answer
        answer["alias"] = {n: i for n, t in leaves.items() for i, x in tensors.items() if overlap(t, x)}
        answer["requires_grad"] = {n: t.requires_grad for n, t in leaves.items()}
        answer["device"] = {n: t.device.type for n, t in leaves.items()}
        answer["stale"] = [i for i, (t, copy) in enumerate(self.kept) if not role_kernel.same_bytes(t, copy)]
        answer["zones"] = watch.zones.damage(leaves) if watch.zones is not None else []
        answer["launches"] = self.experiments.seen
        if self.triton is not None:
            answer["tuned"] = dict(self.triton.tuned)
        return answer


def copy(into: torch.Tensor, source: torch.Tensor) -> None:
    """Enqueue a copy on the current stream."""
    into.copy_(source, non_blocking=True)


def python_threads() -> int:
    """Threads that run Python; the driver's own don't count."""
    return sum(not isinstance(t, threading._DummyThread) for t in threading.enumerate())


def flip_storages(arena: Arena) -> None:
    """Other values of the same kind: each input's elements in reverse order."""
    with torch.no_grad():
        for t in arena.tensors().values():
            if t.dim():
                t.copy_(t.flip(list(range(t.dim()))).clone())
