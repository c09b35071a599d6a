"""``bench`` on a GPU: a right Triton kernel is timed, itself is no gain, and work on another stream is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.kernel import read
from tilewright.measure import ceilings_cuda
from tilewright.measure.baselines import Context, offers
from tilewright.measure.bench import Options, bench
from tilewright.measure.protocol import quick
from tilewright.measure.workload import Setting, play
from tilewright.prove.device.machine import Device
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task

TASK = """
from tilewright.task import Contract, Dim, Task, TensorSpec, Work
TASK = Task(
    reference=lambda x: x * 2 + 1,
    inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 14), "N": Dim(1, 1 << 14)}, workloads=[{"M": 1024, "N": 4096}],
    contract=Contract(layouts="excluded"), work=Work(bytes="2*M*N*itemsize", flops="2*M*N"),
)
"""
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2 + 1, mask=at < n)

def kernel(x):
    y = torch.empty_like(x)
    if x.numel():
        double[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
SIDE = (
    TRITON.replace("def kernel(x):", "def direct(x):")
    + """
stream = None
calls = 0

def kernel(x):
    global stream, calls
    calls += 1
    if calls < 30:
        return direct(x)
    stream = stream or torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(40):
            y = direct(x)
    return y
"""
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "problem.py").write_text(TASK)
    (tmp_path / "kernel.py").write_text(TRITON)
    return str(tmp_path / "problem.py"), str(tmp_path / "kernel.py::kernel")


def test_ceilings() -> None:
    found = ceilings_cuda.measure("cuda")
    assert 1e11 < found.read[1 << 30] < 1e14
    assert found.rates["bfloat16"] > found.rates["float64"]
    assert found.clocks["name"] in found.name or found.name in found.clocks["name"]


@pytest.mark.slow
def test_a_kernel_against_eager_compile_and_itself(files: tuple[str, str], tmp_path: Path) -> None:
    problem, kernel = files
    options = Options(device="cuda", kinds=("eager", "compile", "graph"), files=(kernel,), cold=True, gate_seconds=6.0)
    found = bench(problem, kernel, ledger=str(tmp_path / "l.sqlite"), protocol=quick(), options=options)
    assert found.measurement is not None, found.verdict.reason
    m = found.measurement
    assert m.answer in ("no measurable gain", "slower"), m.reason  # a graph of eager can beat a launch from Python
    assert {b.name: b.status for b in m.baselines}["kernel.py"] == "right"
    assert [(f.cache, f.launch) for f in m.workloads[0].figures] == [
        ("warm", "plain"), ("cold", "plain"), ("warm", "graph"), ("cold", "graph")]  # fmt: skip
    assert m.device_class.startswith("sm_")
    assert m.state["before"]["gpu"]["sm_mhz"] > 0
    own = m.workloads[0].figures[0].ratio("kernel.py")
    assert own is not None
    assert own.answer == "no measurable gain", own
    assert 0 < (m.workloads[0].floor.fraction or 0) < 1.1  # type: ignore[union-attr]
    assert len(m.id) == 12


def test_work_on_another_stream_is_refused(files: tuple[str, str], tmp_path: Path, place: Device) -> None:
    """It is not waited for: the events see none of it, the parent's clock does."""
    problem, _ = files
    cheat = tmp_path / "cheat.py"
    cheat.write_text(SIDE)
    kernel = read(f"{cheat}::kernel")
    sheet, session = open_task(problem)
    exam = Examination(sheet, kernel, session)
    try:
        setting = Setting(exam, problem, kernel, offers(Context(sheet, problem, "cuda"), ("eager",)), quick(), None,
                          place=place)  # fmt: skip
        result = play(setting, exam.workload()).result
        assert result.answer == "refused", result.reason
        assert "clocks disagree" in result.reason or "wrong" in result.reason
    finally:
        exam.close()
        session.close()
