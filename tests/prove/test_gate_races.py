"""Gate races: what one run never shows, and what is no race."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial import RIGHT as BASE
from trial import SOFTMAX, trial

from tilewright.prove.gates import _symbolic

RIGHT = BASE + "\nkernel = launch\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proved doesn't depend on how busy this machine is."""
    monkeypatch.setattr(_symbolic, "OBSERVE_S", 30.0)
    monkeypatch.setattr(_symbolic, "SECONDS", 30.0)
    monkeypatch.setattr(_symbolic, "MORE_S", 30.0)


HEAD = "import torch\nimport triton\nimport triton.language as tl\n"

SMOOTH = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
def reference(x):
    y = x.clone()
    y[:-1] += x[1:]
    return y
TASK = Task(reference=reference, inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("N")},
            dims={"N": Dim(1, 4096)}, workloads=[{"N": 300}], contract=Contract())
"""

IN_PLACE = (
    HEAD
    + """
@triton.jit
def smooth(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = tl.load(y_ptr + i, mask=i < n, other=0.0)
    after = tl.load(y_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(y_ptr + i, here + after, mask=i < n)

def kernel(x):
    y = x.clone()
    smooth[(triton.cdiv(x.shape[0], 64),)](y, x.shape[0], BLOCK=64)
    return y
"""
)

SUM = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: x.sum(0), inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("N")},
            dims={"M": Dim(1, 64), "N": Dim(1, 64)}, workloads=[{"M": 6, "N": 12}],
            contract=Contract(determinism="none"))
"""

ADDS = (
    HEAD
    + """
@triton.jit
def add_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n)
    ADD

def kernel(x):
    x = x.contiguous()
    y = torch.zeros(x.shape[1], dtype=x.dtype)
    add_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""
)

LOCKED = (
    HEAD
    + """
@triton.jit
def add_rows(x_ptr, y_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    y = tl.load(y_ptr + cols, mask=cols < n)
    tl.store(y_ptr + cols, x + y, mask=cols < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)

def kernel(x):
    x = x.contiguous()
    y = torch.zeros(x.shape[1], dtype=x.dtype)
    lock = torch.zeros(1, dtype=torch.int32)
    add_rows[(x.shape[0],)](x, y, lock, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""
)

OVERLAP = RIGHT.replace("softmax_kernel[(x.shape[0],)]", "softmax_kernel[(x.shape[0] + 1,)]").replace(
    "row = tl.program_id(0)", "row = tl.maximum(tl.program_id(0) - 1, 0)"
)


def run(folder: Path, kernel: str, task: str = SOFTMAX):
    return trial(folder, kernel, "races", task=task)


def test_a_halo_read_in_place_is_a_race_that_no_run_shows(tmp_path: Path) -> None:
    result = trial(tmp_path, IN_PLACE, "values", "shapes", "races", task=SMOOTH)
    assert result["values"].status == result["shapes"].status == "pass"
    finding = result.finding
    assert (finding.gate, finding.cls) == ("races", "wrong")
    assert "read/write race in smooth" in finding.summary
    assert "which program comes first" in finding.got
    assert finding.where.startswith("candidate.py:")
    assert finding.replays
    assert finding.case.dims["N"] < 200, "shrunk to little more than one tile"


def test_a_plain_sum_into_shared_memory_is_a_race(tmp_path: Path) -> None:
    plain = ADDS.replace("ADD", "tl.store(y_ptr + cols, tl.load(y_ptr + cols, mask=cols < n) + x, mask=cols < n)")
    assert "race in add_rows" in run(tmp_path, plain, SUM).finding.summary


def test_writes_of_different_values_are_a_race(tmp_path: Path) -> None:
    last = ADDS.replace("ADD", "tl.store(y_ptr + cols, x, mask=cols < n)")
    finding = run(tmp_path, last, SUM).finding
    assert finding.summary.startswith("write/write race")
    assert "different values" in finding.summary


def test_atomics_are_no_race(tmp_path: Path) -> None:
    report = run(tmp_path, ADDS.replace("ADD", "tl.atomic_add(y_ptr + cols, x, mask=cols < n)"), SUM)["races"]
    assert report.status == "pass"
    assert all("atomics excepted" in c.strength for c in report.claims)


def test_equal_values_written_twice_are_a_note(tmp_path: Path) -> None:
    report = run(tmp_path, OVERLAP)["races"]
    assert report.status == "pass", report.reason
    assert "equal values written by several programs at candidate.py:" in report.meaning


def test_locks_are_not_decided(tmp_path: Path) -> None:
    report = run(tmp_path, LOCKED, SUM)["races"]
    assert report.status in ("inconclusive", "pass")
    assert not report.findings
    assert not report.claims
    assert "order themselves by atomics" in report.reason


def test_a_right_kernel_passes_with_a_claim(tmp_path: Path) -> None:
    report = run(tmp_path, RIGHT)["races"]
    assert report.status == "pass"
    assert {c.kind for c in report.claims} == {"race-free"}


@pytest.mark.parametrize(("suffix", "kernel"), [(".c", "void kernel(const float *x, float *y) {}")])
def test_not_for_c(tmp_path: Path, suffix: str, kernel: str) -> None:
    report = trial(tmp_path, kernel, "races", suffix=suffix)["races"]
    assert report.status == "not applicable"
    assert "Triton" in report.reason


LINES = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: 2 * x, inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("N")},
            dims={"N": Dim(1, 65536)}, workloads=[{"N": 300}], contract=Contract())
"""

TILES = (
    HEAD
    + """
@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, 2 * x, mask=i < n)
    MORE

def kernel(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.shape[0], 64),)](x, y, x.shape[0], BLOCK=64)
    return y
"""
)


def test_every_size_of_the_contract_is_proved_free_of_races(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    report = trial(tmp_path, TILES.replace("MORE", "pass"), "races", task=LINES)["races"]
    assert report.status == "pass"
    assert "all sizes: proved" in report.meaning
    assert report.claims[0].domain == "every N in 1..65536; contiguous inputs"
    assert report.claims[0].kind == "race-free"


def test_a_race_at_sizes_that_nobody_tries_is_found_and_replayed(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    spill = "tl.store(y_ptr + i + 64, x, mask=(i + 64 < n) & (i % 64 == 0) & (n % 61 == 17) & (n > 500))"
    finding = trial(tmp_path, TILES.replace("MORE", spill), "races", task=LINES).finding
    assert (finding.gate, finding.cls, finding.replays) == ("races", "wrong", True)
    assert "write/write race in double_kernel" in finding.summary
    assert finding.case.dims["N"] % 61 == 17
    assert finding.case.dims["N"] > 500
