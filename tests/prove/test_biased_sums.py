"""Sums of equal terms: each addition is rounded the same way, so that an honest loop strays as far as theory allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tilewright.kernel import read
from tilewright.prove.case import Recipe
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task
from tilewright.prove.gate import Check
from tilewright.prove.truth import refine, repeats
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


SOFTMAX_TASK = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: torch.softmax(x, -1), inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 64), "N": Dim(1, 1024)}, workloads=[{"M": 4, "N": 180}],
)
"""
SOFTMAX = """
#include <math.h>
#include <stdint.h>
void kernel(const float *x, float *y, int64_t M, int64_t N) {
    for (int64_t i = 0; i < M; i++) {
        float top = x[i * N];
        %s sum = 0;
        for (int64_t j = 0; j < N; j++) top = fmaxf(top, x[i * N + j]);
        for (int64_t j = 0; j < %s; j++) sum += expf(x[i * N + j] - top);
        for (int64_t j = 0; j < N; j++) y[i * N + j] = expf(x[i * N + j] - top) / (float)sum;
    }
}
"""


@pytest.fixture
def softmax(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Examination]:
    (tmp_path / "problem.py").write_text(SOFTMAX_TASK)
    (tmp_path / "kernel.c").write_text(SOFTMAX % request.param)
    sheet, reference = open_task(str(tmp_path / "problem.py"))
    made = Examination(sheet, read(str(tmp_path / "kernel.c")), reference, seed=3)
    yield made
    made.close()
    made.reference.close()


def softmaxed(exam: Examination, seed: int, terms: int, family: str = "small_integers") -> Check:
    workload = Workload(dims={"M": 4, "N": terms}, dtype="float32")
    case = exam.make(Recipe(workload, family=family, seed=seed))
    return exam.judge(case, exam.run(case))


@pytest.mark.parametrize("softmax", [("float", "N")], indirect=True)
def test_a_plain_loop_over_few_different_terms_is_right(softmax: Examination) -> None:
    """Also where the sum goes into a quotient, and its dim is one of the output's."""
    worst = max(softmaxed(softmax, seed, terms).ratio for seed in range(12) for terms in (131, 180, 1001))
    assert 0.2 < worst <= 1


@pytest.mark.parametrize("softmax", [("float", "N")], indirect=True)
@pytest.mark.parametrize("family", ["special:subnormal", "special:at 1.5", "one_hot", "small_integers"])
def test_what_repeats_is_seen_in_the_values(softmax: Examination, family: str) -> None:
    worst = max(softmaxed(softmax, seed, terms, family).ratio for seed in range(12) for terms in (117, 1001))
    assert 0 < worst <= 1


def test_values_that_hardly_repeat_keep_the_narrow_budget() -> None:
    g = torch.Generator().manual_seed(1)
    normal = torch.randn(16, 64, generator=g)
    assert not repeats({"x": normal, "w": torch.ones(64)}), "a weight of ones makes no sum of equal terms"
    assert not repeats({"x": normal.bfloat16()})
    assert not repeats({"index": torch.zeros(64, dtype=torch.int64)})
    assert not repeats({"x": torch.ones(4)}), "too few to matter"
    assert repeats({"x": normal.round().clamp(-2, 2), "w": normal[0]})
    assert repeats({"x": torch.where(normal > 0.5, 0.0, normal).t()})


@pytest.mark.parametrize("softmax", [("float", "N - (N > 200)"), ("_Float16", "N")], indirect=True)
def test_a_wrong_sum_in_a_softmax_is_still_wrong(softmax: Examination) -> None:
    assert all(softmaxed(softmax, seed, 1001).failed for seed in range(5))
