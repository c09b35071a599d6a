"""Knobs: other values for the parameters that the kernel file declares (``_declared.py`` says how).

What was tried is read off the tree: versions that differ in their parameters alone share one skeleton, whoever proposed
them, so a rewrite that brings parameters of its own is tuned as soon as it is there. Triton configurations that ask for
more than the target has are passed over before anything is checked (``_misfit.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import UserError
from ..tree import BaseProposer, Context, Node, Proposal, Scalar
from . import _misfit
from ._declared import Space, read
from ._samplers import SAMPLERS, Point, Trial

DRAWN = 4096  # points looked at where a space has too many to list
LISTED = 1 << 16
MISFITS = 8  # configurations passed over in one go


class Knobs(BaseProposer):
    """``sampler``: one of ``SAMPLERS``; ``prune``: ``resources`` or ``none``."""

    name = "knobs"

    def __init__(self, sampler: str = "model", prune: str = "resources"):
        self.sampler = sampler
        if self.sampler not in SAMPLERS:
            raise UserError(f"no sampler '{self.sampler}'", remedy=f"use one of {', '.join(SAMPLERS)}")
        if prune not in ("resources", "none"):
            raise UserError(f"prune is '{prune}'", remedy="use resources or none")
        self.prune = prune
        self.passed: dict[str, str] = {}
        self._spaces: dict[str, Space] = {}
        self._arms: tuple[str, ...] = ()

    def begin(self, context: Context) -> None:
        self._arms = tuple(k.name for k in self.space(context.source, context).all)

    @property
    def arms(self) -> Sequence[str]:
        """The parameters of the kernel that the run began with: vary that one alone."""
        return self._arms

    def space(self, source: str, context: Context) -> Space:
        key = hashlib.sha256(source.encode()).hexdigest()
        if key not in self._spaces:
            self._spaces[key] = read(source, context.language, Path(context.kernel_path).name)
        return self._spaces[key]

    def propose(self, context: Context) -> Proposal | None:
        """Raises KernelError (file:line) for a declaration that can't be read."""
        self.trouble = ""
        space = self.space(context.source, context)
        if not space.all:
            self.trouble = "the kernel declares no parameters; mark one with 'knob: 8 16 32'"
            return None
        trials = self.trials(space, context)
        left = self._left(space, trials, context)
        for _ in range(MISFITS):
            if not left:
                self.trouble = self.trouble or "every point of the declared space was tried"
                return None
            values = SAMPLERS[self.sampler](space, left, trials, context.rng)
            source = space.apply(values)
            if not (why := self._misfit(source, context)):
                return self._proposal(space, values, source)
            self.trouble = f"passed over {_words(values)}: {why}"
            left = [p for p in left if p != values]
            trials.append(Trial(values, None))
        return None

    def trials(self, space: Space, context: Context) -> list[Trial]:
        """What was tried with this skeleton, in order; the parent first counts as what it is, a trial."""
        same = [(self._space_of(n, context), n) for n in context.tree]
        return [Trial(s.now, n.score) for s, n in same if s is not None and _alike(s, space)]

    def _space_of(self, node: Node, context: Context) -> Space | None:
        try:
            return self.space(node.source, context)
        except UserError:
            return None

    def _left(self, space: Space, trials: Sequence[Trial], context: Context) -> list[Point]:
        known = {_key(space, t.values) for t in trials}
        fixed = {n: v for n, v in space.now.items() if n != context.skill} if context.skill in space.now else {}
        points = space.grid() if space.size <= LISTED else _drawn(space, context)
        return [p for p in points if _key(space, p) not in known and all(p[n] == v for n, v in fixed.items())
                and self._fits(space, p)]  # fmt: skip

    def _fits(self, space: Space, point: Point) -> bool:
        return not self.passed or _digest(space.apply(point)) not in self.passed

    def _misfit(self, source: str, context: Context) -> str:
        if self.prune == "none" or context.language != "triton":
            return ""
        why = _misfit.misfit(source, context)
        if why:
            self.passed[_digest(source)] = why
        return why

    def _proposal(self, space: Space, values: Point, source: str) -> Proposal:
        now = space.now
        changed = {n: v for n, v in values.items() if v != now[n]}
        return Proposal(source=source, proposer=self.name, skill=next(iter(changed)) if len(changed) == 1 else "",
                        title=_words(changed), parameters=dict(values),
                        rationale=f"chosen by {self.sampler}", extra={"sampler": self.sampler})  # fmt: skip


def _drawn(space: Space, context: Context) -> list[Point]:
    points = [{k.name: context.rng.choice(k.choices) for k in space.all} for _ in range(DRAWN)]
    return [p for p in {tuple(p.items()): p for p in points}.values() if not space.broken(p)]


def _alike(a: Space, b: Space) -> bool:
    if [k.name for k in a.all] != [k.name for k in b.all]:
        return False
    return a.skeleton() == b.skeleton() and all(v in k.choices for v, k in zip(a.now.values(), b.all, strict=True))


def _key(space: Space, values: Mapping[str, Scalar]) -> tuple[Scalar, ...]:
    return tuple(values[k.name] for k in space.all)


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _words(values: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{n}={v}" for n, v in values.items())


def make(options: Mapping[str, str]) -> Knobs:
    """``sampler``, ``prune``."""
    if unknown := set(options) - {"sampler", "prune"}:
        raise UserError(f"proposer 'knobs' takes no option '{sorted(unknown)[0]}'", remedy="it takes sampler and prune")
    return Knobs(**options)
