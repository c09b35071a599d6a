"""The reference's child. The problem file is user code too, so it is read and run in a sealed child of its own."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import TaskError
from ...task import laws, readers, tree
from ...task.calling import Calling
from ...task.task import Workload
from ..trace import Trace
from . import watch
from .preload import seed
from .role_kernel import _nothing, backward, overlap, plain, traced
from .strayed import Strayed
from .transport import Bundle


class Role:
    """Requests: ``describe``, ``inputs``, ``state``, ``calling``, ``reference``, ``check``, ``law``."""

    def __init__(self, others: list[Any]):
        self.source: Any = None

    def on_describe(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Read the problem; the answer is its sheet."""
        self.source = readers.read(head["path"], overrides=head.get("overrides"), reference=head.get("reference"))
        return {"sheet": self.source.sheet.model_dump(mode="json")}, []

    def on_inputs(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Inputs as the problem's own code makes them: tensors in a bundle, scalars in ``scalars``, names in ``order``."""
        made = self.source.inputs(Workload.model_validate(head["workload"]), head["seed"])
        tensors = {n: v for n, v in made.items() if isinstance(v, torch.Tensor)}
        scalars = {n: tree.flatten(v)[0] for n, v in made.items() if n not in tensors}
        return {"order": list(made), "scalars": scalars}, [Bundle.pack(tensors)]

    def on_state(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Parameters and buffers of the reference, and how a kernel is called and constructed."""
        workload = Workload.model_validate(head["workload"])
        state = self.source.state(workload, head["seed"])
        how, init = self.source.calling(workload, head["seed"]) if hasattr(self.source, "calling") else (Calling(), {})
        return {"calling": how.model_dump(mode="json"), "names": list(state)}, [Bundle.pack({**state, **init})]

    def on_reference(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Run the reference. ``dtype`` "float64": the oracle (inputs come in float64). A second bundle holds the
        state, a third the cotangents, if the head says so. ``stray``: see ``strayed.py``."""
        tensors = bundles[0].tensors(copy=True)
        rest = list(bundles[1:])
        state = rest.pop(0).tensors(copy=True) if head.get("has_state") else None
        cotangents = rest.pop(0).tensors(copy=True) if head.get("has_cotangents") else None
        inputs = {n: tensors[n] if n in tensors else tree.unflatten(head["scalars"][n], {}) for n in head["order"]}
        wanted = head.get("requires_grad", [])
        for name in wanted:
            inputs[name].requires_grad_(True)
        seed(head.get("seed", 0))
        dtype = getattr(torch, head["dtype"]) if head.get("dtype") else None
        given = {n: t for n, t in inputs.items() if isinstance(t, torch.Tensor)}
        upstream = {f"grad of {n}": t for n, t in (cotangents or {}).items()}
        trace = Trace({**given, **upstream}) if head.get("trace") else None
        seen = watch.Watch(observe=head.get("observe", False))
        stray = Strayed(head["stray"]) if head.get("stray") else _nothing
        with torch.set_grad_enabled(bool(wanted)), seen, trace or _nothing, stray:
            result = self.source.reference(inputs, Workload.model_validate(head["workload"]), state, dtype=dtype)
            structure, leaves = tree.flatten(result)
            if not leaves and not any(getattr(s, "mutated", False) for s in self.source.sheet.inputs.values()):
                raise TypeError(f"the reference returned no tensor but {type(result).__name__}")
            grads = backward(leaves, cotangents, inputs, wanted) if cotangents is not None else None
        out = [Bundle.pack(plain(leaves), whole=False), Bundle.pack(plain({n: t for n, t in inputs.items()
               if isinstance(t, torch.Tensor)}), whole=False)]  # fmt: skip
        if grads is not None:
            out.append(Bundle.pack(plain(grads), whole=False))
        return {
            "tree": structure,
            "trace": None if trace is None else traced(trace, leaves, [grads] if grads else [], given, head),
            "seen": seen.summary(),
            "requires_grad": {n: t.requires_grad for n, t in leaves.items()},
            "alias": {
                n: i
                for n, t in leaves.items()
                for i, x in inputs.items()
                if isinstance(x, torch.Tensor) and overlap(t, x)
            },
        }, out

    def on_law(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Whether a law of the task holds. The law calls the kernel through ``run``, which lives elsewhere: the first call
        whose result isn't known yet ends the attempt, and the answer says what to run; the next request brings all
        results so far. So a law runs from its start several times, under one seed. ``self``: run the reference."""
        first, given = bundles[0].tensors(copy=True), [b.tensors(copy=True) for b in bundles[1:]]
        inputs = {n: first[n] if n in first else tree.unflatten(head["scalars"][n], {}) for n in head["order"]}
        known = [tree.unflatten(t, b) for t, b in zip(head["results"], given, strict=True)]
        workload = Workload.model_validate(head["workload"])
        local = (lambda x: self.source.reference(x, workload, {}, dtype=None)) if head.get("self") else None
        run = laws.Runner(inputs, known, local)
        seed(head.get("seed", 0))
        try:
            ok, message = self.source.law(head["name"], run, {n: _copy(v) for n, v in inputs.items()}), ""
        except laws.Needed as e:
            tensors = {n: v for n, v in e.inputs.items() if isinstance(v, torch.Tensor)}
            scalars = {n: tree.flatten(v)[0] for n, v in e.inputs.items() if n not in tensors}
            need = {"order": list(e.inputs), "scalars": scalars, "gradient": e.gradient}
            more = [Bundle.pack(e.cotangents)] if e.gradient else []
            return {"need": need}, [Bundle.pack(tensors), *more]
        except TaskError as e:
            if not isinstance(e.__cause__, AssertionError):
                raise
            ok, message = False, str(e.__cause__)
        return {"ok": bool(ok), "message": message[:2000]}, []

    def on_check(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """The problem's own checker, where the contract's postcondition is ``checker``."""
        inputs, outputs = bundles[0].tensors(copy=True), bundles[1].tensors(copy=True)
        made = {n: inputs[n] if n in inputs else tree.unflatten(head["scalars"][n], {}) for n in head["order"]}
        got = self.source.check(made, tree.unflatten(head["tree"], outputs))
        return {"ok": None if got is None else bool(got[0]), "message": "" if got is None else str(got[1])}, []


def _copy(v: Any) -> Any:
    return v.clone() if isinstance(v, torch.Tensor) else v
