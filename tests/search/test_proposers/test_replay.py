"""A recorded run proposes what it held, from where it held it, and nothing twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.errors import UserError
from tilewright.search.proposers import replay
from tilewright.search.space import Space

from .make import context, node, tree

RECORD = tree(
    node(0, "start"), node(1, "first", skill="tile"), node(2, "second", 1, skill="unroll", ratio=2.0),
    node(3, "third", 1, ratio=None),
)  # fmt: skip


@pytest.fixture
def record(tmp_path: Path) -> str:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(Space.of_tree("record", RECORD).dump()))
    return str(path)


def test_proposals_come_from_the_parent_that_they_were_recorded_under(record: str, tmp_path: Path) -> None:
    made = replay.make({"file": record})
    assert made.arms == ("tile", "unroll")
    grown = tree(node(0, "start"))
    proposal = made.propose(context(grown, tmp_path))
    assert proposal is not None
    assert (proposal.source, proposal.proposer, proposal.extra["recorded by"]) == ("first", "replay", "test")
    grown.add(node(1, "first"))
    made.tell(grown[1])
    assert made.propose(context(grown, tmp_path)) is None
    assert "nothing more from here" in made.trouble
    later = made.propose(context(grown, tmp_path, parent=1))
    assert later is not None
    assert later.source == "second"


def test_a_skill_or_any_parent_may_be_asked_for(record: str, tmp_path: Path) -> None:
    found = replay.make({"file": record, "order": "any"}).propose(
        context(tree(node(0, "other")), tmp_path, skill="unroll")
    )
    assert found is not None
    assert found.source == "second"


def test_what_is_no_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    for options in ({}, {"file": str(tmp_path / "bad.json")}, {"file": "x", "order": "up"}, {"file": "x", "n": "1"}):
        with pytest.raises(UserError):
            replay.make(options)
