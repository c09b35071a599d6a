"""Contexts, nodes and trees for tests of proposers."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from tilewright.search.tree import Context, Failure, Left, Node, Proposal, Timing, Tree
from tilewright.task.task import TaskSheet, Workload


def node(number: int, source: str, parent: int | None = 0, *, ratio: float | None = 1.0, **fields: Any) -> Node:
    """A trial; ``ratio=None`` is one that was rejected."""
    proposal = Proposal(source=source, proposer=fields.pop("proposer", "test"), skill=fields.pop("skill", ""))
    timing = None if ratio is None else Timing(seconds=1e-3 / ratio, ratio=ratio, low=ratio * 0.98, high=ratio * 1.02)
    failure = Failure(kind="wrong", message="values: 3 of 8 elements differ") if ratio is None else None
    return Node(number=number, parent=None if number == 0 else parent, proposal=proposal, accepted=ratio is not None,
                timing=timing, **{"failure": failure, **fields})  # fmt: skip


def tree(*nodes: Node) -> Tree:
    made = Tree()
    for n in nodes:
        made.add(n)
    return made


def context(grown: Tree, scratch: Path, *, parent: int = 0, language: str = "native", seed: int = 0,
            **fields: Any) -> Context:  # fmt: skip
    suffix = "c" if language == "native" else "py"
    given: dict[str, Any] = {
        "sheet": TaskSheet(name="test"), "problem": "problem.py", "kernel_path": f"kernel.{suffix}", "entry": "kernel",
        "develop": (Workload(dims={"M": 64}),), "left": Left(),
    }  # fmt: skip
    return Context(parent=grown[parent], tree=grown, language=language, rng=random.Random(seed), scratch=scratch,
                   **{**given, **fields})  # fmt: skip


def score(ratio: float) -> float:
    return math.log(ratio)
