"""An audit that was interrupted goes on where it stopped."""

from tilewright.ledger import Ledger

OPTIONS = {"dir": "corpus", "strict": False}


def test_a_resumed_audit_leaves_out_what_is_done(ledger, sample):
    recorded = sample.record(ledger)
    audit = ledger.audit(OPTIONS, {"a": "1", "b": "1", "c": "1", "d": "1"})
    assert not audit.resumed
    assert audit.pending() == ["a", "b", "c", "d"]
    audit.start("a")
    audit.finish("a", recorded.id, {"verdict": "reject"})
    audit.start("b")
    audit.fail("c", {"error": "no entry point"})

    again = Ledger.open(ledger.name).audit(dict(reversed(OPTIONS.items())), {"a": "1", "b": "1", "c": "1", "d": "1"})
    assert again.resumed
    assert again.id == audit.id
    assert again.pending() == ["b", "c", "d"], "started is not done, failed is tried again"
    assert again.done()["a"].verdict == recorded.id
    assert again.done()["a"].body == {"verdict": "reject"}
    assert again.items()["c"].body == {"error": "no entry point"}


def test_a_changed_item_is_done_again_and_a_new_one_joins(ledger):
    audit = ledger.audit(OPTIONS, {"a": "1", "b": "1"})
    audit.finish("a")
    audit.finish("b")
    again = ledger.audit(OPTIONS, {"a": "1", "b": "2", "new": "1"})
    assert again.pending() == ["b", "new"]
    again.finish("b")
    assert ledger.audit(OPTIONS, {"a": "1", "b": "2", "new": "1"}).pending() == ["new"]


def test_an_item_that_changed_back_is_done_again(ledger):
    """Only the last event speaks: what was done on other content does not count."""
    ledger.audit(OPTIONS, {"a": "1"}).finish("a")
    ledger.audit(OPTIONS, {"a": "2"})
    assert ledger.audit(OPTIONS, {"a": "1"}).pending() == ["a"]


def test_a_closed_audit_is_not_resumed(ledger):
    audit = ledger.audit(OPTIONS, {"a": "1"})
    audit.finish("a")
    audit.close({"accept": 1})
    again = ledger.audit(OPTIONS, {"a": "1"})
    assert not again.resumed
    assert again.pending() == ["a"]


def test_other_options_and_fresh_begin_anew(ledger):
    first = ledger.audit(OPTIONS, {"a": "1"})
    first.finish("a")
    assert ledger.audit({**OPTIONS, "strict": True}, {"a": "1"}).pending() == ["a"]
    fresh = ledger.audit(OPTIONS, {"a": "1"}, fresh=True)
    assert fresh.id != first.id
    assert fresh.pending() == ["a"]
