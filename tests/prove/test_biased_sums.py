"""Sums of equal terms: each addition is rounded the same way, so that an honest loop strays as far as theory allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.kernel import read
from tilewright.prove.case import Recipe
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task
from tilewright.prove.gate import Check
from tilewright.prove.truth import refine
from tilewright.task.task import Workload

TASK = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=torch.matmul, inputs={"a": TensorSpec("M K"), "b": TensorSpec("K N")}, outputs={"c": TensorSpec("M N")},
    dims={"M": Dim(1, 64), "K": Dim(1, 1024), "N": Dim(1, 64)}, workloads=[{"M": 4, "K": 193, "N": 1}],
)
"""
LOOP = """
#include <stdint.h>
void kernel(const float *a, const float *b, float *c, int64_t M, int64_t K, int64_t N) {
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            %s sum = 0;
            for (int64_t k = 0; k < %s; k++) sum += a[i * K + k] * b[k * N + j];
            c[i * N + j] = sum;
        }
}
"""


@pytest.fixture
def exam(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Examination]:
    (tmp_path / "problem.py").write_text(TASK)
    (tmp_path / "kernel.c").write_text(LOOP % request.param)
    sheet, reference = open_task(str(tmp_path / "problem.py"))
    made = Examination(sheet, read(str(tmp_path / "kernel.c")), reference, seed=3)
    yield made
    made.close()
    made.reference.close()


def judged(exam: Examination, family: str, seed: int, terms: int) -> Check:
    case = exam.make(Recipe(Workload(dims={"M": 4, "K": terms, "N": 1}, dtype="float32"), family=family, seed=seed))
    return exam.judge(case, exam.run(case))


@pytest.mark.parametrize("exam", [("float", "K")], indirect=True)
@pytest.mark.parametrize("family", ["all_equal", "constant_rows"])
def test_a_plain_loop_over_equal_terms_is_right(exam: Examination, family: str) -> None:
    worst = max(judged(exam, family, seed, terms).ratio for seed in range(20) for terms in (9, 193, 1023))
    assert 0 < worst <= 1


@pytest.mark.parametrize("exam", [("float", "K - (K > 200)"), ("_Float16", "K")], indirect=True)
def test_a_term_too_few_and_a_sum_in_half_precision_are_still_wrong(exam: Examination) -> None:
    assert all(judged(exam, "all_equal", seed, 1023).failed for seed in range(5))


@pytest.mark.parametrize("exam", [("float", "K")], indirect=True)
def test_more_draws_of_the_conditioning_only_widen_it(exam: Examination) -> None:
    case = exam.make(Recipe(Workload(dims={"M": 16, "K": 64, "N": 16}, dtype="float32"), seed=1))
    truth = exam.truth(case)
    before = truth.sensitivity["c" if "c" in truth.sensitivity else "out"].clone()
    refine(exam, case, truth)
    after = next(iter(truth.sensitivity.values()))
    assert bool((after >= before).all())
    assert int((after > before).sum()) > 128
    assert truth.refined


@pytest.mark.parametrize("exam", [("float", "K")], indirect=True)
def test_a_case_that_fails_narrowly_gets_a_second_look_and_one_that_passes_does_not(exam: Examination) -> None:
    case = exam.make(Recipe(Workload(dims={"M": 16, "K": 64, "N": 16}, dtype="float32"), seed=1))
    outcome = exam.run(case)
    assert not exam.judge(case, outcome).failed
    assert not exam.truth(case).refined
    (name,) = outcome.outputs
    off = outcome.outputs[name] * (1 + 3e-5)
    assert exam.judge(case, replace(outcome, outputs={name: off})).failed
    assert exam.truth(case).refined
