"""The candidate's child: load it, call it, hand back what it returned."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
from typing import Any

import torch

from ...kernel import languages
from ...task import calling, tree
from . import watch
from .transport import Bundle

_memmove = ctypes.memmove
_plain = (torch.Tensor, torch.nn.Parameter)


class Role:
    """Requests: ``load``, ``build``, ``call``."""

    def __init__(self, others: list[Any]):
        self.evaluator = others[0] if others else None
        self.loaded: Any = None
        self.callable: Any = None
        self.calls = 0
        self.kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def on_load(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Run the candidate's file. After this, Tilewright can't be imported here."""
        language = importlib.import_module(f"{languages.__name__}.{head['language']}")
        hide_tilewright()
        self.threads = threads()
        self.loaded = language.Loaded(head["kernel"], self.evaluator)
        return {"loaded": True}, []

    def on_build(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Make the callable: for a module, construct it and copy the reference's state in."""
        how = calling.Calling.model_validate(head["calling"])
        state = bundles[0].tensors(copy=True) if bundles else {}
        self.callable = self.loaded.build(how, state)
        return {"built": True}, []

    def on_call(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Call once. Options: ``scalars`` (name to tree), ``order``, ``requires_grad`` (names), ``poison`` (byte),
        ``observe``; a second bundle holds cotangents by output name."""
        tensors = bundles[0].tensors()
        inputs = {n: tensors[n] if n in tensors else tree.unflatten(head["scalars"][n], {}) for n in head["order"]}
        for name in head.get("requires_grad", ()):
            inputs[name].requires_grad_(True)
        self.calls += 1
        torch.manual_seed(head.get("seed", 0))
        with watch.Watch(poison=head.get("poison"), observe=head.get("observe", False)) as seen:
            if head.get("requires_grad"):
                result = self.callable(inputs)
            else:
                with torch.no_grad():
                    result = self.callable(inputs)
            structure, leaves = tree.flatten(result)
            odd = {n: type(t).__name__ for n, t in leaves.items() if type(t) not in _plain}
            grads: dict[str, torch.Tensor] = {}
            if len(bundles) > 1 and not odd:
                grads = backward(leaves, bundles[1].tensors(copy=True), inputs, head["requires_grad"])
        answer: dict[str, Any] = {
            "tree": structure,
            "odd": odd,
            "seen": seen.summary(),
            "threads": threads() - self.threads,
        }
        if odd:
            return answer, []
        answer["alias"] = {n: i for n, t in leaves.items() for i, x in tensors.items() if overlap(t, x)}
        answer["requires_grad"] = {n: t.requires_grad for n, t in leaves.items()}
        answer["device"] = {n: t.device.type for n, t in leaves.items()}
        answer["stale"] = [i for i, (t, copy) in enumerate(self.kept) if not same_bytes(t, copy)]
        packed = Bundle.pack(plain(leaves), whole=False)
        if head.get("keep"):
            self.kept = [(t.detach(), t.detach().clone()) for t in leaves.values()]
        answer["has_grads"] = bool(grads) or len(bundles) > 1
        out = [packed]
        if answer["has_grads"]:
            out.append(Bundle.pack(plain(grads), whole=False))
        return answer, out


def plain(leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Strided CPU tensors with conjugate and negative bits resolved."""
    return {n: t.detach().cpu().resolve_conj().resolve_neg() if t.layout is torch.strided
            else t.detach().to_dense() for n, t in leaves.items()}  # fmt: skip


def backward(
    outputs: dict[str, torch.Tensor], cotangents: dict[str, torch.Tensor], inputs: dict[str, Any], wanted: list[str]
) -> dict[str, torch.Tensor]:
    """Gradients of ``wanted`` inputs for the given cotangents; an input without gradient is left out."""
    pairs = [(outputs[n], c) for n, c in cotangents.items() if n in outputs and outputs[n].requires_grad]
    if not pairs:
        return {}
    names = [n for n in wanted if n in inputs]
    got = torch.autograd.grad(
        [o for o, _ in pairs], [inputs[n] for n in names], [c for _, c in pairs], allow_unused=True
    )
    return {n: g for n, g in zip(names, got, strict=True) if g is not None}


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors share a byte of memory (by storage)."""
    x, y = a.untyped_storage(), b.untyped_storage()
    if x.nbytes() == 0 or y.nbytes() == 0:
        return False
    return x.data_ptr() < y.data_ptr() + y.nbytes() and y.data_ptr() < x.data_ptr() + x.nbytes()


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.contiguous().view(torch.uint8) if a.dim() else a.reshape(1).view(torch.uint8),
                                              b.contiguous().view(torch.uint8) if b.dim() else b.reshape(1).view(torch.uint8))  # fmt: skip


def threads() -> int:
    """Threads of this process, as the kernel counts them."""
    return max(len(os.listdir("/proc/self/task")), threading.active_count())


class _Hidden:
    """Import hook that knows no Tilewright."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.split(".")[0] == "tilewright":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide_tilewright() -> None:
    """A candidate must not be able to tell that it is being checked: drop our modules and our import paths."""
    for name in [m for m in sys.modules if m.split(".")[0] == "tilewright"]:
        del sys.modules[name]
    sys.meta_path[:] = [_Hidden(), *[f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")
                                     and "editable" not in getattr(f, "__name__", "").lower()]]  # fmt: skip
