"""Tables at 40, 80 and 120 columns: no line is longer, every gate and kernel is named whole, and the words can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.audit import Audited, Pair, Row
from tilewright.compare import Compared, GateChange
from tilewright.corpus.grade import Grade, Graded
from tilewright.corpus.labels import Label
from tilewright.prove.finding import CaseRecord, Finding
from tilewright.prove.verdict import Claim, GateReport, Verdict
from tilewright.report import audit_table, compare_table, corpus_table, terminal

WIDTHS = (40, 80, 120)
REASON = "out[0, 2] is 0, expected 1: error 1, 1.4e+06 times the budget"
NAME = "softmax/rows/wrong_finite_padding.py"


def verdict(word: str = "reject") -> Verdict:
    finding = Finding(cls="wrong", summary=REASON, where=f"{NAME}:17", expected="1", got="0", gate="batch invariance",
                      case=CaseRecord(dims={"M": 1, "N": 3}, dtype="float32"), id="0123456789ab", replays=True)  # fmt: skip
    gates = (
        GateReport(name="values", role="core", status="pass", meaning="20 cases, worst error 0.13 of the budget"),
        GateReport(name="other dtypes", role="advisory", status="not applicable", reason="the contract names its dtypes"),
        GateReport(name="batch invariance", role="deciding", status="fail", reason=REASON, findings=(finding,),
                   seconds=12.3),
    )  # fmt: skip
    domain = {
        "dtypes": ["float32", "bfloat16"],
        "dims": {"M": [1, 1 << 20]},
        "tried": {"M": 65537},
        "contract": "stated",
    }
    return Verdict(verdict=word, reason=f"batch invariance: {REASON}", gates=gates, kernel=NAME, task="softmax",
                   domain=domain,
                   claims=(Claim(kind="sampled", domain="tried up to M=65537", strength="53 sizes"),))  # fmt: skip


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def readable(text: str, width: int, *words: str) -> None:
    """No line is too long, no column so narrow that words stand in pieces below each other, and ``words`` are whole."""
    lines = text.splitlines()
    assert max(map(len, lines)) <= width, max(lines, key=len)
    assert "…" not in text, "nothing is cut off"
    assert sum(0 < len(line.strip()) <= 6 for line in lines) <= 5, text
    for word in words:
        assert any(word in line for line in lines), f"{word!r} is not whole at {width} columns:\n{text}"


def test_verdict(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.verdict(verdict())
    text = capsys.readouterr().out
    assert REASON in " ".join(text.replace("│", " ").split()), "the finding's summary is not cut"
    readable(text, width, "batch invariance", "other dtypes", "not applicable", "fail", "expected 1")
    terminal.verdict(verdict("accept"))
    readable(capsys.readouterr().out, width, "batch invariance", "ACCEPT", "float32, bfloat16")


def test_audit(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [Pair(n, Path("p.py"), Path(n)) for n in (NAME, "right.py", "broken.py")]
    rows = [
        Row(pairs[0], verdict()),
        Row(pairs[1], verdict("accept")),
        Row(pairs[2], error="syntax error: invalid syntax"),
    ]
    audit_table.show(Audited(rows))
    readable(
        capsys.readouterr().out, width, "wrong_finite_padding.py", "reject", "accept", "error", "expected 1", "invalid"
    )


def test_compare(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    change = GateChange(
        gate="batch invariance", old="not applicable", new="inconclusive", change="less accurate", note=REASON
    )
    compare_table.show(Compared(old=verdict("accept"), new=verdict(), changes=(change,), answer="open"))
    readable(capsys.readouterr().out, width, "batch invariance", "inconclusive", "less accurate", "expected 1", "OPEN")


def test_corpus(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    label = Label(default="reject", strict="reject", gate=("values", "shapes"))
    grades = [Grade(Pair(NAME, Path("p.py"), Path(NAME)), label, "default", "accept", "shapes", kind, 1.0, REASON)
              for kind in ("missed", "other gate", "killed")]  # fmt: skip
    corpus_table.show(Graded(grades))
    corpus_table.show_lost(Graded(grades))
    readable(capsys.readouterr().out, width, "wrong_finite_padding.py", "missed", "other gate", "expected 1", "LOST: 1")


def test_gates_that_do_not_apply_for_one_reason_share_a_row(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    made = verdict()
    idle = [
        GateReport(name=n, role="deciding", status="not applicable", reason="needs a GPU")
        for n in ("compile", "device")
    ]
    terminal.verdict(made.model_copy(update={"gates": (*made.gates, *idle)}))
    readable(capsys.readouterr().out, width, "2 gates", "needs a GPU: compile, device")
