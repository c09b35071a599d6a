"""The corpus in the terminal: what was lost stands last, and in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.audit import Pair
from tilewright.corpus.grade import Grade, Graded
from tilewright.corpus.labels import Label
from tilewright.report import corpus_table


def grade(name: str, kind: str) -> Grade:
    label = Label(default="accept" if kind in ("right", "false alarm") else "reject", strict="accept", gate="values")
    return Grade(
        Pair(name, Path("problem.py"), Path(name)), label, "default", "reject", "shapes", kind, 1.0, "why it was so"
    )


def test_lost_grades_are_the_last_thing_printed(capsys: pytest.CaptureFixture[str]) -> None:
    done = Graded([grade("alarm.py", "false alarm"), grade("fine.py", "killed"), grade("other.py", "other gate"),
                   grade("missed.py", "missed"), grade("unsettled.py", "unsettled")])  # fmt: skip
    corpus_table.show(done)
    first = capsys.readouterr().out
    assert "other.py" in first
    assert "alarm.py" not in first
    corpus_table.show_lost(done)
    text = capsys.readouterr().out
    assert [n for n in ("alarm.py", "missed.py", "unsettled.py", "fine.py", "other.py") if n in text] == [
        "alarm.py", "missed.py", "unsettled.py"]  # fmt: skip
    assert text.rstrip().endswith("LOST: 3 of 5 grades differ from their labels")


def test_nothing_lost_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    corpus_table.show_lost(Graded([grade("fine.py", "killed")]))
    assert capsys.readouterr().out == "all 1 grades are as labelled\n"
