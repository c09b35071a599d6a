"""Runs in the ledger: they read back whole, and the database refuses unlawful ones."""

import sqlite3

import pytest

from ledger.samples import Sample
from tilewright.errors import LedgerError
from tilewright.ledger import Ledger
from tilewright.ledger import store as ledger_store
from tilewright.search import store
from tilewright.search.tree import Cost, Failure, Message, Node, Proposal, Timing

START = Proposal(source="int a;", proposer="start")


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger.sqlite")


def begin(ledger, kind="measured"):
    return store.RunStore.create(ledger, key={"task": "t"}, kind=kind, problem="p.py", kernel_path="k.c",
                                 options={"seed": 1})  # fmt: skip


def node(number, parent, ratio=None, **more):
    timing = Timing(seconds=1e-3, ratio=ratio, low=ratio, high=ratio) if ratio else None
    return Node(
        number=number, parent=parent, step=number, proposal=START, timing=timing, accepted=ratio is not None, **more
    )


def test_a_run_reads_back_whole(ledger):
    run = begin(ledger, "synthetic")
    run.event(0, "asked", {})
    proposal = Proposal(source="é;", proposer="knobs", parameters={"B": 8}, predicted=1.5, cost=Cost(tokens=7),
                        messages=(Message(role="user", text="faster?"),))  # fmt: skip
    run.proposed(0, proposal)
    first = node(0, None, 1.25).model_copy(update={"proposal": proposal, "descriptors": {"unroll": 4}})
    run.told(first)
    run.proposed(1, START)
    second = node(1, 0, failure=Failure(kind="wrong", message="values: off by one", findings=("values: x",)))
    run.told(second)
    assert list(store.tree_of(ledger, run.id)) == [first, second]
    steps = store.read_steps(ledger, run.id)
    assert [set(s.states) for s in steps] == [{"asked", "proposed", "told"}, {"proposed", "told"}]
    assert store.failures(ledger, run.id)[1].kind == "wrong"


def test_the_newest_run_goes_on_unless_it_ended(ledger):
    assert store.unfinished(ledger, {"task": "t"}) is None
    run = begin(ledger)
    assert store.unfinished(ledger, {"task": "t"}).id == run.id
    assert store.unfinished(ledger, {"task": "other"}) is None
    run.event(0, "ended", {"answer": "no measurable gain"})
    assert store.unfinished(ledger, {"task": "t"}) is None
    assert store.find(ledger, run.id[:6]).ended == {"answer": "no measurable gain"}


def test_a_run_that_ended_takes_nothing_more(ledger):
    run = begin(ledger)
    run.proposed(0, START)
    run.event(0, "ended", {})
    with pytest.raises(LedgerError, match="this run has ended"):
        run.event(1, "asked", {})
    with pytest.raises(LedgerError, match="this run has ended"):
        run.told(node(0, None))


def test_no_ratio_without_an_accepted_verdict_of_the_same_kernel(ledger, tmp_path):
    one, two = Sample(tmp_path / "a"), Sample(tmp_path / "b", "def kernel(x, eps):\n    return x * eps\n")
    accepted, rejected, other = one.record(ledger, "accept"), one.record(ledger, "reject"), two.record(ledger, "accept")
    run, sha = begin(ledger), one.kernel.sha256()
    run.proposed(0, START)
    for verdict in ("", rejected.id, other.id):
        with pytest.raises(LedgerError, match="needs an accepted verdict of the same kernel"):
            run.told(node(0, None, 2.0, kernel=sha, verdict=verdict))
    run.told(node(0, None, 2.0, kernel=sha, verdict=accepted.id))


def test_only_runs_that_say_so_have_made_up_times(ledger):
    for kind in ("replayed", "synthetic"):
        run = begin(ledger, kind)
        run.proposed(0, START)
        run.told(node(0, None, 2.0))


@pytest.mark.parametrize("parent", [None, 1, 7])
def test_a_node_needs_an_earlier_parent(ledger, parent):
    run = begin(ledger)
    for step in range(2):
        run.proposed(step, START)
    run.told(node(0, None))
    with pytest.raises(LedgerError, match="needs an earlier node of its run"):
        run.told(node(1, parent))


def test_ids(ledger):
    with pytest.raises(LedgerError, match="has no run 'abc'"):
        store.find(ledger, "abc")
    begin(ledger), begin(ledger)
    with pytest.raises(LedgerError, match="no run ''"):
        store.find(ledger, "")
    assert len(store.runs(ledger)) == 2


def test_a_ledger_of_the_first_schema_is_migrated(tmp_path, monkeypatch):
    from alembic import command

    upgrade = command.upgrade
    monkeypatch.setattr(command, "upgrade", lambda config, revision: upgrade(config, "0001"))
    monkeypatch.setattr(ledger_store, "REVISIONS", ("0001",))
    Ledger.open(tmp_path / "old.sqlite").put_blob(b"x")
    with sqlite3.connect(tmp_path / "old.sqlite") as c:
        assert c.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'search%'").fetchone() == (0,)
    monkeypatch.undo()
    begin(Ledger.open(tmp_path / "old.sqlite"))
