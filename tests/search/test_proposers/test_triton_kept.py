"""Skills for Triton keep a kernel right, by ``tilewright check`` without a GPU: each on its example (``test_admission.py``),
several after another here; and a skill that does not keep it right is found out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright import api
from tilewright.search.skills._admission import admit
from tilewright.search.skills._skill import EXAMPLES, Found, Site, Skill, all_skills

from . import test_triton_skills as told

SKILLS = {s.name: s for s in all_skills("triton")}
CHAINS = {
    "softmax_triton.py": ("t-unmask", "t-persistent", "t-launch", "t-evict"),
    "scaled_triton.py": ("t-exp2", "t-launch", "t-evict"),
    "matmul_triton.py": ("t-swizzle", "t-split-k", "t-launch", "t-evict"),
    "add_triton.py": ("t-epilogue", "t-launch", "t-persistent", "t-evict"),
}
PROBLEMS = {"softmax_triton.py": "row_softmax.py", "scaled_triton.py": "scaled_softmax.py", "matmul_triton.py": "matmul.py",
            "add_triton.py": "add_relu.py"}  # fmt: skip


class Broken(Skill):
    """A skill of Triton whose result has one piece of text replaced."""

    language = "triton"

    def __init__(self, of: str, old: str, new: str):
        self.of, self.old, self.new = SKILLS[of], old, new
        self.example = self.of.example  # type: ignore[misc]

    def find(self, text: str) -> Iterator[Found]:
        for site in self.of.sites(text):
            assert self.old in site.text
            yield Site(site.line, site.title, site.text.replace(self.old, self.new))

    def sha256(self) -> str:
        return "broken"


BROKEN = [
    ("t-split-k", "range(part * BK, K, ", "range(part * BK + BK, K, "),
    ("t-unmask", "range(0, N // BLOCK * BLOCK", "range(BLOCK, N // BLOCK * BLOCK"),
    ("t-exp2", "* 1.4426950408889634", "* 1.4426"),
    ("t-persistent", "tl.num_programs(0)):", "2 * tl.num_programs(0)):"),
    ("t-swizzle", "% tl.num_programs(1)", "% (tl.num_programs(1) + 1)"),
    ("t-epilogue", "< 0, 0.0", "< 0.01, 0.0"),
]


def test_every_skill_is_refused_somewhere_and_kept_right_somewhere() -> None:
    """The tables of these tests leave no skill out; one that is added without is found here."""
    assert {row[0] for row in told.REFUSED} == set(SKILLS)
    assert {name for chain in CHAINS.values() for name in chain} == set(SKILLS)
    assert {of for of, _, _ in BROKEN} | {"t-launch", "t-evict"} == set(SKILLS), (
        "these two change nothing that is computed"
    )


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted(CHAINS))
def test_skills_after_one_another_keep_a_kernel_right(example: str, tmp_path: Path) -> None:
    text = (EXAMPLES / example).read_text()
    for name in CHAINS[example]:
        sites = SKILLS[name].sites(text)
        assert sites, f"{name}: {SKILLS[name].refusals(text)}"
        text = sites[0].text
    (tmp_path / "kernel.py").write_text(text)
    found = api.examine_and_record(str(EXAMPLES / PROBLEMS[example]), str(tmp_path / "kernel.py"), record=False,
                                   gate_seconds=2.0).verdict  # fmt: skip
    assert found.accepted, f"{found.reason}\n{text}"


@pytest.mark.slow
@pytest.mark.parametrize(("of", "old", "new"), BROKEN, ids=[b[0] for b in BROKEN])
def test_a_skill_that_does_not_keep_a_kernel_right_is_found_out(of: str, old: str, new: str) -> None:
    found = admit(Broken(of, old, new), gate_seconds=2.0)
    assert not found.admitted, found
    assert found.verdict == "reject"
