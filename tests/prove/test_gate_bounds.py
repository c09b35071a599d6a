"""Gate bounds: accesses out of range at sizes that are evaluated whole, and at sizes beyond memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial import RIGHT as BASE
from trial import trial

from tilewright.prove.gates import _symbolic


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proved doesn't depend on how busy this machine is."""
    monkeypatch.setattr(_symbolic, "OBSERVE_S", 30.0)
    monkeypatch.setattr(_symbolic, "SECONDS", 30.0)
    monkeypatch.setattr(_symbolic, "MORE_S", 30.0)


HEAD = "import torch\nimport triton\nimport triton.language as tl\n"

TALL = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: 2 * x, inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
            dims={"M": Dim(1, 1 << 20), "N": Dim(1, 4096)}, workloads=[{"M": 6, "N": 12}], contract=Contract())
"""

ROWS = (
    HEAD
    + """
@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(AXIS)WIDE
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n)
        tl.store(y_ptr + row * n + cols, 2 * x, mask=cols < n)

def kernel(x):
    x = x.contiguous()
    GUARD
    y = torch.empty_like(x)
    double_kernel[GRID](x, y, x.shape[1], BLOCK=64)
    return y
"""
)

GATHER = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec, integers
TASK = Task(reference=lambda w, i: w[i], inputs={"w": TensorSpec("V D"),
            "i": TensorSpec("T", dtypes=("INDEX",), dtype_group="index", values=integers(0, "V"))},
            outputs={"y": TensorSpec("T D")}, dims={"T": Dim(1, 64), "V": Dim(1, 1 << 22), "D": Dim(1, 1024)},
            workloads=[{"T": 5, "V": 7, "D": 12}], contract=Contract(layouts="excluded"))
"""

LOOKUP = (
    HEAD
    + """
@triton.jit
def lookup_kernel(w_ptr, i_ptr, y_ptr, D, BLOCK: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    at = tl.load(i_ptr + t)
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + at * D + cols, mask=cols < D)
    tl.store(y_ptr + t * D + cols, w, mask=cols < D)

def kernel(w, i):
    y = torch.empty((i.shape[0], w.shape[1]), dtype=w.dtype, device=w.device)
    lookup_kernel[(i.shape[0],)](w, i, y, w.shape[1], BLOCK=triton.next_power_of_2(w.shape[1]))
    return y
"""
)


def rows(wide: str = "", axis: int = 0, grid: str = "(x.shape[0],)", guard: str = "pass") -> str:
    return ROWS.replace("WIDE", wide).replace("AXIS", str(axis)).replace("GRID", grid).replace("GUARD", guard)


def test_a_32_bit_offset_that_wraps_only_above_2_to_the_31_elements(tmp_path: Path) -> None:
    finding = trial(tmp_path, rows(), "bounds", task=TALL).finding
    assert (finding.gate, finding.cls) == ("bounds", "wrong")
    assert finding.replays
    assert "32-bit offset that wrapped" in finding.summary
    assert ".to(tl.int64)" in finding.expected
    assert finding.where == "candidate.py:10"
    elements = finding.case.dims["M"] * finding.case.dims["N"]
    assert 2**31 < elements < 1.01 * 2**31, "the smallest size at which it shows"


def test_64_bit_offsets_are_in_range_at_the_largest_sizes(tmp_path: Path) -> None:
    report = trial(tmp_path, rows(".to(tl.int64)"), "bounds", task=TALL)["bounds"]
    assert report.status == "pass", report.reason
    *_, claim = report.claims
    assert claim.kind == "bounds"
    assert "M=1048576, N=4096" in claim.domain
    assert report.seconds < 15


def test_a_grid_axis_that_no_gpu_takes(tmp_path: Path) -> None:
    finding = trial(tmp_path, rows(".to(tl.int64)", axis=1, grid="(1, x.shape[0])"), "bounds", task=TALL).finding
    assert "programs along grid axis y, which holds at most 65535" in finding.summary
    assert finding.case.dims["M"] == 65536


def test_an_index_takes_both_ends_of_its_range(tmp_path: Path) -> None:
    finding = trial(tmp_path, LOOKUP, "bounds", task=GATHER.replace("INDEX", "int32")).finding
    assert "32-bit offset that wrapped" in finding.summary
    assert "with 'i' holding" in finding.summary
    assert trial(tmp_path, LOOKUP, "bounds", task=GATHER.replace("INDEX", "int64"))["bounds"].status == "pass"


