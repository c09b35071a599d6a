"""Recorded spaces: a finished run, or a table of parameters with what each point was measured to give. A search over one
needs no compiler, no device and no model, and gives the same answers every time.

Source of the idea: simulation mode of Kernel Tuner (B. van Werkhoven, 2019 on): strategies are compared on recorded
measurements; here the recorded edits of a tree are such a space too.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import UserError
from .tree import Failure, Kind, Proposal, Scalar, Timing, Tree

FORMAT = "tilewright-space/1"
REMEDY = "docs/search.md describes the format; `tilewright study RUN --save FILE` writes one"


@dataclass(frozen=True)
class Entry:
    """What is known of one version: its proposal, and a timing or a failure (a slow kernel has both)."""

    proposal: Proposal
    accepted: bool
    timing: Timing | None
    failure: Failure | None
    descriptors: Mapping[str, Scalar] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def score(self) -> float | None:
        return math.log(self.timing.ratio) if self.accepted and self.timing else None


@dataclass
class Space:
    """Entries by the sha256 of their code, and which lead to which."""

    name: str
    start: str
    entries: dict[str, Entry]
    moves: dict[str, list[str]]
    kind: str = "replayed"

    @cached_property
    def best(self) -> float:
        """Log ratio of the fastest entry over the start."""
        return max((e.score for e in self.entries.values() if e.score is not None), default=0.0)

    @property
    def trials(self) -> int:
        return len(self.entries) - 1

    @classmethod
    def of_tree(cls, name: str, tree: Tree) -> Space:
        """A recorded run: a version leads to what was proposed from it, by whoever proposed it. Raises UserError for a run
        without a trial."""
        if 0 not in tree.nodes:
            raise UserError(f"{name} has no trial yet, so there is nothing to search in it")
        shas = {n.number: n.proposal.sha256() for n in tree}
        entries: dict[str, Entry] = {}
        moves: dict[str, list[str]] = {}
        for n in tree:
            entries.setdefault(shas[n.number], Entry(n.proposal, n.accepted, n.timing, n.failure, n.descriptors,
                                                     n.cost.seconds - n.proposal.cost.seconds))  # fmt: skip
            if n.parent is not None and shas[n.number] not in moves.setdefault(shas[n.parent], []):
                moves[shas[n.parent]].append(shas[n.number])
        return cls(name, shas[0], entries, moves)

    @classmethod
    def of_grid(cls, name: str, start: Mapping[str, Scalar], points: Iterable[Mapping[str, Any]]) -> Space:
        """A table: each point ``{"at": {parameter: value}, "ratio": 1.3}`` or ``{"at": …, "failure": "wrong"}``. A point
        leads to those that differ in one parameter. ``ratio`` is the time of the start over the time of the point."""
        entries: dict[str, Entry] = {}
        at: dict[tuple[Any, ...], str] = {}
        for p in points:
            entry = _point(p)
            sha = entry.proposal.sha256()
            entries[sha] = entry
            at[tuple(sorted(p["at"].items()))] = sha
        first = at.get(tuple(sorted(start.items())))
        if first is None:
            raise UserError(f"{name}: the start {dict(start)} is not among the points")
        return cls(name, first, entries, _neighbours(at))

    def skills(self, proposer: str) -> list[str]:
        return sorted({e.proposal.skill for e in self.entries.values() if e.proposal.proposer == proposer} - {""})

    def proposers(self) -> list[str]:
        """Who took part in the record."""
        return sorted({e.proposal.proposer for sha, e in self.entries.items() if sha != self.start})

    def dump(self) -> dict[str, Any]:
        """As JSON."""
        rows = [{"proposal": e.proposal.model_dump(mode="json", exclude={"messages"}), "accepted": e.accepted,
                 "timing": e.timing.model_dump(mode="json") if e.timing else None,
                 "failure": e.failure.model_dump(mode="json") if e.failure else None, "seconds": e.seconds,
                 "descriptors": dict(e.descriptors)} for e in self.entries.values()]  # fmt: skip
        number = {sha: i for i, sha in enumerate(self.entries)}
        moves = {number[a]: [number[b] for b in many] for a, many in self.moves.items()}
        return {"format": FORMAT, "name": self.name, "start": number[self.start], "entries": rows, "moves": moves}


def _point(p: Mapping[str, Any]) -> Entry:
    text = json.dumps(p["at"], sort_keys=True)
    proposal = Proposal(source=text, proposer="knobs", parameters=p["at"])
    ratio, why = p.get("ratio"), p.get("failure")
    if ratio is None and not why:
        raise ValueError(f"the point {text} has neither a ratio nor a failure")
    if ratio is not None:
        _lawful(ratio)
    timing = None if ratio is None else Timing(seconds=1 / ratio, ratio=ratio, low=ratio, high=ratio, full=True)
    failure = Failure(kind=_kind(why), message=f"recorded as {why}") if why else None
    return Entry(proposal, timing is not None, timing, failure, dict(p["at"]))


def _lawful(ratio: Any) -> None:
    if not (isinstance(ratio, int | float) and math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"{ratio!r} is no ratio of times")


def _kind(text: Any) -> Kind:
    known = Kind.__args__  # type: ignore[attr-defined]
    if text not in known:
        raise UserError(f"'{text}' is no kind of failure", remedy=f"use one of {', '.join(known)}")
    return text  # type: ignore[no-any-return]


def _neighbours(at: Mapping[tuple[Any, ...], str]) -> dict[str, list[str]]:
    groups: dict[tuple[Any, ...], list[str]] = {}
    for key, sha in at.items():
        for i, (name, _) in enumerate(key):
            groups.setdefault((name, *key[:i], *key[i + 1 :]), []).append(sha)
    moves: dict[str, list[str]] = {sha: [] for sha in at.values()}
    for group in groups.values():
        for a, b in itertools.permutations(group, 2):
            moves[a].append(b)
    return moves


def load(path: Path) -> list[Space]:
    """Spaces from a file that ``dump`` or a person wrote. Raises UserError for what is none."""
    try:
        data = json.loads(path.read_text())
        found = [_load(d, path.stem) for d in (data if isinstance(data, list) else [data])]
    except OSError as e:
        raise UserError(f"'{path}' can't be read: {e.strerror}") from None
    except RecursionError:
        raise UserError(f"{path} holds no recorded space: it is nested too deep", remedy=REMEDY) from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as e:
        raise UserError(f"{path} holds no recorded space: {type(e).__name__}: {e}", remedy=REMEDY) from None
    if not found:
        raise UserError(f"{path} holds no recorded space: its list is empty", remedy=REMEDY)
    return found


def _load(data: Mapping[str, Any], name: str) -> Space:
    if "points" in data:
        return Space.of_grid(data.get("name", name), data["start"], data["points"])
    if data["format"] != FORMAT:
        raise ValueError(f"format is {data['format']!r}, not {FORMAT!r}")
    many = [_entry(row) for row in data["entries"]]
    shas = [e.proposal.sha256() for e in many]
    places = {int(data["start"]), *(int(a) for a in data["moves"]), *(b for bs in data["moves"].values() for b in bs)}
    if wrong := sorted(places - set(range(len(many)))):
        raise ValueError(f"there is no entry {wrong[0]}, there are {len(many)}")
    moves = {shas[int(a)]: [shas[b] for b in bs] for a, bs in data["moves"].items()}
    return Space(data.get("name", name), shas[data["start"]], dict(zip(shas, many, strict=True)), moves)


def _entry(row: Mapping[str, Any]) -> Entry:
    timing, failure = row["timing"], row["failure"]
    if timing is None and failure is None:
        raise ValueError("an entry has neither a timing nor a failure")
    if timing is not None:
        _lawful(timing["ratio"])
    return Entry(Proposal(**row["proposal"]), row["accepted"], Timing(**timing) if timing else None,
                 Failure(**failure) if failure else None, row["descriptors"], row["seconds"])  # fmt: skip
