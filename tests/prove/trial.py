"""A kernel given as text before a task given as text: what the named gates say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilewright.kernel import read
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task
from tilewright.prove.finding import Finding
from tilewright.prove.gates import gate
from tilewright.prove.verdict import GateReport

SOFTMAX = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: torch.softmax(x, -1),
    inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 64), "N": Dim(1, 64)}, workloads=[{"M": 6, "N": 12}],
    contract=Contract(batch_invariant=("M",)),
)
"""

RIGHT = """
import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)

def launch(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""


@dataclass
class Result:
    """Reports in the order asked for, up to the first finding that replays."""

    reports: list[GateReport]

    @property
    def failed(self) -> GateReport | None:
        return next((r for r in self.reports if rejects(r)), None)

    @property
    def finding(self) -> Finding:
        assert self.failed is not None, [(r.name, r.status, r.reason, r.meaning) for r in self.reports]
        return self.failed.findings[0]

    def __getitem__(self, name: str) -> GateReport:
        return next(r for r in self.reports if r.name == name)


def rejects(report: GateReport) -> bool:
    return report.status == "fail" and any(f.replays for f in report.findings)


def trial(folder: Path, kernel: str, *gates: str, task: str = SOFTMAX, suffix: str = ".py", sandbox: str = "best",
          strict: bool = False) -> Result:  # fmt: skip
    """Run the gates in order until one fails."""
    (folder / "problem.py").write_text(task)
    path = folder / f"candidate{suffix}"
    path.write_text(kernel)
    sheet, reference = open_task(str(folder / "problem.py"), sandbox=sandbox)
    exam = Examination(sheet, read(f"{path}::kernel"), reference, seed=7, sandbox=sandbox, strict=strict)
    reports = []
    try:
        for name in gates:
            reports.append(gate(name).run(exam))
            if rejects(reports[-1]):
                break
    finally:
        exam.close()
        exam.reference.close()
    return Result(reports)
