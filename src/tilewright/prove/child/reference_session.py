"""The reference in its sealed child: what the parent asks it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import torch

from ...task import tree
from ...task.calling import Calling
from ...task.task import TaskSheet, Workload
from .session import Inputs, LawAnswer, Outcome, Session, Trouble, split, trouble
from .transport import Bundle


class ReferenceSession(Session):
    """The reference in its sealed child."""

    def __init__(self, **options: Any):
        self.lock = threading.Lock()  # the truth of a case may be asked for from another thread
        super().__init__("reference", name="reference", **options)

    def request(
        self, head: dict[str, Any], bundles: tuple[Bundle, ...] = (), seconds: float | None = None
    ) -> tuple[dict[str, Any], list[Bundle]]:
        with self.lock:
            answer, out = self.ask_raw(head, bundles, seconds=seconds)
        for b in bundles:
            b.close()
        return answer, out

    def describe(self, path: str, *, overrides: str | None = None, reference: str | None = None) -> TaskSheet | Trouble:
        """Read the problem."""
        answer, _ = self.request({"do": "describe", "path": path, "overrides": overrides, "reference": reference})
        return trouble(answer["error"]) if "error" in answer else TaskSheet.model_validate(answer["sheet"])

    def inputs(self, workload: Workload, seed: int) -> dict[str, Any] | Trouble:
        """Inputs as the problem makes them."""
        answer, out = self.request({"do": "inputs", "workload": workload.model_dump(mode="json"), "seed": seed})
        if "error" in answer:
            return trouble(answer["error"])
        tensors = out[0].tensors(copy=True)
        out[0].close()
        return {n: tensors[n] if n in tensors else tree.unflatten(answer["scalars"][n], {}) for n in answer["order"]}

    def state(self, workload: Workload, seed: int) -> tuple[Calling, dict[str, torch.Tensor]] | Trouble:
        """How a kernel is called at this workload, and the tensors that it starts from."""
        answer, out = self.request({"do": "state", "workload": workload.model_dump(mode="json"), "seed": seed})
        if "error" in answer:
            return trouble(answer["error"])
        tensors = out[0].tensors(copy=True)
        out[0].close()
        return Calling.model_validate(answer["calling"]), tensors

    def run(self, inputs: Inputs, workload: Workload, **options: Any) -> Outcome:
        """The reference's result on ``inputs``. Options: ``state``, ``dtype`` ("float64": the oracle),
        ``requires_grad``, ``cotangents``, ``seed``, ``observe``, ``stray`` (``strayed.py``)."""
        return self.run_many([{"inputs": inputs, "workload": workload, **options}])[0]

    def check(self, inputs: Inputs, outcome: Outcome) -> tuple[bool | None, str]:
        """What the problem's own checker says of a result; None: it says nothing."""
        tensors, scalars = split(inputs)
        head = {"do": "check", "order": list(inputs), "scalars": scalars, "tree": outcome.tree}
        answer, _ = self.request(head, (Bundle.pack(tensors), Bundle.pack(outcome.outputs)))
        if "error" in answer:
            return None, str(trouble(answer["error"]))
        return answer["ok"], str(answer["message"])

    def run_many(self, runs: list[dict[str, Any]]) -> list[Outcome]:
        """Several runs in one message; each is a dict of the arguments of ``run``."""
        requests = [self._request(**r) for r in runs]
        heads = [{**head, "bundles": [b.head for b in bundles]} for head, bundles in requests]
        answer, out = self.request(
            {"do": "batch", "requests": heads}, tuple(b for _, bundles in requests for b in bundles)
        )
        if "error" in answer:
            return [Outcome(trouble=trouble(answer["error"])) for _ in runs]
        outcomes = []
        for one in answer["answers"]:
            outcomes.append(self._result(one, out[: one["made"]]))
            for b in out[: one["made"]]:
                b.close()
            out = out[one["made"] :]
        return outcomes

    def _request(
        self, *, inputs: Inputs, workload: Workload, state: Mapping[str, torch.Tensor] | None = None,
        dtype: str | None = None, requires_grad: tuple[str, ...] = (),
        cotangents: Mapping[str, torch.Tensor] | None = None, seed: int = 0, observe: bool = False,
        trace: bool = False, mutated: tuple[str, ...] = (), stray: float = 0.0,
    ) -> tuple[dict[str, Any], list[Bundle]]:  # fmt: skip
        tensors, scalars = split(inputs)
        bundles = [Bundle.pack(tensors)]
        bundles += [Bundle.pack(state)] if state is not None else []
        bundles += [Bundle.pack(cotangents)] if cotangents is not None else []
        head = {
            "do": "reference",
            "order": list(inputs),
            "scalars": scalars,
            "workload": workload.model_dump(mode="json"),
            "dtype": dtype,
            "has_state": state is not None,
            "has_cotangents": cotangents is not None,
            "requires_grad": list(requires_grad),
            "seed": seed,
            "observe": observe,
            "trace": trace,
            "mutated": list(mutated),
            "stray": stray,
        }
        return head, bundles

    def _result(self, answer: dict[str, Any], out: list[Bundle]) -> Outcome:
        if "error" in answer:
            return Outcome(trouble=trouble(answer["error"]))
        return Outcome(
            outputs=out[0].tensors(copy=True), inputs_after=out[1].tensors(copy=True), tree=answer["tree"],
            grads=out[2].tensors(copy=True) if len(out) > 2 else {}, seen=answer["seen"],
            requires_grad=answer["requires_grad"], alias=dict(answer["alias"]), trace=answer.get("trace"),
        )  # fmt: skip

    def law(self, name: str, inputs: Inputs, workload: Workload, results: list[Outcome], *, seed: int = 0,
            itself: bool = False) -> LawAnswer:  # fmt: skip
        """Go on with a law of the task, given the results of the runs that it asked for so far (gradients stand in
        ``grads``). ``itself``: on the reference instead."""
        tensors, scalars = split(inputs)
        given = [o.grads or o.outputs for o in results]
        trees = [{"dict": {n: {"$": n} for n in o.grads}} if o.grads else o.tree for o in results]
        head = {"do": "law", "name": name, "order": list(inputs), "scalars": scalars, "results": trees, "self": itself,
                "workload": workload.model_dump(mode="json"), "seed": seed}  # fmt: skip
        answer, out = self.request(head, (Bundle.pack(tensors), *(Bundle.pack(g) for g in given)))
        if "error" in answer:
            return LawAnswer(trouble=trouble(answer["error"]))
        if "need" not in answer:
            return LawAnswer(ok=bool(answer["ok"]), message=str(answer["message"]))
        need, found = answer["need"], out[0].tensors(copy=True)
        asked = {n: found[n] if n in found else tree.unflatten(need["scalars"][n], {}) for n in need["order"]}
        cotangents = out[1].tensors(copy=True) if need["gradient"] else {}
        return LawAnswer(inputs=asked, gradient=tuple(need["gradient"]), cotangents=cotangents)
