"""Records to put into a ledger."""

import hashlib
from pathlib import Path

from tilewright.kernel.kernel import read
from tilewright.ledger import Ledger
from tilewright.prove.finding import CaseRecord, Finding
from tilewright.prove.verdict import GateReport, Verdict
from tilewright.task import Contract, TaskSheet

PROBLEM = b"import torch\n\n\ndef reference(x, eps):\n    return x + eps\n"
SOURCE = "def kernel(x, eps):\n    return x - eps\n"


class Sample:
    """A kernel, a task sheet, their files, and verdicts about them."""

    def __init__(self, folder: Path, source: str = SOURCE):
        folder.mkdir(exist_ok=True)
        (folder / "kernel.py").write_text(source)
        (folder / "problem.py").write_bytes(PROBLEM)
        self.kernel = read(str(folder / "kernel.py"))
        self.sheet = TaskSheet(
            name="sum", path=str(folder / "problem.py"), files={"problem.py": hashlib.sha256(PROBLEM).hexdigest()},
            contract=Contract(layouts="advisory"),
        )  # fmt: skip
        self.files = {"kernel.py": source.encode(), "problem.py": PROBLEM}

    def verdict(self, which="reject", **changes) -> Verdict:
        finding = Finding(cls="wrong", summary="minus for plus", case=CaseRecord(inputs={"x": 1.5, "eps": 0.5}))
        status = "fail" if which == "reject" else "pass"
        findings = (finding,) if which == "reject" else ()
        gate = GateReport(name="values", role="core", status=status, findings=findings)
        return Verdict(verdict=which, gates=(gate,), versions={"tilewright": "0.1.0"}, **changes)

    def record(self, ledger: Ledger, which="reject", **changes) -> Verdict:
        return ledger.record_verdict(self.verdict(which, **changes), self.kernel, self.sheet, self.files)
