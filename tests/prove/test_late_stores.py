"""What every program stores after its last atomic, no other program can wait for."""

from pathlib import Path

import pytest

from tilewright.kernel import read
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task
from tilewright.prove.gates import gate

FOLDER = Path(__file__).parents[2] / "corpus" / "ir" / "last_one"


@pytest.mark.parametrize(("name", "status"), [("right_stored_before", "pass"), ("wrong_stored_after", "fail")])
def test_the_last_program_reads_what_others_have_stored(name: str, status: str) -> None:
    sheet, session = open_task(str(FOLDER / "problem.py"))
    exam = Examination(sheet, read(str(FOLDER / f"{name}.py")), session, seed=3)
    try:
        report = gate("races").run(exam)
    finally:
        exam.close()
        exam.reference.close()
    assert report.status == status, report
    if status == "fail":
        assert "read/write race in _sum" in report.findings[0].summary
        assert "of 'part_ptr', one reading and one writing it" in report.findings[0].summary
