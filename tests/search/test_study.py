"""Recorded spaces, studies over them, and policies fitted on them."""

import itertools
import json
import math
from pathlib import Path

import numpy
import pytest

from tilewright.errors import UserError
from tilewright.ledger import Ledger
from tilewright.report import search_page, search_study
from tilewright.search import fit, plugins, replay, space, store, study
from tilewright.search.space import Space
from tilewright.search.strategies import learned

from .spaces import BEST, START, grid, run

SPACE = grid()


def test_a_table_is_a_space():
    assert len(SPACE.entries) == 100
    assert SPACE.entries[SPACE.start].proposal.parameters == START
    best = max((e for e in SPACE.entries.values() if e.score is not None), key=lambda e: e.score)
    assert best.proposal.parameters == BEST
    assert SPACE.best == pytest.approx(best.score)
    assert len(SPACE.moves[SPACE.start]) == 4 + 3 + 4, "one parameter at a time"
    bad = [e for e in SPACE.entries.values() if not e.accepted]
    assert bad
    assert all(e.failure.kind == "wrong" for e in bad)


def test_a_recorded_run_is_a_space_and_reads_back(tmp_path):
    ledger = Ledger.open(tmp_path / "l.sqlite")
    book = store.RunStore.create(ledger, key={}, kind="replayed", problem="p", kernel_path="k", options={})
    search = run(SPACE, "beam", 15, book=book, seed=5)
    search.go()
    recorded = Space.of_tree("run", store.tree_of(ledger, book.id))
    assert len(recorded.entries) == 16
    assert recorded.best == pytest.approx(search.tree.best().score)
    (tmp_path / "s.json").write_text(json.dumps(recorded.dump()))
    (again,) = space.load(tmp_path / "s.json")
    assert (again.name, again.start, again.entries, again.moves) == (
        "run",
        recorded.start,
        recorded.entries,
        recorded.moves,
    )
    for n in search.tree:  # only what was recorded can be proposed, and from where it was
        moves = recorded.moves.get(n.proposal.sha256(), [])
        assert sorted(moves) == sorted(c.proposal.sha256() for c in search.tree.children(n.number))


def test_the_recorded_file_is_the_space():
    (read,) = space.load(Path(__file__).parent / "recorded" / "made_up.json")
    assert read.moves == SPACE.moves
    assert read.best == pytest.approx(SPACE.best, abs=1e-3)


@pytest.mark.parametrize("name", plugins.names("strategies"))
def test_a_recorded_tree_is_searched_by_every_strategy(name):
    search = run(SPACE, "random", 40, seed=1)
    search.go()
    recorded = Space.of_tree("tree", search.tree)
    again = run(recorded, name, 1000, seed=2)
    again.go()
    reachable = {n.proposal.sha256() for n in search.tree if all(a.ok for a in search.tree.lineage(n.number)[:-1])}
    found = {n.proposal.sha256() for n in again.tree}
    assert found <= set(recorded.entries)
    assert len(found) >= 0.9 * len(reachable)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "holds no recorded space"),
        ('{"format": "other"}', "format is 'other'"),
        ('{"points": [{"at": {"A": 1}, "ratio": 1}], "start": {"A": 2}}', "is not among the points"),
        ('{"points": [{"at": {"A": 1}, "failure": "sad"}], "start": {"A": 1}}', "'sad' is no kind of failure"),
    ],
)
def test_what_is_no_space_is_told(tmp_path, text, words):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=words):
        space.load(tmp_path / "x.json")


def test_the_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="can't be read: No such file"):
        space.load(tmp_path / "x.json")


def test_made_up_noise_makes_a_run_synthetic():
    assert replay.Recorded(SPACE).kind == "replayed"
    assert replay.Recorded(SPACE, 0.05).kind == "synthetic"
    noisy = run(SPACE, "greedy", 10, spread=0.05, finalists=2)
    assert noisy.go().kind == "synthetic"


def test_regret_is_the_share_that_is_missing():
    rows = study.play(SPACE, "greedy", 20, 0)
    assert len(rows) == 21
    assert rows[0] == 1.0
    assert all(a >= b for a, b in itertools.pairwise(rows)), "it never rises"
    search = run(SPACE, "greedy", 20, seed=0)
    search.go()
    assert rows[-1] == pytest.approx(1 - search.tree.best().score / SPACE.best)


def test_a_study_ranks_by_what_was_played():
    done = study.study([SPACE], ["random", "greedy"], trials=25, seeds=12)
    assert [c.strategy for c in done.curves] == ["greedy", "random"]
    games = numpy.array([study.play(SPACE, "greedy", 25, s) for s in range(12)])
    best = done.curves[0]
    assert best.mean == pytest.approx(games.mean(axis=0))
    assert all(lo <= m <= hi for lo, m, hi in zip(best.low, best.mean, best.high, strict=True))
    (v,) = done.versus
    assert (v.strategy, v.clear) == ("greedy", True)
    assert v.high < 0
    same = study.study([SPACE], ["random", "greedy"], trials=25, seeds=12)
    assert same == done, "the same seeds, the same study"


def test_two_equal_strategies_are_not_told_apart():
    done = study.study([SPACE], ["random", "islands:islands=1,tournament=1,migration=1000"], trials=12, seeds=12)
    assert not done.versus[0].clear


def test_a_space_without_a_gain_is_refused():
    flat = Space.of_grid("flat", {"A": 1}, [{"at": {"A": 1}, "ratio": 1.0}, {"at": {"A": 2}, "ratio": 0.9}])
    with pytest.raises(UserError, match="nothing in 'flat' is faster than its start"):
        study.study([flat], ["random"])


def test_a_fitted_policy_is_no_worse_on_its_record_and_is_judged_elsewhere():
    policy = fit.fit([SPACE], 15, generations=2)
    assert policy.after <= policy.before
    assert policy.after == pytest.approx(fit.area(policy.weights, [SPACE], 15), abs=1e-3)
    assert fit.FIRST_SEED > 1000, "seeds of the fit are not those of a study"
    known, judged = fit.halves([grid("a"), grid("b"), grid("c")])
    assert [s.name for s in known] == ["a", "c"]
    assert [s.name for s in judged] == ["b"]


def test_bad_weights_are_bad():
    """So that fitting has something to find."""
    good, bad = dict(learned.DEFAULT), dict(learned.DEFAULT) | {"rank": 3.0}
    assert fit.area(good, [SPACE], 20) < fit.area(bad, [SPACE], 20) - 0.1


def test_a_fitted_policy_is_a_strategy(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps({"weights": dict.fromkeys(learned.FEATURES, 0.0) | {"rank": -50}}))
    rows = study.play(SPACE, f"learned:weights={tmp_path}/p.json", 15, 0)
    assert rows == study.play(SPACE, "greedy", 15, 0) or rows[-1] < 0.3
    with pytest.raises(UserError, match="holds no fitted policy"):
        plugins.strategy("learned", weights=str(tmp_path / "none.json"))


def test_pictures_and_tables_of_a_study(capsys):
    done = study.study([SPACE], ["random", "greedy"], trials=10, seeds=4)
    html = search_page.render_study(done)
    assert html.count("<polyline") == 2
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")
    search_study.show(done)
    out = capsys.readouterr().out
    assert out.index("\ngreedy") < out.index("\nrandom")
    assert "10 trials a game" in " ".join(out.split())
    assert math.isfinite(done.curves[0].area)
