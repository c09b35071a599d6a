"""A suite as data: its problems, what each weighs, and to which category it belongs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from ..errors import UserError
from ..task.tensors import Model

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class Problem:
    """``name`` is unique in the suite; ``aliases`` are the other names that a kernel's file or folder may bear.
    ``weight`` is its share of what the suite stands for (time in production, say), ``workloads`` that of each workload."""

    name: str
    path: Path
    category: str = ""
    aliases: tuple[str, ...] = ()
    weight: float = 1.0
    workloads: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """``kernels`` is the folder with kernels of its own, if the format has one."""

    name: str
    format: str
    root: Path
    problems: tuple[Problem, ...]
    kernels: Path | None = None

    def only(self, part: str) -> Suite:
        """The problems whose name contains ``part``. Raises UserError where none does."""
        kept = tuple(p for p in self.problems if part in p.name)
        if not kept:
            raise UserError(
                f"no problem of '{self.root}' has '{part}' in its name", remedy="tilewright suite list SUITE"
            )
        return replace(self, problems=kept)

    def named(self, name: str) -> Problem:
        """The problem of that name."""
        return next(p for p in self.problems if p.name == name)

    def weighed(self, facts: dict[str, Facts]) -> Suite:
        """With weights and categories of ``facts``; problems that it does not name weigh nothing if it gives weights.

        Raises UserError for a name that is no problem of this suite.
        """
        names = {a: p.name for p in self.problems for a in (*p.aliases, p.name)}
        if unknown := [n for n in facts if n not in names]:
            raise UserError(f"the facts name what is no problem of this suite: {', '.join(unknown[:5])}",
                            remedy="tilewright suite list SUITE shows the names")  # fmt: skip
        known = {names[n]: f for n, f in facts.items()}
        weights = any(f.weight is not None for f in facts.values())
        return replace(self, problems=tuple(_with(p, known.get(p.name), weights) for p in self.problems))


class Facts(Model):
    """What a user states of one problem: its weight, its category, the weights of its workloads."""

    weight: Weight | None = None
    category: str = ""
    workloads: dict[str, Weight] = {}


def _with(problem: Problem, facts: Facts | None, weights: bool) -> Problem:
    facts = facts or Facts()
    weight = problem.weight if not weights else facts.weight or 0.0
    return replace(problem, weight=weight, category=facts.category or problem.category, workloads=facts.workloads)


def read_facts(path: Path) -> dict[str, Facts]:
    """A TOML file of facts: ``name = weight``, or a table ``[name]`` with ``weight``, ``category``, ``workloads``.

    Raises UserError with the place for a file that can't be read, a negative weight, an unknown key.
    """
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as e:
        raise UserError(f"can't read '{path}': {e.strerror}", remedy="check the path") from None
    except UnicodeDecodeError as e:
        raise UserError(f"not TOML: byte {e.start} is no UTF-8", where=str(path), remedy="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as e:
        raise UserError(f"not TOML: {e}", where=str(path)) from None
    except RecursionError:
        raise UserError("not a list of facts: nested too deeply", where=str(path)) from None
    return {name: _facts(path, name, body) for name, body in tables.items()}


def _facts(path: Path, name: str, body: Any) -> Facts:
    try:
        return Facts.model_validate(body if isinstance(body, dict) else {"weight": body})
    except ValidationError as e:
        first = e.errors()[0]
        raise UserError(
            f"[{name}] {'.'.join(map(str, first['loc']))}: {first['msg']}", where=str(path),
            remedy='write name = 0.4, or [name] with weight, category, workloads = {"M=64 N=256" = 3}',
        ) from None  # fmt: skip
