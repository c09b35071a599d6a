"""Mutants: made mechanically, the same ones each time; scored, resumed; equivalent ones are listed with a reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tilewright.audit import Row
from tilewright.corpus import scoring
from tilewright.corpus.mutants import Mutant, mutants

CORPUS = Path(__file__).parents[2] / "corpus"
PROBLEM = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(reference=lambda x: torch.relu(x), inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("N")},
            dims={"N": Dim(1, 64)}, workloads=[{"N": 16}])
"""
RIGHT = "import torch\n\ndef kernel(x):\n    return torch.relu(x)\n"
WRONG = "import torch\n\ndef kernel(x):\n    return torch.relu(x) + 1\n"
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def _double(x_ptr, y_ptr, N, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * stride, mask=at < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, x + x, mask=at < N)

def kernel(x):
    return 1 + 1
"""


def test_mutants_change_one_place_inside_jitted_functions() -> None:
    made = mutants("k.py", Path("problem.py"), KERNEL)
    assert {m.kind for m in made} == {"operator", "stride", "mask", "constant", "comparison", "dtype"}
    plain = ast.unparse(ast.parse(KERNEL)).splitlines()
    for m in made:
        changed = [n for a, n in zip(plain, m.text.splitlines(), strict=True) if a != n]
        assert len(changed) == 1, m
        assert "return 1 + 1" in m.text


def test_the_choice_is_the_same_each_time_and_takes_every_kind() -> None:
    many = mutants("k.py", Path("problem.py"), KERNEL)
    assert scoring.choose(many, 4) == scoring.choose(list(reversed(many)), 4)
    assert len({m.kind for m in scoring.choose(many, 6)}) == 6


def test_the_corpus_lists_equivalent_mutants_that_exist_with_a_reason() -> None:
    known = scoring.equivalent(CORPUS)
    there = {m.key for m in scoring.chosen(CORPUS, each=1000)}
    assert set(known) <= there, sorted(set(known) - there)
    assert all(len(reason.split()) >= 4 for reason in known.values())


def mutant(folder: Path, change: str, text: str) -> Mutant:
    return Mutant("right.py", folder / "problem.py", "operator", 1, change, text)


def test_score_tells_killed_from_survived_and_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(PROBLEM)
    many = [mutant(tmp_path, "one more", WRONG), mutant(tmp_path, "nothing", RIGHT), mutant(tmp_path, "known", RIGHT)]
    known = {"right.py:1: known": "the same text as before"}
    options = {"ledger": str(tmp_path / "ledger.sqlite"), "jobs": 1}

    def stop(row: Row, resumed: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scoring.score(many, known, notice=stop, **options)
    seen: list[bool] = []
    scored = scoring.score(many, known, notice=lambda row, resumed: seen.append(resumed), **options)
    assert seen == [True, False]
    assert [(m.change, what) for m, what, _ in scored.results] == [
        ("one more", "killed"), ("nothing", "survived"), ("known", "equivalent")]  # fmt: skip
    assert scored.results[0][2] == "values"
    assert scored.exit_code == 1
    assert scored.by_kind()["operator"]["equivalent"] == 1
    assert scored.data()["results"][2]["why"] == "the same text as before"
