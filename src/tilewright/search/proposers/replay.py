"""A recorded run as a proposer: what was proposed from a kernel then is proposed again now, and nothing is taken over but
the proposals. They are checked and timed anew, so a record can be tried on another machine, and a loop without a model.

``file`` is what ``tilewright study RUN --save FILE`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import UserError
from ..space import Entry, Space, load
from ..tree import BaseProposer, Context, Node, Proposal


class Replay(BaseProposer):
    """Proposes in the order of the record, from the parent that a proposal was recorded under; ``order=any`` from
    whichever parent is asked about."""

    name = "replay"

    def __init__(self, spaces: Sequence[Space], order: str = "recorded"):
        self.spaces, self.order = list(spaces), order
        self.seen: set[str] = set()

    @property
    def arms(self) -> Sequence[str]:
        return tuple(sorted({e.proposal.skill for s in self.spaces for e in s.entries.values()} - {""}))

    def propose(self, context: Context) -> Proposal | None:
        self.trouble = ""
        for entry in self._candidates(context.parent.proposal.sha256()):
            p = entry.proposal
            if p.sha256() not in self.seen and context.skill in (None, "", p.skill):
                return p.model_copy(update={"extra": {**p.extra, "recorded by": p.proposer}, "proposer": self.name})
        self.trouble = "the record holds nothing more from here"
        return None

    def _candidates(self, sha: str) -> list[Entry]:
        """Entries that may follow the version ``sha``."""
        if self.order == "any":
            return [e for s in self.spaces for e in s.entries.values()]
        return [s.entries[n] for s in self.spaces for n in s.moves.get(sha, ())]

    def tell(self, node: Node) -> None:
        self.seen.add(node.proposal.sha256())


def make(options: Mapping[str, str]) -> Replay:
    """``file``, ``order`` (recorded, any)."""
    if unknown := set(options) - {"file", "order"}:
        raise UserError(f"proposer 'replay' takes no option '{sorted(unknown)[0]}'", remedy="it takes file and order")
    if "file" not in options:
        raise UserError(
            "proposer 'replay' needs a record", remedy="give file=PATH; tilewright study RUN --save writes one"
        )
    if (order := options.get("order", "recorded")) not in ("recorded", "any"):
        raise UserError(f"order is '{order}'", remedy="use recorded or any")
    return Replay(load(Path(options["file"])), order)
