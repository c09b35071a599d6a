"""Reports of a search: what they say is what is in the tree, and nothing in a kernel gets out of its place."""

import io
import re

import pytest
from rich.console import Console

from tilewright.ledger import Ledger
from tilewright.report import search_facts, search_live, search_page
from tilewright.search import store
from tilewright.search.finalists import Conclusion
from tilewright.search.tree import Cost, Failure, Node, Proposal, Timing, Tree

from .spaces import grid, run

SPACE = grid()


def node(number, parent, ratio=None, skill="", failure=None, predicted=None, **parameters):
    timing = Timing(seconds=1e-3, ratio=ratio, low=ratio * 0.99, high=ratio * 1.01) if ratio else None
    proposal = Proposal(
        source=f"line\nv{number}\n", proposer="knobs", skill=skill, parameters=parameters, predicted=predicted
    )
    return Node(number=number, parent=parent, proposal=proposal, accepted=ratio is not None, timing=timing, failure=failure,
                descriptors=parameters)  # fmt: skip


TREE = Tree({n.number: n for n in (
    node(0, None, 1.0, A=1, B=1), node(1, 0, 2.0, "A", predicted=1.8, A=2, B=1),
    node(2, 1, 3.0, "B", predicted=1.2, A=2, B=2), node(3, 1, None, "B", Failure(kind="wrong", message="off"), A=2, B=4),
    node(4, 2, 2.4, "A", Failure(kind="slower", message="20% slower"), A=4, B=2),
)})  # fmt: skip


def test_the_way_to_the_winner_adds_up():
    steps = search_facts.way(TREE, 2)
    assert [(s.number, round(s.gain, 3)) for s in steps] == [(1, 2.0), (2, 1.5)]
    assert sum(s.share for s in steps) == pytest.approx(1)
    assert search_facts.way(TREE, None) == []


def test_ablation_compares_with_what_was_tried():
    found = {w.parameter: w for w in search_facts.ablation(TREE, 2)}
    assert (found["A"].number, found["A"].instead, found["A"].loss) == (4, 4, "20.0% slower")
    assert (found["B"].number, found["B"].loss) == (1, "33.3% slower"), "the best of those with another B"


def test_skills_predictions_failures():
    skills = {s.name: s for s in search_facts.skills(TREE)}
    assert (skills["knobs: B"].tried, skills["knobs: B"].right, skills["knobs: B"].faster) == (2, 1, 1)
    assert skills["knobs: A"].gain == pytest.approx((2.0 + 0.8) / 2)
    assert [(p, round(m, 2)) for p, m, _ in search_facts.predictions(TREE)] == [(1.8, 2.0), (1.2, 1.5)]
    assert {k: n for k, n, _ in search_facts.failures(TREE)} == {"wrong": 1, "slower": 1}


def test_cost_for_each_per_cent():
    won = Conclusion(
        answer="faster", reason="", node=2, ratio=3.0, low=2.0, high=4.0, cost=Cost(seconds=50, tokens=1000)
    )
    assert search_facts.prices(won) == [("wall time", "50 s, 0.5 s for each per cent gained"),
                                        ("tokens", "1000, 10 for each per cent gained")]  # fmt: skip
    none = Conclusion(answer="no measurable gain", reason="", cost=Cost(seconds=50))
    assert search_facts.prices(none) == [("wall time", "50 s")]


def page(tree=TREE, conclusion=None, **more):
    return search_page.render(search_page.Page(tree, conclusion, "abc", "task", "k.c", "greedy", ("knobs",), **more))


def test_the_page_shows_every_trial_and_its_change():
    html = page(conclusion=Conclusion(answer="faster", reason="9 rounds", node=2, ratio=3.0, low=2.9, high=3.1))
    assert "faster by 3x (2.9 to 3.1)" in html
    assert html.count("<details") == len(TREE)
    assert '<span class="add">+v2</span>' in html
    assert '<span class="cut">-v1</span>' in html
    assert html.count('class="point') == 2 * len(TREE) + 2, "curve and tree, and two predictions"
    assert "<script" not in html
    assert not re.search(r"(src|href)=.(?!data:|#)", html)


def test_made_up_times_are_called_so():
    c = Conclusion(answer="faster", reason="9 rounds", kind="replayed", node=2, ratio=3.0, low=2.9, high=3.1)
    assert "The times of this run are replayed, not measured" in page(conclusion=c)
    assert "not measured" not in page(conclusion=c.model_copy(update={"kind": "measured"}))


def test_a_kernel_cannot_write_into_the_page():
    evil = "</pre><script>alert(1)</script><!--"
    bad = TREE[1].model_copy(update={
        "proposal": Proposal(source=evil, proposer=evil, title=evil, rationale=evil, parameters={evil: evil}),
        "failure": Failure(kind="wrong", message=evil), "descriptors": {evil: evil}})  # fmt: skip
    html = page(Tree(dict(TREE.nodes) | {1: bad}), declines=(evil,))
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_an_unfinished_run_and_a_long_chain():
    assert "unfinished" in page()
    chain = Tree({i: node(i, i - 1 if i else None, 1.0 + i / 1000, A=i) for i in range(1500)})
    assert "lineage tree" in page(chain)


def test_a_recorded_run_is_reported(tmp_path):
    ledger = Ledger.open(tmp_path / "l.sqlite")
    book = store.RunStore.create(
        ledger, key={}, kind="replayed", problem="p", kernel_path="k", options={"strategy": "beam"}
    )
    run(SPACE, "beam", 5, book=book, finalists=1).go()
    html = search_page.render(search_page.Page.of_record(ledger, store.load(ledger, book.id)))
    assert html.count("<details") == 6
    assert "Finalists" in html


def test_lines_for_a_log(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(search_live, "Console", lambda **_: Console(file=out, width=200))
    with search_live.live() as notify:
        run(SPACE, "greedy", 6, notify=notify, finalists=1).go()
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("#0")
    assert "1.000x" in lines[0]
    assert sum(x.startswith("#") for x in lines) == 7
    assert "finalists are measured again, on hidden workloads" in lines


def test_a_live_view_for_a_person(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(search_live, "Console", lambda **_: Console(file=out, width=100, force_terminal=True))
    with search_live.live() as notify:
        search = run(SPACE, "greedy", 4, notify=notify, finalists=1)
        search.go()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())
    assert "best so far" in text
    assert "0 trials" in text
    assert "failures" in text
    assert search_live.left(search) == "0 trials"


def test_the_conclusion_in_the_terminal(capsys):
    search = run(SPACE, "greedy", 6, finalists=1)
    conclusion = search.go()
    search_live.show(search.tree, conclusion, file="best.c")
    out = " ".join(capsys.readouterr().out.split())
    assert "[replayed times]" in out
    assert "6 trials, 1 finalists" in out
    assert "best.c" in out
