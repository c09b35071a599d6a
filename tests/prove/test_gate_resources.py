"""Gate resources: registers, spills, shared memory, threads."""

from __future__ import annotations

from pathlib import Path

from trial import RIGHT as BASE
from trial import trial

from tilewright.explain.occupancy import occupancy, resident
from tilewright.prove.child.binaries import _ptx
from tilewright.prove.gates.resources import over

FITS = {"shared": 1024, "warps": 4, "registers": 64}


def test_what_the_machine_code_needs(tmp_path: Path) -> None:
    report = trial(tmp_path, BASE + "\nkernel = launch\n", "resources")["resources"]
    assert report.status == "pass", report.reason
    assert "softmax_kernel: " in report.meaning
    assert "registers x 128 threads, no spills" in report.meaning


def test_limits() -> None:
    assert over(FITS) is None
    assert "shared memory" in over({**FITS, "shared": 232449})[0]
    assert "threads" in over({**FITS, "warps": 64})[0]
    assert "registers" in over({**FITS, "registers": 255, "warps": 32})[0]


def test_too_many_threads_are_a_finding(tmp_path: Path) -> None:
    kernel = BASE.replace("BLOCK=triton", "num_warps=64, BLOCK=triton") + "\nkernel = launch\n"
    result = trial(tmp_path, kernel, "resources")
    report = result["resources"]
    assert report.status in ("fail", "inconclusive")
    assert "threads" in report.reason or "doesn't compile" in report.reason


def test_occupancy_by_hand() -> None:
    assert occupancy(32, 4, 0) == (1.0, "its warps")
    assert resident(255, 4, 0) == (2, "registers")
    assert resident(32, 4, 100 << 10) == (2, "shared memory")
    assert occupancy(32, 1, 0) == (0.5, "programs")


PTX = """
.file 1 "/somewhere/k.py"
.loc 1 18 5
@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
.loc 1 20 5
// begin inline asm
.loc 1 21 5
@%p1 st.global.v2.b16 [ %rd1 + 0 ], { %rs1, %rs2 };
// end inline asm
.loc 1 22 5
cp.async.cg.shared.global [ %r1 + 0 ], [ %rd2 + 0 ], 0x10, %r5;
atom.global.gpu.acq_rel.add.f32 %r1, [ %rd1 + 0 ], %r2;
wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%r1}, 1;
"""


def test_memory_instructions_by_source_line() -> None:
    found, tensor = _ptx(PTX)
    assert found == {("k.py:18", "load", 16): 1, ("k.py:20", "store", 4): 1, ("k.py:22", "copy", 16): 1,
                     ("k.py:22", "atomic", 4): 1}  # fmt: skip
    assert tensor == {"wgmma.mma_async": 1}
