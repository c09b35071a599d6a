"""The end of a search says in words what the winner changed, and what was not written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright.cli import run as command
from tilewright.ledger import Ledger
from tilewright.report import search_changes, search_facts, search_live, search_page
from tilewright.search import store
from tilewright.search.finalists import Conclusion
from tilewright.search.tree import Node, Proposal, Timing, Tree

from .spaces import grid
from .spaces import run as over

C = "#define TILE 8 // knob: 8 16 32\n#define LANES 1 // knob: 1 2 4\nvoid kernel(void) {{}}{more}\n"


def node(
    number: int, parent: int | None, ratio: float, tile: int = 8, lanes: int = 1, more: str = "", **said: str
) -> Node:
    source = C.format(more=more).replace("TILE 8", f"TILE {tile}").replace("LANES 1", f"LANES {lanes}")
    parameters = {} if number == 0 or said.get("skill", "").startswith("c-") else {"TILE": tile, "LANES": lanes}
    proposal = Proposal(source=source, parameters=parameters, **{"proposer": "knobs", **said})
    timing = Timing(seconds=1.0, ratio=ratio, low=ratio, high=ratio)
    return Node(number=number, parent=parent, proposal=proposal, accepted=True, timing=timing)


TREE = Tree({n.number: n for n in (
    node(0, None, 1.0, proposer="start"), node(1, 0, 2.0, tile=32, lanes=2, title="TILE=32, LANES=2"),
    node(2, 0, 1.1, tile=16), node(3, 1, 3.0, tile=32, lanes=2, more="\n#define UNROLL 2 // knob: 1 2", proposer="rewrites",
                                   skill="c-unroll", title="loop over j unrolled"),
    node(4, 3, 4.2, tile=32, lanes=4, more="\n#define UNROLL 2 // knob: 1 2", title="LANES=4"),
)})  # fmt: skip
WON = Conclusion(answer="faster", reason="9 rounds", node=4, ratio=4.0, low=3.9, high=4.1)


def test_the_winner_is_told_by_old_and_new_values_and_by_rewrites_with_ids() -> None:
    said = search_changes.summary(TREE, 4)
    assert said == "TILE 8 to 32, LANES 1 to 4, UNROLL=2; c-unroll: loop over j unrolled (#3)"
    steps = [(c.number, c.words) for c in search_changes.changes(TREE, 4)]
    assert steps == [(1, "knobs: TILE 8 to 32, LANES 1 to 2"), (3, "rewrites: c-unroll: loop over j unrolled"),
                     (4, "knobs: LANES 2 to 4")]  # fmt: skip
    assert search_changes.changes(TREE, None) == []
    assert search_changes.summary(TREE, None) == ""


def test_a_recorded_table_has_its_parameters_alone() -> None:
    search = over(grid(), "greedy", 8)
    search.go()
    best = search.tree.best()
    assert best is not None
    start, end = search.tree.root.proposal.parameters, best.proposal.parameters
    for name in end:
        assert (f"{name} {start[name]} to {end[name]}" in search_changes.summary(search.tree, best.number)) == (
            start[name] != end[name])  # fmt: skip


def test_what_a_model_wrote_is_called_by_its_title() -> None:
    new = Node(
        number=1, parent=0, proposal=Proposal(source="void kernel(void) { }", proposer="llm", title="fused loops")
    )
    assert search_changes.summary(Tree({0: TREE[0], 1: new}), 1) == "fused loops (#1)"


def test_the_terminal_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    search_live.show(TREE, WON, file="best.c")
    out = " ".join(capsys.readouterr().out.split())
    assert "winner #4: TILE 8 to 32, LANES 1 to 4, UNROLL=2; c-unroll: loop over j unrolled (#3)" in out
    assert "by way of #1 knobs: TILE 8 to 32, LANES 1 to 2 (2x) then #3 rewrites: c-unroll" in out
    assert "then #4 knobs: LANES 2 to 4 (1.4x)" in out


def test_the_page_says_it() -> None:
    page = search_page.render(
        search_page.Page(TREE, WON, "abc", "/home/someone/x/problem.py", "/home/someone/x/kernel.c")
    )
    assert "TILE 8 to 32, LANES 1 to 4, UNROLL=2; c-unroll: loop over j unrolled (#3)" in page
    assert "/home" not in page, "no path of this machine"
    assert "<title>Search: x/problem.py</title>" in page


def test_a_version_that_was_faster_while_searching_is_not_called_minus_slower() -> None:
    tree = Tree(dict(TREE.nodes) | {4: node(4, 1, 1.4, tile=32, lanes=1), 5: node(5, 1, 2.0 * 1.4, tile=32, lanes=4)})
    (found,) = [w for w in search_facts.ablation(tree, 1) if w.parameter == "LANES"]
    assert found.loss == "40.0% faster by the times of the search"
    page = search_page.render(search_page.Page(tree, WON.model_copy(update={"node": 1}), "abc", "t", "k.c"))
    assert "40.0% faster by the times of the search" in page
    assert not re.search(r"-\d+(\.\d+)?% (slower|faster)", page)
    assert search_facts.compared(0.8) == "20.0% slower"
    assert search_facts.compared(1.0) == "as fast"


def test_no_gain_and_no_file_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = str(tmp_path / "l.sqlite")
    book = store.RunStore.create(
        Ledger.open(ledger), key={}, kind="replayed", problem="p.py", kernel_path="k.c", options={}
    )
    over(grid(), "greedy", 3, book=book, finalists=1).go()  # three trials: too few rounds of nothing, or a gain
    loser = store.RunStore.create(
        Ledger.open(ledger), key={}, kind="replayed", problem="p.py", kernel_path="k.c", options={}
    )
    over(grid(), "greedy", 3, book=loser, finalists=0).go()
    arguments = ["search", "--run", loser.id, "--ledger", ledger, "-o", str(tmp_path / "best.c")]
    assert command(arguments) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "best.c was not written: nothing was proved faster than the kernel that you gave" in out
    assert not (tmp_path / "best.c").exists()
    assert command([*arguments, "--json", "-"]) == 0
    told = capsys.readouterr()
    assert "best.c was not written" in told.err
    assert "not written" not in told.out, "what is for programs stays JSON"
    assert command(["search", "--run", book.id, "--ledger", ledger, "-o", str(tmp_path / "won.c")]) == 0
    assert (tmp_path / "won.c").exists()
    assert "not written" not in capsys.readouterr().out
