"""The child that judges timed calls on a device: truth and comparison where 67 million elements take milliseconds, not the
quarter of a minute that they take in the parent. The problem's reference runs here, the kernel never does.

It shares the arena of the timed children: the drawn sets and the recipe of a call's inputs, so both make the same inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from ...task import tree
from ...task.calling import Calling
from ...task.task import TaskSheet, Workload
from ..case import Case, Recipe
from ..examination import Examination
from . import gpu, role_reference, timing_device, watch
from .preload import seed
from .session import Outcome, Trouble
from .transport import Bundle


class Role(role_reference.Role):
    """Requests: ``describe``, ``seat``, ``form``, ``judge``."""

    def on_seat(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Take a seat at a workload: the arena's memory, and the state that the reference starts from."""
        device = gpu.Host() if head["device"] == "host" else gpu.Cuda()
        self.kept = list(bundles)
        state = {n: device.up(t) for n, t in bundles[1].tensors(copy=True).items()}
        self.feed = timing_device.Inputs(device, head, bundles[0].tensors())
        self.workload, self.calling = Workload.model_validate(head["workload"]), Calling.model_validate(head["calling"])
        self.exam = Bench(self.source, head, device.device)
        self.state, self.device = state, device
        self.case: tuple[bytes, Case] | None = None
        return {"seated": True}, []

    def _case(self) -> Case:
        """The call that the shared recipe tells of; of calls with the same inputs the truth is worked out once."""
        told = self.feed.told()
        if self.case is None or self.case[0] != told:
            self.exam._truths.clear()
            made = {n: torch.empty_like(t) for n, t in self.feed.sets[0].items()}
            self.feed.make(made)
            inputs = self.feed.named(made)
            recipe = Recipe(self.workload, seed=0, extra=(("state", "as made"),))
            self.case = told, Case(recipe, inputs, self.state, self.calling, changed=True)
        return self.case[1]

    def on_form(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Names, dtypes and shapes of the outputs, by the reference in the kernel's own dtypes."""
        truth = self.exam.truth(self._case())
        if truth.refused is not None or truth.baseline is None:
            return {"refused": truth.refused.message if truth.refused is not None else truth.note}, []
        return {
            "outputs": {n: [str(t.dtype).removeprefix("torch."), list(t.shape)] for n, t in truth.baseline.items()}
        }, []

    def on_judge(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Whether the outputs of a call are right, as a check would judge them."""
        given = bundles[0].tensors()
        outcome = Outcome(outputs={n: self.device.up(t) for n, t in given.items()}, tree=head["tree"], odd=head["odd"])
        check = self.exam.judge(self._case(), outcome)
        del outcome
        self.device.trim()
        return {"check": asdict(check)}, []


class Bench(Examination):
    """An examination that only judges; its reference runs in this process."""

    def __init__(self, source: Any, head: Mapping[str, Any], device: torch.device):
        sheet: TaskSheet = source.sheet
        super().__init__(sheet, None, Here(source, device), strict=head["strict"], seed=head["seed"])  # type: ignore[arg-type]

    def reopen_reference(self) -> None:
        """It lives where this does."""


class Here:
    """The reference in this process, on a device; asked as a ``ReferenceSession`` is."""

    def __init__(self, source: Any, device: torch.device):
        self.source, self.device = source, device

    def run_many(self, runs: list[dict[str, Any]]) -> list[Outcome]:
        return [self._run(**r) for r in runs]

    def _run(self, *, inputs: Mapping[str, Any], workload: Workload, state: Mapping[str, torch.Tensor] | None = None,
             dtype: str | None = None, observe: bool = False, **options: Any) -> Outcome:  # fmt: skip
        own = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in inputs.items()}
        held = None if state is None else {n: t.clone() for n, t in state.items()}
        seed(options.get("seed", 0))
        seen = watch.Watch(observe=observe)
        try:
            with torch.no_grad(), self.device, seen:
                result = self.source.reference(
                    own, workload, held, dtype=None if dtype is None else getattr(torch, dtype)
                )
        except Exception as e:  # a reference may raise anything
            return Outcome(trouble=Trouble("exception", str(e)[:2000], type=type(e).__name__))
        structure, leaves = tree.flatten(result)
        # What it leaves in its inputs is not kept: no task that writes them is timed here, and in float64 they are large.
        return Outcome(outputs={n: t.detach() for n, t in leaves.items()}, tree=structure, seen=seen.summary())

    def check(self, inputs: Mapping[str, Any], outcome: Outcome) -> tuple[bool | None, str]:
        """What the problem's own checker says of a result."""
        got = self.source.check(dict(inputs), tree.unflatten(outcome.tree, outcome.outputs))
        return (None, "") if got is None else (bool(got[0]), str(got[1]))
