"""Rewrites: a skill at one place, only admitted ones, nothing twice, and reasons where there is nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.errors import Unsupported, UserError
from tilewright.measure.record import Interval, Measurement
from tilewright.search.proposers import rewrites
from tilewright.search.proposers._declared import read
from tilewright.search.skills import _admission, _effect
from tilewright.search.skills._skill import EXAMPLES, Found, Site, Skill, all_skills

from .make import context, node, tree

NAIVE = (EXAMPLES / "naive.c").read_text()


def begun(tmp_path: Path, source: str = NAIVE, **options: str) -> rewrites.Rewrites:
    made = rewrites.make(options)
    made.begin(context(tree(node(0, source)), tmp_path))
    return made


def test_the_arms_are_the_skills_and_one_may_be_asked_for(tmp_path: Path) -> None:
    made = begun(tmp_path)
    assert set(made.arms) == {s.name for s in all_skills("native")}
    proposal = made.propose(context(tree(node(0, NAIVE)), tmp_path, skill="c-rows"))
    assert proposal is not None
    assert (proposal.skill, proposal.proposer) == ("c-rows", "rewrites")
    assert "sums kept in the output" in proposal.title
    assert "Allen and Kennedy" in proposal.rationale
    assert proposal.extra["skill_sha256"] == next(s for s in all_skills() if s.name == "c-rows").sha256()


def test_nothing_is_proposed_twice_and_then_the_refusals_are_told(tmp_path: Path) -> None:
    made, grown = begun(tmp_path, only="c-rows+c-lanes"), tree(node(0, NAIVE))
    for i in (1, 2):
        proposal = made.propose(context(grown, tmp_path, seed=i))
        assert proposal is not None
        grown.add(node(i, proposal.source))
    assert made.propose(context(grown, tmp_path)) is None
    rows = next(n for n in grown if "c[i * N + j] +=" in n.source)
    assert made.propose(context(grown, tmp_path, parent=rows.number)) is None
    assert made.trouble == "no skill has a place here that was not tried"


def test_a_rewrite_brings_parameters_that_knobs_can_tune(tmp_path: Path) -> None:
    proposal = begun(tmp_path).propose(context(tree(node(0, NAIVE)), tmp_path, skill="c-tile"))
    assert proposal is not None
    assert set(read(proposal.source, "native").now) == {"TILE_I", "TILE_J"}


class Wrong(Skill):
    """Drops the last row."""

    name, language, example = "wrong", "native", ("matmul.py", "naive.c")

    def find(self, text: str) -> Iterator[Found]:
        if "i < M;" in text:
            yield Site(1, "one row less", text.replace("i < M;", "i < M - 1;"))


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Wrong:
    skill = Wrong()
    monkeypatch.setattr(Wrong, "sha256", lambda self: "wrong")
    monkeypatch.setattr(_admission, "_made", {})
    monkeypatch.setattr(rewrites, "all_skills", lambda language: [skill])
    return skill


def test_a_skill_whose_result_is_wrong_is_not_admitted_and_not_used(wrong: Wrong, tmp_path: Path) -> None:
    made = begun(tmp_path)
    assert made.propose(context(tree(node(0, NAIVE)), tmp_path)) is None
    assert "wrong is not admitted: one row less: " in made.trouble


def test_a_record_is_about_one_version_of_a_skill(monkeypatch: pytest.MonkeyPatch) -> None:
    skill = next(s for s in all_skills() if s.name == "c-rows")
    assert _admission.admission(skill).checked
    called: list[str] = []

    def again(s: Skill) -> _admission.Admission:
        called.append(s.name)
        return _admission.Admission(skill=s.name, sha256=s.sha256(), admitted=False, verdict="reject")

    monkeypatch.setattr(_admission, "_made", {})
    monkeypatch.setattr(_admission, "admit", again)
    monkeypatch.setattr(type(skill), "sha256", lambda self: "another version")
    assert not _admission.admission(skill).admitted
    assert called == ["c-rows"]


def test_the_predicted_gain_is_what_the_skill_gave_in_this_run(tmp_path: Path) -> None:
    steps = ((1, 0, 1.5), (2, 1, 1.8), (3, 1, 3.0))
    grown = tree(node(0, NAIVE), *(node(n, NAIVE + "\n" * n, p, ratio=r, skill="c-rows") for n, p, r in steps))
    assert rewrites.gained(grown.nodes, "c-rows") == pytest.approx([1.5, 1.2, 2.0])
    proposal = begun(tmp_path).propose(context(grown, tmp_path, skill="c-rows"))
    assert proposal is not None
    assert proposal.predicted == pytest.approx(1.5)


def test_skills_that_there_are_not_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no skill 'c-nothing' for native kernels"):
        begun(tmp_path, only="c-nothing")
    with pytest.raises(UserError, match="takes no option 'all'"):
        rewrites.make({"all": "1"})


@pytest.mark.parametrize(("answer", "kept"), [
    ("faster", True), ("no measurable gain", True), ("too noisy", False), ("refused", False),
])  # fmt: skip
def test_only_a_lawful_measurement_is_an_effect(answer: str, kept: bool) -> None:
    ratio = Interval(low=1.1, median=1.2, high=1.3, level=0.95)
    made = Measurement(
        answer=answer, kernel_sha256="k", task_sha256="t", protocol="p", protocol_version="v1", ratio=ratio
    )  # type: ignore[arg-type]
    found = _effect.of(made, "matmul, N=8")
    assert (found is not None) == kept
    assert found is None or (found.ratio, found.low, found.high, found.by) == (1.2, 1.1, 1.3, f"v1: {answer}")


def test_a_skill_is_measured_on_the_device_that_it_is_for() -> None:
    with pytest.raises(Unsupported, match=r"c-rows can't be timed on cuda"):
        _effect.effects(next(s for s in all_skills() if s.name == "c-rows"), device="cuda")
