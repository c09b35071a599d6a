"""Every skill's result on its example is checked and accepted, and the records that come with Tilewright say so."""

from __future__ import annotations

import pytest

from tilewright.search.skills._admission import admit, records
from tilewright.search.skills._skill import all_skills

SKILLS = {s.name: s for s in all_skills()}


def test_every_skill_has_a_record_about_what_it_is_now() -> None:
    """``python -m tilewright.search.skills`` writes them anew."""
    stale = [n for n, s in SKILLS.items() if n not in records() or records()[n].sha256 != s.sha256()]
    assert stale == []
    assert all(r.admitted and r.verdict == "accept" and r.sites for r in records().values())
    assert set(records()) == set(SKILLS)


def test_skills_for_triton_were_shown_to_compute_the_same_and_not_only_sampled() -> None:
    for name, skill in SKILLS.items():
        if skill.language == "triton":
            added_up = name == "t-split-k"  # by torch, from parts: what its launch covers is not the output
            shown = {"algebra", "bounds"} if added_up else {"algebra", "bounds", "coverage"}
            assert shown <= set(records()[name].claims), name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SKILLS))
def test_the_result_is_checked_and_accepted(name: str) -> None:
    found = admit(SKILLS[name], gate_seconds=3.0)
    assert found.admitted, found.reason
