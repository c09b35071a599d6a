"""The words of a search: Proposal, Timing, Failure, Node, Tree, Context, and what a Proposer and a Strategy are.

    choice   = strategy.ask(tree, rng)          which node to go on from, by whom
    proposal = proposer.propose(context)        a new source, or None ("nothing to propose here")
    node     = prove, then measure              the trial, recorded
    strategy.tell(node); proposer.tell(node)

A run that was killed is rebuilt by telling its recorded nodes again in their order. So a strategy and a proposer keep no
state but what ``tell`` and ``declined`` give them, and draw from the random generator they are handed, which depends on
the run's seed and the number of the step alone.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from ..prove.verdict import Verdict
from ..task.task import TaskSheet, Workload
from ..task.tensors import Model

Scalar = int | float | bool | str
Kind = Literal["compile", "launch", "wrong", "unstable", "slower", "cheating", "over floor", "timeout", "undecided"]
"""Why a trial gained nothing. ``undecided``: the verdict is incomplete, so nothing may be measured."""


DRY = 3
"""A node from which nothing new came so often in a row is left alone while there are others."""


class Cost(Model):
    """What a proposal or a trial used. ``money`` is in the unit of the price list that the proposer was given."""

    seconds: float = 0.0
    gpu_seconds: float = 0.0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(seconds=self.seconds + other.seconds, gpu_seconds=self.gpu_seconds + other.gpu_seconds,
                    tokens=self.tokens + other.tokens, money=self.money + other.money)  # fmt: skip


class Message(Model):
    """One message of the talk that led to a proposal. ``role``: system, user, assistant, tool, judge."""

    role: str
    text: str


class Proposal(Model):
    """A new version of the entry file. Data from outside: nothing in it is trusted.

    ``files``: other files that change, by name relative to the entry file. ``skill``: what was applied, as one of the
    proposer's arms. ``parameters``: the values of declared parameters. ``predicted``: expected time of the parent over
    expected time of this (1.1: ten per cent faster), if the proposer says.
    """

    source: str
    proposer: str
    skill: str = ""
    title: str = ""
    rationale: str = ""
    files: dict[str, str] = {}
    parameters: dict[str, Scalar] = {}
    predicted: float | None = None
    messages: tuple[Message, ...] = ()
    cost: Cost = Cost()
    extra: dict[str, Any] = {}

    def sha256(self) -> str:
        """Identity of the code, whoever proposed it."""
        key = "\0".join((self.source, *(f"{n}\0{t}" for n, t in sorted(self.files.items()))))
        return hashlib.sha256(key.encode()).hexdigest()


class Timing(Model):
    """Times of one kernel. ``ratio`` is the time of the run's yardstick (its starting kernel, if that was accepted) over
    the time of this one, from paired samples, as a geometric mean over the workloads; with its interval.
    ``measurement`` is the id of the record in the ledger."""

    seconds: float
    ratio: float
    low: float
    high: float
    samples: int = 0
    full: bool = False
    workloads: dict[str, float] = {}
    measurement: str = ""


class Failure(Model):
    """Why a trial gained nothing: its kind, one sentence, and the findings (``gate: summary``) behind it."""

    kind: Kind
    message: str
    findings: tuple[str, ...] = ()
    where: str = ""


class Node(Model):
    """One trial. ``number`` counts from 0 (the kernel that the run began with); ``parent`` is a number too.

    ``timing`` is there when the kernel was accepted and measured, ``failure`` when it gained nothing: a kernel that is
    right but slower than its parent has both.
    """

    number: int
    parent: int | None
    proposal: Proposal
    others: tuple[int, ...] = ()
    step: int = 0
    kernel: str = ""
    verdict: str = ""
    accepted: bool = False
    timing: Timing | None = None
    failure: Failure | None = None
    descriptors: dict[str, Scalar] = {}
    cost: Cost = Cost()

    @property
    def source(self) -> str:
        return self.proposal.source

    @property
    def ok(self) -> bool:
        """Accepted and measured: fit to be a parent and a winner."""
        return self.accepted and self.timing is not None

    @property
    def score(self) -> float | None:
        """Log of the speed ratio over the run's yardstick; None for what has no right to a number."""
        return math.log(self.timing.ratio) if self.ok and self.timing and self.timing.ratio > 0 else None


@dataclass
class Tree:
    """All nodes of a run, by number."""

    nodes: dict[int, Node] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        self.nodes[node.number] = node

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, number: int) -> Node:
        return self.nodes[number]

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def children(self, number: int) -> list[Node]:
        return [n for n in self if n.parent == number]

    def lineage(self, number: int) -> list[Node]:
        """From the root to this node, both included."""
        line = [self.nodes[number]]
        while line[-1].parent is not None:
            line.append(self.nodes[line[-1].parent])
        return line[::-1]

    def ranked(self) -> list[Node]:
        """Nodes that may win, fastest first; the earlier of equals first."""
        return sorted((n for n in self if n.ok), key=lambda n: (-(n.score or 0.0), n.number))

    def best(self) -> Node | None:
        return next(iter(self.ranked()), None)

    def diff(self, number: int) -> str:
        """Unified diff from the parent's entry file to this one's; empty for the root."""
        node = self.nodes[number]
        if node.parent is None:
            return ""
        old, new = self.nodes[node.parent].source, node.source
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"#{node.parent}", f"#{number}", lineterm="")
        return "\n".join(lines)


