"""The loop: ask → propose → check → time → tell, one trial at a time, every state recorded before the next begins.

A run that goes on is led through its recorded steps first: the strategy is asked again and must choose the same (it
draws from a generator that depends on the seed and the step alone), and is told the recorded node. The step that was in
flight is taken up from its last recorded state.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ..errors import InternalError, TilewrightError
from ..prove.verdict import Verdict
from ..task.task import TaskSheet
from . import cascade
from .budget import Budget, spent_out
from .cascade import Checked, Evaluator, Timed
from .finalists import Conclusion
from .limits import limits
from .store import Step
from .tree import Choice, Context, Cost, Left, Node, Proposal, Proposer, Strategy, Timing, Tree

PATIENCE = 64
"""Steps in a row without a new proposal after which nothing more is expected."""


class Book(Protocol):
    """Where a run is recorded: ``RunStore``, or ``memory.Memory`` for studies."""

    @property
    def id(self) -> str: ...
    def event(self, step: int, state: str, body: Mapping[str, Any]) -> None: ...
    def proposed(self, step: int, proposal: Proposal) -> None: ...
    def told(self, node: Node) -> None: ...
    def seconds(self) -> float: ...
    def steps(self) -> list[Step]: ...


@dataclass(frozen=True)
class Subject:
    """What is searched: the task without its hidden workloads, and the kernel that the run begins with."""

    sheet: TaskSheet
    problem: str
    kernel_path: str
    language: str
    entry: str
    start: Proposal
    device: str = "cpu"
    private: tuple[Path, ...] = ()
    verdict: Callable[[Node], Verdict | None] = lambda node: None
    explain: Callable[[Node], str] = lambda node: ""


class Run:
    """A search. ``notify(run, state)`` is called after each recorded state."""

    def __init__(
        self, book: Book, subject: Subject, evaluator: Evaluator, strategy: Strategy, proposers: Mapping[str, Proposer],
        budget: Budget, *, seed: int = 0, finalists: int = 3, level: float = 0.95, patience: int = PATIENCE,
        notify: Callable[[Run, str], None] | None = None,
    ):  # fmt: skip
        self.book, self.subject, self.evaluator = book, subject, evaluator
        self.strategy, self.proposers, self.budget = strategy, dict(proposers), budget
        self.seed, self.finalists, self.level, self.patience = seed, finalists, level, patience
        self.notify = notify or (lambda run, state: None)
        self.tree = Tree()
        self.codes: dict[str, int] = {}
        self.cost = Cost()
        self.declined = 0
        self.declines: list[str] = []
        self.checks: list[float] = []
        self.trials: list[float] = []
        self.arms: dict[str, Sequence[str]] | None = None

    def go(self) -> Conclusion:
        """Everything, from the beginning or from where it was; the conclusion is recorded as well."""
        from .final import finish

        known = {s.number: s for s in self.book.steps()}
        if (ended := next((s.states["ended"] for s in known.values() if "ended" in s.states), None)) is not None:
            self.tree = Tree({s.node.number: s.node for s in known.values() if s.node is not None})
            return Conclusion(**ended)
        self.begin()
        self._root(known.get(0, Step(0)))
        number, stopped = 1, ""
        while not stopped:
            step = known.get(number)
            if step is None or "finals" in step.states:
                stopped = step.states["finals"]["stopped"] if step is not None else self.stop()
            if not stopped:
                self._step(step or Step(number))
                number += 1
        return finish(self, known, number, stopped)

    def begin(self) -> None:
        """Ask all proposers what they need, once, before anything is recorded: what stops a run must not leave one behind.

        They see the first kernel as it was given; nothing is known of it yet.
        """
        if self.arms is not None:
            return
        first, arms = Node(number=0, parent=None, proposal=self.subject.start), {}
        for name, proposer in self.proposers.items():
            with self._scratch() as scratch:
                rng = random.Random(f"{self.seed}/begin/{name}")
                context = self._context(Choice(0), first, scratch, rng)
                proposer.begin(replace(context, tree=Tree({0: first})))
            arms[name] = proposer.arms
        self.arms = arms

    def stop(self) -> str:
        """Why no further trial is begun; empty if one is."""
        if self.declined >= self.patience:
            return f"nothing new to try: {self.declines[-1]}"
        return spent_out(self.left(), self.budget.reserve, self.trials)

    def left(self) -> Left:
        spent = self.cost.model_copy(update={"seconds": self.book.seconds()})
        return self.budget.left(max(len(self.tree) - 1, 0), spent)

    # one step

    def _root(self, known: Step) -> None:
        node = known.node
        if known.proposal is None:
            self.book.proposed(0, self.subject.start)
        if node is None:
            node = self._trial(known, 0, None, self.subject.start)
        else:
            self.evaluator.begin(node.proposal, Checked(**known.states["checked"]))
        self.tree.add(node)
        self.strategy.begin(self.arms or {})
        self._tell(node, known)

    def _step(self, known: Step) -> None:
        choice = self._choice(known)
        if "declined" in known.states:
            return self._decline(choice, known.states["declined"])
        proposal = known.proposal
        if proposal is None:
            proposal, declined = self._propose(known.number, choice)
            if proposal is None:
                self.book.event(known.number, "declined", declined)
                return self._decline(choice, declined)
            self.book.proposed(known.number, proposal)
            self.notify(self, "proposed")
        node = known.node or self._trial(known, len(self.tree), choice, proposal)
        self.tree.add(node)
        self._tell(node, known)

    def _choice(self, known: Step) -> Choice:
        choice = self.strategy.ask(self.tree, self._rng(known.number, "ask"))
        if choice.proposer is None:
            drawn = self._rng(known.number, "proposer").choice(sorted(self.proposers))
            choice = Choice(choice.parent, drawn, choice.skill, choice.others)
        body = asdict(choice) | {"others": list(choice.others)}
        if "asked" not in known.states:
            self.book.event(known.number, "asked", body)
            self.notify(self, "asked")
        elif known.states["asked"] != body:
            raise InternalError(
                f"strategy '{self.strategy.name}' chose {body} in step {known.number} where the recorded run "
                f"chose {known.states['asked']}: it depends on more than what it was told",
                remedy="go on with the version of Tilewright that began the run, or begin a new one (--fresh)",
            )
        return choice

    def _propose(self, number: int, choice: Choice) -> tuple[Proposal | None, dict[str, Any]]:
        assert choice.proposer is not None
        proposer = self.proposers[choice.proposer]
        with self._scratch() as scratch:
            context = self._context(choice, self.tree[choice.parent], scratch, self._rng(number, "propose"))
            try:
                proposal = proposer.propose(context)
                reason, cost = getattr(proposer, "trouble", ""), getattr(proposer, "spent", Cost())
            except TilewrightError:
                raise  # no key, no program: the user must know
            except Exception as e:
                proposal, reason, cost = None, f"{choice.proposer} raised {type(e).__name__}: {e}", Cost()
        if proposal is not None and (same := self.codes.get(proposal.sha256())) is not None:
            reason, cost, proposal = f"the same code as #{same}", proposal.cost, None
        return proposal, {"reason": reason or f"{choice.proposer} has nothing to propose", "cost": cost.model_dump()}

    def _decline(self, choice: Choice, body: Mapping[str, Any]) -> None:
        self.declined += 1
        self.declines.append(body["reason"])
        self.cost += Cost(**body["cost"])
        self.strategy.declined(choice, body["reason"])
        self.notify(self, "declined")

    # one trial

    def _trial(self, known: Step, number: int, choice: Choice | None, proposal: Proposal) -> Node:
        parent = self.tree[choice.parent] if choice else None
        checked = self._checked(known, number, proposal)
        if number == 0:
            self.evaluator.begin(proposal, checked)
        timed = self._timed(known, proposal, checked) if checked.accepted else Timed(failure=checked.failure)
        failure = timed.failure or (cascade.slower(timed.timing, parent) if timed.timing else None)
        cost = proposal.cost + timed.cost + Cost(seconds=checked.seconds)
        node = Node(
            number=number, parent=choice.parent if choice else None, proposal=proposal, step=known.number,
            others=choice.others if choice else (), kernel=checked.kernel, verdict=checked.verdict,
            accepted=checked.accepted, timing=timed.timing, failure=failure, cost=cost, descriptors=checked.descriptors,
        )  # fmt: skip
        self.book.told(node)
        return node

    def _checked(self, known: Step, number: int, proposal: Proposal) -> Checked:
        if "checked" in known.states:
            return Checked(**known.states["checked"])
        fault = cascade.parse(proposal, self.subject.language)
        checked = Checked(failure=fault) if fault else self.evaluator.check(proposal, number, limits(self.checks))
        self._record(known, "checked", checked)
        return checked

    def _record(self, known: Step, state: str, what: Checked | Timed) -> None:
        known.states[state] = what.model_dump(mode="json")
        self.book.event(known.number, state, known.states[state])
        self.notify(self, state)

    def _timed(self, known: Step, proposal: Proposal, checked: Checked) -> Timed:
        if "timed" in known.states:
            return Timed(**known.states["timed"])
        timed = self.evaluator.time(proposal, checked, full=False)
        if timed.timing is not None and cascade.worth_full(timed.timing, self.tree.best()):
            quick, timed = timed, self.evaluator.time(proposal, checked, full=True)
            timed = timed.model_copy(update={"cost": quick.cost + timed.cost})
        if len(self.tree) == 0 and timed.timing is not None:
            timed = timed.model_copy(update={"timing": _itself(timed.timing)})
        self._record(known, "timed", timed)
        return timed

    def _tell(self, node: Node, known: Step) -> None:
        self.declined = 0
        self.codes.setdefault(node.proposal.sha256(), node.number)
        self.cost += node.cost
        if node.accepted:
            self.checks.append(known.states["checked"]["seconds"])
        if node.number:
            self.trials.append(node.cost.seconds)
        self.strategy.tell(node)
        for proposer in self.proposers.values():
            proposer.tell(node)
        self.notify(self, "told")

    # what others are given

    def _rng(self, step: int, what: str) -> random.Random:
        return random.Random(f"{self.seed}/{step}/{what}")

    def _scratch(self) -> Any:
        return _Folder()

    def _context(self, choice: Choice, parent: Node, scratch: Path, rng: random.Random) -> Context:
        s = self.subject
        return Context(
            parent=parent, tree=self.tree, sheet=s.sheet, problem=s.problem, kernel_path=s.kernel_path,
            language=s.language, entry=s.entry, develop=tuple(w for w in s.sheet.workloads if w.kind != "hidden"),
            left=self.left(), rng=rng, scratch=scratch, skill=choice.skill,
            others=tuple(self.tree[n] for n in choice.others), device=s.device, private=s.private,
            verdict=lambda: s.verdict(parent), explain=lambda: s.explain(parent),
        )  # fmt: skip


class _Folder:
    """A folder for one proposal, gone afterwards."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix="tilewright-"))
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _itself(timing: Timing) -> Timing:
    """The first kernel is the yardstick: its ratio is 1, and its interval what a comparison with itself leaves open."""
    return timing.model_copy(update={"ratio": 1.0, "low": min(timing.low, 1.0), "high": max(timing.high, 1.0)})