def test_a_launcher_that_needs_data_is_told(tmp_path: Path) -> None:
    kernel = rows(".to(tl.int64)", guard="assert x.sum().item() < 1e30")
    report = trial(tmp_path, kernel, "bounds", task=TALL)["bounds"]
    assert report.status == "pass"
    assert "beyond memory: the launcher needs values of a tensor" in report.meaning
    assert "M=1048576" not in report.claims[0].domain


def test_an_access_out_of_range_at_a_sampled_size(tmp_path: Path) -> None:
    kernel = BASE.replace("cols < n_cols", "cols <= n_cols") + "\nkernel = launch\n"
    finding = trial(tmp_path, kernel, "bounds").finding
    assert "past the end of" in finding.summary
    assert finding.where.startswith("candidate.py:")


def test_a_launch_a_row_is_given_up_beyond_memory(tmp_path: Path) -> None:
    kernel = rows(".to(tl.int64)").replace(
        "double_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)",
        "[double_kernel[(1,)](x[i], y[i], x.shape[1], BLOCK=64) for i in range(x.shape[0])]",
    )
    assert "for i in range" in kernel
    report = trial(tmp_path, kernel, "bounds", task=TALL)["bounds"]
    assert report.status == "pass"
    assert "more than 64 launches in a call" in report.meaning
    assert report.claims[0].domain == "sampled sizes"


def test_no_launch_says_nothing(tmp_path: Path) -> None:
    kernel = HEAD + "\n@triton.jit\ndef f(x_ptr):\n    tl.store(x_ptr, 1.0)\n\ndef kernel(x):\n    return 2 * x\n"
    report = trial(tmp_path, kernel, "bounds", task=TALL)["bounds"]
    assert (report.status, report.claims) == ("not applicable", ())


EVERY = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: 2 * x, inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
            dims={"M": Dim(1, 4096), "N": Dim(1, 4096)}, workloads=[{"M": 6, "N": 12}],
            contract=Contract(layouts="excluded"))
"""


def rare(mask: str) -> str:
    """A mask that lets one column too many through at 61 * k + 17 columns, above 500: at none of the sizes tried."""
    return rows().replace("mask=cols < n)\n        tl", f"mask={mask})\n        tl", 1)


def test_every_size_of_the_contract_is_proved_in_range(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    report = trial(tmp_path, rows(), "bounds", task=EVERY)["bounds"]
    assert report.status == "pass"
    assert "all sizes: proved" in report.meaning
    first, second = report.claims
    assert first.domain.startswith("every M in 1..4096, N in 1..4096; contiguous inputs")
    assert "by z3" in first.strength
    assert "seen at" in first.strength, "what the proof takes for granted is told"
    assert second.domain.startswith("sampled sizes")


def test_a_fault_at_sizes_that_nobody_tries_is_found_and_replayed(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    rarely = "cols < n + ((n % 61 == 17) & (n > 500)).to(tl.int32)"
    finding = trial(tmp_path, rare(rarely), "bounds", task=EVERY).finding
    assert (finding.gate, finding.cls, finding.replays) == ("bounds", "wrong", True)
    assert "reads past the end of 'x_ptr'" in finding.summary
    n = finding.case.dims["N"]
    assert n % 61 == 17
    assert n > 500


def test_a_counterexample_that_does_not_show_is_no_finding(tmp_path: Path) -> None:
    """Whether the mask is too wide depends on a value that the kernel reads, and that is never so."""
    pytest.importorskip("z3")
    guarded = "cols < n + (tl.load(x_ptr) == 123.25).to(tl.int32)"
    report = trial(tmp_path, rare(guarded), "bounds", task=EVERY)["bounds"]
    assert report.status == "pass"
    assert "all sizes: not proved" in report.meaning
    assert "a value that the kernel reads" in report.meaning
    assert all("every M" not in c.domain for c in report.claims)


def test_without_a_solver_the_concrete_claim_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_symbolic, "find_spec", lambda name: None)
    report = trial(tmp_path, rows(), "bounds", task=EVERY)["bounds"]
    assert report.status == "pass"
    assert "z3 is not installed (pip install 'tilewright[prove]')" in report.meaning
    (claim,) = report.claims
    assert claim.domain.startswith("sampled sizes")


def test_a_solver_that_does_not_come_back_costs_the_proof_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("z3")
    monkeypatch.setattr(_symbolic, "GRACE_S", -_symbolic.SECONDS + 0.001)
    found = trial(tmp_path, rows(".to(tl.int64)"), "coverage", "bounds", task=TALL)
    assert found["bounds"].status == found["coverage"].status == "pass"
    assert "the solver's process gave no answer" in found["bounds"].meaning
    assert found["bounds"].claims[0].domain.startswith("sampled sizes and up to"), "beyond memory is still reached"