class Left(Model):
    """What is left of the budget; None where there is no limit."""

    trials: float | None = None
    seconds: float | None = None
    gpu_seconds: float | None = None
    tokens: float | None = None
    money: float | None = None


@dataclass(frozen=True)
class Choice:
    """What a strategy asks for: go on from ``parent``; by ``proposer`` and with ``skill``, if it cares; ``others`` are
    further nodes to learn from (crossover, inspiration)."""

    parent: int
    proposer: str | None = None
    skill: str | None = None
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class Context:
    """All that a proposer may know. ``sheet`` and ``develop`` hold no hidden workload; ``verdict()`` and ``explain()``
    are looked up when called. ``scratch`` is a folder for files of its own, emptied after the proposal. ``private`` are
    files and folders that no program which proposes may see: the ledger, and the run's own."""

    parent: Node
    tree: Tree
    sheet: TaskSheet
    problem: str
    kernel_path: str
    language: str
    entry: str
    develop: tuple[Workload, ...]
    left: Left
    rng: random.Random
    scratch: Path
    skill: str | None = None
    others: tuple[Node, ...] = ()
    device: str = "cpu"
    private: tuple[Path, ...] = ()
    verdict: Callable[[], Verdict | None] = lambda: None
    explain: Callable[[], str] = lambda: ""

    @property
    def source(self) -> str:
        return self.parent.source

    @property
    def timing(self) -> Timing | None:
        return self.parent.timing

    @property
    def descriptors(self) -> Mapping[str, Scalar]:
        return self.parent.descriptors

    @property
    def lineage(self) -> list[Node]:
        """From the root to the parent."""
        return self.tree.lineage(self.parent.number)

    def failures(self, limit: int = 10) -> list[Node]:
        """Trials that gained nothing, children of the parent first, newest first."""
        failed = [n for n in self.tree if n.failure is not None and n.number != self.parent.number]
        return sorted(failed, key=lambda n: (n.parent != self.parent.number, -n.number))[:limit]


@runtime_checkable
class Proposer(Protocol):
    """One file under ``search/proposers/``, which defines ``make(options: Mapping[str, str]) -> Proposer``.

    ``arms`` are the names that ``Context.skill`` may take (skills, models, parameters), () if there is no choice; what
    they are may depend on the kernel that the run begins with, given once to ``begin``. ``propose`` returns None where
    it has nothing to propose; raises UserError or EnvironmentProblem for what ends the run (no key, no program). A
    passing trouble (a rate limit that lasted, a reply that can't be read) is None too, with its words in ``trouble``
    and what it used in ``spent``.
    """

    @property
    def name(self) -> str: ...

    def begin(self, context: Context) -> None:
        """Called once a process, before all else, with the root as the parent; no verdict and no time is known of it yet."""
        ...

    @property
    def arms(self) -> Sequence[str]: ...

    def propose(self, context: Context) -> Proposal | None: ...

    def tell(self, node: Node) -> None:
        """A trial of any proposer is over; after a restart all of them are told again."""
        ...


class BaseProposer:
    """What most proposers need not write."""

    name: ClassVar[str] = ""
    trouble: str = ""
    spent: Cost = Cost()

    def begin(self, context: Context) -> None:
        return None

    @property
    def arms(self) -> Sequence[str]:
        return ()

    def tell(self, node: Node) -> None:
        return None


class Strategy:
    """One file under ``search/strategies/``, which defines a subclass called ``Strategy`` there.

    ``arms`` maps each proposer's name to its arms. A strategy writes ``ask``; most need no more. ``dry`` counts, by node,
    how often in a row nothing new came from it.
    """

    name: ClassVar[str] = ""

    def begin(self, arms: Mapping[str, Sequence[str]]) -> None:
        self.arms = {k: tuple(v) for k, v in arms.items()}
        self.dry: dict[int, int] = {}

    def parents(self, tree: Tree) -> list[Node]:
        """Who may be gone on from, fastest first: what is right and not dry; what is right; where nothing is, what may
        be repaired, newest first."""
        right = tree.ranked() or sorted(tree, key=lambda n: -n.number)
        return [n for n in right if self.dry.get(n.number, 0) < DRY] or right

    def ask(self, tree: Tree, rng: random.Random) -> Choice:
        raise NotImplementedError

    def tell(self, node: Node) -> None:
        """A trial is over; ``node`` is in the tree already. Called by those that override it."""
        self.dry.pop(node.parent if node.parent is not None else -1, None)

    def declined(self, choice: Choice, reason: str) -> None:
        """The proposer had nothing (new) to propose for this choice. Called by those that override it."""
        self.dry[choice.parent] = self.dry.get(choice.parent, 0) + 1
