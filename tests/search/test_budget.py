"""Budgets, limits, the cascade, descriptors: the small parts."""

import pytest

from tilewright.errors import UserError
from tilewright.prove.finding import Finding
from tilewright.prove.verdict import GateReport, Verdict
from tilewright.search import cascade, plugins
from tilewright.search.budget import Budget, spent_out
from tilewright.search.descriptors import axes, cell, describe
from tilewright.search.limits import Limits, limits
from tilewright.search.start import split
from tilewright.search.tree import Cost, Left, Node, Proposal, Timing


def test_budgets_are_read():
    assert Budget.parse(["90s"]) == Budget(seconds=90)
    assert Budget.parse(["5min, 40trials", "2.5usd"]) == Budget(seconds=300, trials=40, money=2.5)
    assert Budget.parse(["2h"]).seconds == 7200
    assert Budget.parse(["200ktokens,30gpus"]) == Budget(tokens=200_000, gpu_seconds=30)


@pytest.mark.parametrize("text", ["", "60", "s", "-3s", "0s", "3 parsecs", "40trials;60s"])
def test_what_is_no_budget_is_told(text):
    with pytest.raises(UserError, match="is no budget") as e:
        Budget.parse([text])
    assert "60s, 5min, 2h, 40trials" in str(e.value)


def test_the_same_limit_twice_is_refused():
    with pytest.raises(UserError, match="the budget for time is given twice"):
        Budget.parse(["60s", "2min"])


def test_a_trial_that_would_not_end_in_time_is_not_begun():
    assert spent_out(Left(seconds=10), 3, [8.0, 9.0, 7.5]) == "time"
    assert spent_out(Left(seconds=10), 3, [1.0]) == ""
    assert spent_out(Left(seconds=2), 3, []) == "time", "the finalists' part is kept"
    assert spent_out(Left(trials=0), 0, []) == "trials"
    assert spent_out(Left(tokens=-5), 0, []) == "tokens"
    assert spent_out(Left(), 0, [1e9]) == ""
    left = Budget(seconds=100, money=1).left(3, Cost(seconds=40, money=0.25))
    assert (left.seconds, left.money, left.trials) == (60, 0.75, None)
    assert Budget(seconds=100).reserve == 30
    assert Budget(trials=5).reserve == 0


def test_limits_follow_what_was_seen():
    assert limits([]) == Limits(60, 600)
    assert limits([2.0]) == Limits(call=5.0, check=20.0)
    assert limits([30.0, 40.0]) == Limits(call=40.0, check=160.0)
    assert limits([1000.0]) == Limits(call=60.0, check=600.0)


def verdict(word, cls="wrong", got="0", gate="values", summary="off", **more):
    finding = Finding(cls=cls, summary=summary, got=got, gate=gate, **more)
    report = GateReport(name=gate, role="core", status="fail", findings=(finding,) if word == "reject" else ())
    return Verdict(verdict=word, gates=(report,), reason=f"{gate}: {summary}")


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (verdict("reject"), "wrong"),
        (verdict("reject", cls="inaccurate"), "wrong"),
        (verdict("reject", cls="cheat", gate="honesty"), "cheating"),
        (verdict("reject", got="hangs", gate="interface"), "timeout"),
        (verdict("reject", got="can't be called", gate="interface", summary="k.c does not compile: x"), "compile"),
        (verdict("reject", got="raises", gate="interface", summary="raises: SyntaxError"), "compile"),
        (verdict("reject", got="crashes", gate="interface"), "launch"),
        (verdict("reject", gate="determinism"), "unstable"),
        (verdict("incomplete"), "undecided"),
    ],
)
def test_a_verdict_becomes_a_typed_failure(made, kind):
    failure = cascade.failure_of(made)
    assert failure.kind == kind
    assert failure.message == made.reason
    assert cascade.failure_of(verdict("accept")) is None


def test_python_is_parsed_before_anything_runs():
    bad = cascade.parse(Proposal(source="def f(:\n", proposer="p"), "triton")
    assert (bad.kind, bad.where) == ("compile", "line 1")
    assert cascade.parse(Proposal(source="int f(;", proposer="p"), "native") is None
    assert cascade.parse(Proposal(source="x\0", proposer="p"), "native").message == "the proposal holds a NUL character"


@pytest.mark.parametrize("name", ["../problem.py", "/etc/passwd", "a/../../x", "k.c"])
def test_a_proposal_stays_in_its_folder(tmp_path, name):
    proposal = Proposal(source="int x;", proposer="p", files={name: "boo"})
    with pytest.raises(ValueError, match="the proposal writes to"):
        cascade.written(proposal, tmp_path / "run" / "0001", "k.c")
    assert not (tmp_path / "problem.py").exists()
    assert not (tmp_path / "run" / "problem.py").exists()


def test_slower_is_told_only_when_sure():
    parent = Node(number=3, parent=0, proposal=Proposal(source="", proposer="p"), accepted=True,
                  timing=Timing(seconds=1, ratio=2.0, low=1.9, high=2.1))  # fmt: skip
    sure = Timing(seconds=1, ratio=1.5, low=1.4, high=1.6)
    assert cascade.slower(sure, parent).message == "25.0% slower than its parent #3"
    assert cascade.slower(Timing(seconds=1, ratio=1.9, low=1.7, high=2.05), parent) is None
    assert not cascade.worth_full(sure, parent)
    assert cascade.worth_full(Timing(seconds=1, ratio=1.8, low=1.7, high=1.95), parent)


def test_descriptors_say_what_a_kernel_is_like_not_how_long_it_is():
    c = "// for ( for ( for (\n#pragma GCC unroll 4\nvoid kernel() { for (;;) {} }"
    found = describe(Proposal(source=c, proposer="p", parameters={"TILE": 8}), "native")
    assert (found["TILE"], found["loops"], found["unroll"]) == (8, 1, 1), "comments don't count"
    longer = describe(Proposal(source=c + "\n" * 500 + "/* words */", proposer="p", parameters={"TILE": 8}), "native")
    assert found == longer
    assert cell({"TILE": 9, "x": "a"}, ["TILE", "x", "y"]) == (4, "a", None)
    assert cell({"TILE": 8}, ["TILE"]) == cell({"TILE": 15}, ["TILE"]) != cell({"TILE": 16}, ["TILE"])
    nothing = Proposal(source="", proposer="p")
    nodes = [Node(number=i, parent=None, proposal=nothing, descriptors={"a": i, "b": 1, "c": i % 2})
             for i in range(4)]  # fmt: skip
    assert axes(nodes, 1) == ["a"]
    assert axes(nodes, 5) == ["a", "c"], "what never varies is no axis"


def test_options_of_plugins():
    assert split("llm:model=x, role=judge") == ("llm", {"model": "x", "role": "judge"})
    with pytest.raises(UserError, match="'x' in 'beam:x' is no option"):
        split("beam:x")
    with pytest.raises(UserError, match=r"no strategy 'bean'[\s\S]*bandit, beam"):
        plugins.strategy("bean")
    with pytest.raises(UserError, match="strategy 'beam' does not take 'depth'"):
        plugins.strategy("beam", depth=3)
