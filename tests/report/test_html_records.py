"""``tilewright report``: what it shows, from which ids and files, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.samples import Sample
from tilewright.cli import run
from tilewright.errors import UserError
from tilewright.ledger import Ledger, contract_hash, measurements
from tilewright.measure.protocol import PROTOCOL
from tilewright.report import records

from . import made_up
from .test_html import verdict


def write(path: Path, *items: object) -> str:
    path.write_text(json.dumps([json.loads(i.model_dump_json()) for i in items]))  # type: ignore[attr-defined]
    return str(path)


def test_files_of_measurements_and_verdicts(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", made_up.faster(), verdict())
    found = records.read_all([file], None)
    assert found == [made_up.faster(), verdict()]
    assert run(["report", file, "--html", str(tmp_path / "out" / "r.html")]) == 0
    assert "Faster" in (tmp_path / "out" / "r.html").read_text()


def test_the_terminal_form(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert run(["report", write(tmp_path / "a.json", made_up.faster(), made_up.refused(), made_up.even())]) == 0
    out = capsys.readouterr().out
    for part in ("FASTER  examples/silu_mul/kernel.py", "Slower at M=128 N=100000 (0.930×).", "compile *",
                 "REFUSED  kernels/remembers.c", "NO MEASURABLE GAIN", "baseline max-autotune: unavailable: no g++",
                 "3 of 4 hidden workloads"):  # fmt: skip
        assert part in out, part
    line = next(ln for ln in out.splitlines() if ln.startswith("M=128") and "compile *" in ln)
    assert line.index("●") < line.index("│"), "a slower kernel lies left of 1"


def test_the_terminal_marks_what_is_too_noisy(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "150")
    assert run(["report", write(tmp_path / "a.json", made_up.noisy())]) == 0
    out = capsys.readouterr().out
    loud, plain = (next(ln for ln in out.splitlines() if ln.startswith("M=8192") and name in ln)
                   for name in ("compile *", "eager"))  # fmt: skip
    assert "○" in loud
    assert "●" not in loud
    assert loud.rstrip().endswith("too noisy")
    assert "●" in plain
    assert "noise band ±12.0%: as far as A/A reaches" in out
    assert "noise     band ±12.0%: as far as A/A reaches" in out


@pytest.mark.parametrize(("text", "message"), [
    ("{", "not JSON"), ("[]", "empty list"), ('{"a": 1}', "neither a measurement nor a verdict"),
    ('{"answer": "faster"}', "a measurement in a form that this version can't read"),
    ('{"verdict": "perhaps"}', "a verdict in a form that this version can't read"),
])  # fmt: skip
def test_files_that_hold_something_else(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(UserError, match=message) as e:
        records.read_all([str(file)], None)
    assert str(file) in str(e.value)


def test_unknown_ids_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = ["--ledger", str(tmp_path / "ledger.sqlite")]
    assert run(["report", "abcdef", *ledger]) == 2
    assert "has no record 'abcdef'" in capsys.readouterr().err
    assert run(["report", str(tmp_path / "absent.json"), *ledger]) == 2
    assert "can't read" in capsys.readouterr().err


def test_a_measurement_in_the_ledger_by_its_id(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "ledger.sqlite")
    sample = Sample(tmp_path / "sample")
    verdict = sample.record(book, "accept")
    protocol = PROTOCOL.sha256()
    m = made_up.faster(kernel_sha256=sample.kernel.sha256(), task_sha256=sample.sheet.sha256(), device_class="cpu",
                       contract=contract_hash(sample.sheet, "default"), verdict=verdict.id, id="",
                       protocol=protocol)  # fmt: skip
    measurements.register_protocol(book.store, protocol, "1", PROTOCOL.body())
    kept = measurements.record(book.store, m, {"cpu": "made up"})
    assert records.read_all([kept.id[:6], verdict.id], book.name)[0] == kept
    out = tmp_path / "r.html"
    assert run(["report", kept.id, verdict.id, "--html", str(out), "--ledger", book.name]) == 0
    assert kept.id in out.read_text()
    assert run(["show", kept.id, "--ledger", book.name]) == 0


def test_what_is_neither_measurement_nor_verdict(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "ledger.sqlite")
    run_id = book.audit({"a": 1}, {"x": "0"}).id
    with pytest.raises(UserError, match="is the audit"):
        records.from_ledger(book, run_id)
