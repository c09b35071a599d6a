"""Admission: a skill is used once its result on its own example was checked and accepted, and only as long as neither the
skill nor the example has changed since.

``admitted.json`` beside this file holds the records that come with Tilewright. What a skill was measured to gain is kept
with the machine that it was measured on; it is never a promise for another kernel.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ... import api
from ...errors import TilewrightError
from ...task.tensors import Model
from ._skill import EXAMPLES, Site, Skill

SEED = 20260101
RECORDS = Path(__file__).parent / "admitted.json"


class Effect(Model):
    """Time before over time after on one machine, as a median of paired samples, with its interval. ``where``: the
    kernel and sizes; ``measured``: the day; ``by``: the id of the measurement, or how it was taken."""

    where: str
    ratio: float
    low: float
    high: float
    machine: str
    measured: str
    by: str = ""


class Admission(Model):
    """``sha256`` is the skill's and its example's identity at that time. ``claims``: what the verdict on the result
    claims; ``reason``: why it was not admitted."""

    skill: str
    sha256: str
    admitted: bool
    verdict: str
    claims: tuple[str, ...] = ()
    reason: str = ""
    sites: int = 0
    checked: str = ""
    versions: dict[str, str] = {}
    effects: tuple[Effect, ...] = ()


def admit(skill: Skill, **options: Any) -> Admission:
    """Apply a skill everywhere it holds on its example and check each result, on the same values each time. Never raises
    for a result that is wrong."""
    options = {"seed": SEED, **options}
    problem, kernel = (EXAMPLES / n for n in skill.example)
    sites = skill.sites(kernel.read_text())
    made = Admission(skill=skill.name, sha256=skill.sha256(), admitted=False, verdict="", sites=len(sites),
                     checked=date.today().isoformat())  # fmt: skip
    if not sites:
        return made.model_copy(update={"reason": f"it finds no place in its example {kernel.name}"})
    for site in sites:
        made = made.model_copy(update=_checked(site, problem, kernel, options))
        if not made.admitted:
            return made
    return made


def _checked(site: Site, problem: Path, kernel: Path, options: dict[str, Any]) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / kernel.name
        path.write_text(site.text)
        try:
            verdict = api.examine_and_record(str(problem), str(path), record=False, **options).verdict
        except TilewrightError as e:
            return {"admitted": False, "reason": f"{site.title}: {e.what}"}
    claims = tuple(sorted({c.kind for c in verdict.claims}))
    reason = "" if verdict.accepted else f"{site.title}: {verdict.reason}"
    return {"admitted": verdict.accepted, "verdict": verdict.verdict, "claims": claims, "reason": reason,
            "versions": verdict.versions}  # fmt: skip


@cache
def records() -> dict[str, Admission]:
    """What was recorded, by name of the skill."""
    if not RECORDS.is_file():
        return {}
    return {r["skill"]: Admission(**r) for r in json.loads(RECORDS.read_text())}


_made: dict[str, Admission] = {}


def admission(skill: Skill) -> Admission:
    """The record of a skill if it is about this version of it; else it is checked now, once a process."""
    sha = skill.sha256()
    known = records().get(skill.name) or _made.get(skill.name)
    if known is None or known.sha256 != sha:
        known = _made.get(skill.name)
    if known is None or known.sha256 != sha:
        known = _made[skill.name] = admit(skill)
    return known


def save(found: Iterable[Admission], path: Path = RECORDS) -> None:
    """Write records, by name; effects of an unchanged skill are kept."""
    old = {r["skill"]: Admission(**r) for r in json.loads(path.read_text())} if path.is_file() else {}
    for a in found:
        before = old.get(a.skill)
        keep = before.effects if before and before.sha256 == a.sha256 and not a.effects else a.effects
        old[a.skill] = a.model_copy(update={"effects": keep})
    rows = [old[n].model_dump(mode="json") for n in sorted(old)]
    path.write_text(json.dumps(rows, indent=1) + "\n")
    records.cache_clear()
