"""Rewrites: a skill applied at one place where its conditions hold. A skill is used only if it was admitted.

Where nothing is left to propose, ``trouble`` says why not: the refusals, each with its line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from ...errors import UserError
from ..skills._admission import Admission, admission
from ..skills._skill import Refusal, Site, Skill, all_skills
from ..tree import BaseProposer, Context, Node, Proposal
from ._options import listed

TOLD = 4  # refusals that are repeated in the words of a trouble


class Rewrites(BaseProposer):
    """``only`` and ``without`` are names of skills, joined by ``+``."""

    name = "rewrites"

    def __init__(self, only: str = "", without: str = ""):
        self.only, self.without = listed(only), listed(without)
        self.skills: list[Skill] = []
        self._found: dict[tuple[str, str], list[Site | Refusal]] = {}

    def begin(self, context: Context) -> None:
        """Raises UserError for skills that there are not, EnvironmentProblem where their parser is not installed."""
        known = {s.name: s for s in all_skills(context.language)}
        if missing := [n for n in self.only + self.without if n not in known]:
            raise UserError(f"no skill '{missing[0]}' for {context.language} kernels",
                            remedy=f"there are {', '.join(known) or 'none'}")  # fmt: skip
        self.skills = [s for n, s in known.items() if (not self.only or n in self.only) and n not in self.without]
        for s in self.skills:
            self._find(s, context.source)

    @property
    def arms(self) -> Sequence[str]:
        return tuple(s.name for s in self.skills)

    def propose(self, context: Context) -> Proposal | None:
        self.trouble = ""
        seen = {_digest(n.source) for n in context.tree}
        skills = [s for s in self.skills if context.skill in (None, "", s.name)]
        context.rng.shuffle(skills)
        refused: list[str] = []
        for skill in skills:
            found = self._find(skill, context.source)
            sites = [
                f for f in found if isinstance(f, Site) and f.text != context.source and _digest(f.text) not in seen
            ]
            refused += [f"{skill.name} in line {f.line}: {f.reason}" for f in found if isinstance(f, Refusal)]
            if not sites:
                continue
            record = admission(skill)
            if record.admitted:
                return _proposal(context, skill, context.rng.choice(sites), record)
            refused.append(f"{skill.name} is not admitted: {record.reason}")
        self.trouble = "; ".join(refused[:TOLD]) or "no skill has a place here that was not tried"
        return None

    def _find(self, skill: Skill, source: str) -> list[Site | Refusal]:
        key = (skill.name, _digest(source))
        if key not in self._found:
            self._found[key] = list(skill.find(source))
        return self._found[key]


def _proposal(context: Context, skill: Skill, site: Site, record: Admission) -> Proposal:
    words = f"{skill.what}; holds because: {skill.holds}; keeps {skill.keeps}. {skill.source}"
    return Proposal(source=site.text, proposer=Rewrites.name, skill=skill.name, title=site.title, rationale=words,
                    predicted=_predicted(context, skill.name, record),
                    extra={"line": site.line, "skill_sha256": record.sha256, "admitted": record.checked})  # fmt: skip


def _predicted(context: Context, skill: str, record: Admission) -> float | None:
    """The median gain of the skill in this run; before it was tried, what it was measured to gain on its example."""
    gains = sorted(gained(context.tree.nodes, skill))
    if gains:
        return gains[len(gains) // 2]
    return record.effects[-1].ratio if record.effects else None


def gained(nodes: Mapping[int, Node], skill: str) -> list[float]:
    """Time of the parent over time of the child, for each trial of a skill where both were measured."""
    found = []
    for n in nodes.values():
        parent = nodes.get(n.parent) if n.parent is not None else None
        if n.proposal.skill == skill and n.timing is not None and parent is not None and parent.timing is not None:
            found.append(n.timing.ratio / parent.timing.ratio)
    return found


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def make(options: Mapping[str, str]) -> Rewrites:
    """``only``, ``without``."""
    if unknown := set(options) - {"only", "without"}:
        raise UserError(
            f"proposer 'rewrites' takes no option '{sorted(unknown)[0]}'", remedy="it takes only and without"
        )
    return Rewrites(**options)
