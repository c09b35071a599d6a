"""The judge of timed calls on a device, in its sealed child: what the parent asks it."""

from __future__ import annotations

from typing import Any

import torch

from ..gate import Check
from .session import Outcome, Session, Trouble, trouble
from .transport import Bundle


class JudgeSession(Session):
    """Judges calls of one workload. ``device``: ``cuda``, or ``host`` for host memory in its place."""

    def __init__(self, device: str, **options: Any):
        self.device = device
        super().__init__("judge", name="judge", **options)

    def seat(self, problem: str, opened: dict[str, Any], head: dict[str, Any], arena: Bundle,
             state: dict[str, torch.Tensor]) -> Trouble | None:  # fmt: skip
        """Read the problem and take over the memory in which the parent describes inputs."""
        asked = {"do": "describe", "path": problem, **{k: opened.get(k) for k in ("overrides", "reference")}}
        answer, _ = self.ask_raw(asked)
        if "error" not in answer:
            bundle = Bundle.pack(state)
            answer, _ = self.ask_raw({"do": "seat", "device": self.device, **head}, (arena, bundle))
            bundle.close()
        return trouble(answer["error"]) if "error" in answer else None

    def form(self) -> dict[str, torch.Tensor] | Trouble:
        """Empty tensors of the outputs' dtypes and shapes."""
        answer, _ = self.ask_raw({"do": "form"})
        if "error" in answer:
            return trouble(answer["error"])
        if "refused" in answer:
            return Trouble("exception", answer["refused"])
        return {n: torch.empty(shape, dtype=getattr(torch, dtype)) for n, (dtype, shape) in answer["outputs"].items()}

    def judge(self, outcome: Outcome, bundle: Bundle | None = None) -> Check | Trouble:
        """Whether a call's outputs are right, for the inputs that were described last. ``bundle``: where the outputs lie."""
        held = bundle or Bundle.pack(outcome.outputs, whole=False)
        answer, _ = self.ask_raw({"do": "judge", "tree": outcome.tree, "odd": outcome.odd}, (held,))
        if bundle is None:
            held.close()
        return trouble(answer["error"]) if "error" in answer else Check(**answer["check"])
