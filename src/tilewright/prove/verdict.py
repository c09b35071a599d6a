"""Verdict: accept, reject or incomplete, with the domain it holds on and its claims.

The rule (DESIGN.md, "Words"): ``reject`` when a core or deciding gate failed with a finding that replays; ``accept``
when all core gates passed and no deciding gate failed; ``incomplete`` otherwise.
"""

from __future__ import annotations

from typing import Any, Literal

from ..task.tensors import Model
from .finding import Finding

Role = Literal["core", "deciding", "advisory"]
Status = Literal["pass", "fail", "inconclusive", "not applicable"]
Kind = Literal["sampled", "algebra", "real", "bounds", "coverage", "race-free", "rounding", "device"]
CORE = ("interface", "values", "shapes", "purity", "written", "honesty")


class Claim(Model):
    """What an accepted kernel was shown to do: ``kind`` on ``domain`` with ``strength`` (how hard it was tried)."""

    kind: Kind
    domain: str
    strength: str


class GateReport(Model):
    """One gate's answer. ``reason`` is never empty for ``inconclusive`` and ``not applicable``; ``meaning`` says in a
    few words what the status means here (``48 cases, worst error 0.7 of the budget``); ``worst`` is that error over its
    budget, as a number, over the cases that passed."""

    name: str
    role: Role
    status: Status
    reason: str = ""
    meaning: str = ""
    findings: tuple[Finding, ...] = ()
    claims: tuple[Claim, ...] = ()
    cases: int = 0
    worst: float = 0.0
    seconds: float = 0.0


class Verdict(Model):
    """The whole answer of ``check``."""

    verdict: Literal["accept", "reject", "incomplete"]
    reason: str = ""
    claims: tuple[Claim, ...] = ()
    domain: dict[str, Any] = {}
    gates: tuple[GateReport, ...] = ()
    task: str = ""
    kernel: str = ""
    kernel_sha256: str = ""
    task_sha256: str = ""
    language: str = ""
    device: str = "cpu"
    mode: Literal["default", "strict"] = "default"
    sandbox: dict[str, Any] = {}
    seconds: float = 0.0
    versions: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    id: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the gates."""
        return tuple(f for g in self.gates for f in g.findings)

    @property
    def accepted(self) -> bool:
        return self.verdict == "accept"

    @property
    def exit_code(self) -> int:
        """0 accept, 1 reject, 3 incomplete."""
        return {"accept": 0, "reject": 1, "incomplete": 3}[self.verdict]


def decide(gates: tuple[GateReport, ...]) -> tuple[Literal["accept", "reject", "incomplete"], str]:
    """The verdict that the gates' reports lead to, with its reason in one sentence."""
    for g in gates:
        if g.role != "advisory" and g.status == "fail" and any(f.replays for f in g.findings):
            first = next(f for f in g.findings if f.replays)
            return "reject", f"{g.name}: {first.summary}"
    silent = [g for g in gates if g.role == "core" and g.status in ("inconclusive", "fail")]
    if silent:
        g = silent[0]
        return "incomplete", f"{g.name} ({g.status}): {g.reason or 'a finding that does not replay'}"
    present = {g.name for g in gates}
    missing = [name for name in CORE if name not in present]
    if missing:
        return "incomplete", f"core gates not run: {', '.join(missing)}"
    unreplayed = [g for g in gates if g.role == "deciding" and g.status == "fail"]
    if unreplayed:
        return "incomplete", f"{unreplayed[0].name}: a finding that does not replay"
    return "accept", "all core gates passed and no deciding gate failed"
