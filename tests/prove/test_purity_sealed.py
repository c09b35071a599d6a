"""Purity: an input that is written during the call and put back before it returns."""

from __future__ import annotations

import pytest
from trial import trial

TASK = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x, w: x * w.sum(), inputs={"x": TensorSpec("N"), "w": TensorSpec("K"MUTATED)},
    outputs={"y": TensorSpec("N")}, dims={"N": Dim(1, 64), "K": Dim(1, 8)}, workloads=[{"N": 12, "K": 4}],
)
"""
PLAIN = TASK.replace("MUTATED", "")
C = """
#include <stdint.h>
void kernel(const float *x, const float *w, float *y, int64_t N, int64_t K) {
    static int calls;
    volatile float *own = (volatile float *)(calls++ >= LATER ? SECRET : 0);
    float kept = own ? *own : 0;
    if (own) *own = 0;
    if (own) *own = kept;
    float sum = 0;
    for (int64_t k = 0; k < K; k++) sum += w[k];
    for (int64_t i = 0; i < N; i++) y[i] = x[i] * sum;
}
"""
TORCH = "import torch\ndef kernel(x, w):\n    w.neg_()\n    y = x * -w.sum()\n    w.neg_()\n    return y\n"
TRITON = """
import torch
import triton
import triton.language as tl
@triton.jit
def negate(w_ptr, K, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    tl.store(w_ptr + k, -tl.load(w_ptr + k, mask=k < K), mask=k < K)
@triton.jit
def scale(x_ptr, w_ptr, y_ptr, N, K, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, 8)
    w = SIGN tl.sum(tl.load(w_ptr + k, mask=k < K, other=0.0))
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < N) * w, mask=i < N)
def kernel(x, w):
    y = torch.empty_like(x)
    BEFORE
    scale[(triton.cdiv(len(x), 16),)](x, w, y, len(x), len(w), BLOCK=16)
    AFTER
    return y
"""
LAUNCH = "negate[(1,)](w, len(w), BLOCK=8)"


def triton(before: str, after: str, sign: str = "-") -> str:
    return TRITON.replace("BEFORE", before).replace("AFTER", after).replace("SIGN", sign)


def c(written: str, later: int = 0) -> str:
    return C.replace("SECRET", written).replace("LATER", str(later))


@pytest.mark.parametrize(("written", "name"), [("x", "x"), ("w + K - 1", "w")])
def test_a_c_kernel_that_puts_its_input_back(tmp_path, written, name):
    finding = trial(tmp_path, c(written), "interface", "values", "shapes", "purity", task=PLAIN, suffix=".c").finding
    assert (finding.gate, finding.cls, finding.where) == ("purity", "wrong", name)
    assert finding.summary.startswith(f"input '{name}' is written during the call and put back")
    assert finding.got == f"a write to '{name}'"
    assert finding.replays


def test_only_at_other_sizes_than_the_given_one(tmp_path):
    """A tail that borrows a place in the input: never at the given size."""
    finding = trial(tmp_path, c("(N % 4 ? x : 0)"), "purity", task=PLAIN, suffix=".c").finding
    assert finding.summary.startswith("input 'x' is written")


def test_only_in_later_calls(tmp_path):
    finding = trial(tmp_path, c("w", later=6), "purity", task=PLAIN, suffix=".c").finding
    assert finding.cls == "wrong"
    assert "input 'w' is written" in finding.summary


def test_torch_that_puts_its_input_back(tmp_path):
    finding = trial(tmp_path, TORCH, "values", "purity", task=PLAIN).finding
    assert finding.summary.startswith("input 'w' is written during the call and put back")


@pytest.mark.parametrize(("before", "after"), [(LAUNCH, LAUNCH), (LAUNCH, "w.neg_()"), ("w.neg_()", LAUNCH)])
def test_launches_that_put_an_input_back(tmp_path, before, after):
    finding = trial(tmp_path, triton(before, after), "interface", "values", "shapes", "purity", task=PLAIN).finding
    assert (finding.gate, finding.cls, finding.where) == ("purity", "wrong", "w")
    assert finding.summary.startswith("input 'w' is written during the call and put back")
    assert finding.replays


def test_launches_that_change_a_copy_pass(tmp_path):
    kernel = triton("w = w.clone(); " + LAUNCH, LAUNCH)
    result = trial(tmp_path, kernel, "values", "purity", task=PLAIN)
    assert (result.failed, result["purity"].status) == (None, "pass"), result.finding


@pytest.mark.parametrize(("kernel", "suffix"), [(c("w"), ".c"), (TORCH, ".py"), (triton(LAUNCH, LAUNCH), ".py")])
def test_what_the_contract_lets_change_may_be_written(tmp_path, kernel, suffix):
    task = TASK.replace("MUTATED", ", mutated=True")
    result = trial(tmp_path, kernel, "values", "purity", task=task, suffix=suffix)
    assert result.failed is None, result.finding


def test_a_kernel_that_only_reads_passes(tmp_path):
    result = trial(tmp_path, c("0"), "purity", task=PLAIN, suffix=".c")
    assert result["purity"].status == "pass", result["purity"]


def test_a_crash_of_its_own_is_no_write(tmp_path):
    crash = c("(calls > 3 ? (float *)8 : 0)")
    finding = trial(tmp_path, crash, "purity", task=PLAIN, suffix=".c").finding
    assert "crashes" in finding.summary
    assert "written" not in finding.summary


def test_an_input_that_stays_overwritten_is_told_as_before(tmp_path):
    kept = c("w").replace("*own = kept;", "*own = kept + 1;")
    finding = trial(tmp_path, kept, "purity", task=PLAIN, suffix=".c").finding
    assert finding.summary.startswith("input 'w' is overwritten")
