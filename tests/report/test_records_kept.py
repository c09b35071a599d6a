"""Attempts and searches: what ``report`` and ``show`` make of their ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.samples import Sample
from search import spaces
from tilewright.cli import run
from tilewright.ledger import Ledger, contract_hash, measurements
from tilewright.measure.protocol import PROTOCOL
from tilewright.measure.record import Measurement
from tilewright.report import html, records, search_page
from tilewright.search import store

from . import made_up
from .test_html import text, verdict

WHY = "block ratios vary by 9.1%, above the cap of 5%"


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.sqlite")


def attempt(book: Ledger, folder: Path) -> Measurement:
    sample = Sample(folder / "sample")
    accepted = sample.record(book, "accept")
    m = made_up.noisy(kernel_sha256=sample.kernel.sha256(), task_sha256=sample.sheet.sha256(), device_class="cpu",
                      contract=contract_hash(sample.sheet, "default"), verdict=accepted.id, id="", reason=WHY,
                      protocol=PROTOCOL.sha256())  # fmt: skip
    measurements.register_protocol(book.store, PROTOCOL.sha256(), "1", PROTOCOL.body())
    return measurements.attempt(book.store, m, {"cpu": "made up"})


def search(book: Ledger, path: str = "p", trials: int = 5) -> str:
    made = store.RunStore.create(book, key={}, kind="replayed", problem=path, kernel_path=path.replace("p", "k"),
                                 options={"strategy": "beam"})  # fmt: skip
    if trials:
        spaces.run(spaces.grid(), "beam", trials, book=made, finalists=1).go()
    return made.id


def test_an_attempt_is_shown_as_one(book: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = attempt(book, tmp_path)
    assert records.read_all([kept.id[:7]], book.name) == [kept]
    for command in ("report", "show"):
        assert run([command, kept.id, "--ledger", book.name]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "TOO NOISY" in out
        assert WHY in out
        assert f"as an attempt, which claims nothing: tilewright report {kept.id}" in out
    assert run(["show", kept.id, "--json", "--ledger", book.name]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == "too noisy"
    page = text(html.render([kept]))
    assert f"attempt {kept.id}" in page
    assert "measurement fedc" not in page


def test_a_search_is_reported_by_its_id(book: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    id = search(book)
    for command in ("report", "show"):
        assert run([command, id[:8], "--ledger", book.name]) == 0
        out = capsys.readouterr().out
        assert "5 trials" in out
        assert id in out
    assert run(["report", id, "--html", str(tmp_path / "r.html"), "--ledger", book.name]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "Finalists" in page
    assert page.count("<details") == 6
    assert run(["show", id, "--json", "--ledger", book.name]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == id


def test_a_search_stands_beside_other_records(book: Ledger) -> None:
    page = text(html.render([*records.read_all([search(book)], book.name), verdict(), made_up.even()]))
    for part in ("3 records", "Finalists", "Counterexample", "No measurable gain"):
        assert part in page


def test_a_search_that_has_not_begun(book: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    id = search(book, trials=0)
    assert run(["report", id, "--ledger", book.name]) == 0
    out = capsys.readouterr().out
    assert "UNFINISHED  0 trials" in out
    assert f"tilewright search --run {id}" in out
    assert "unfinished" in text(html.render(records.read_all([id], book.name)))


def test_the_conclusion_of_a_search_is_told_from_a_measurement(tmp_path: Path,
                                                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    from tilewright.search.finalists import Conclusion

    (tmp_path / "c.json").write_text(Conclusion(answer="faster", reason="").model_dump_json())
    assert run(["report", str(tmp_path / "c.json")]) == 2
    assert "the conclusion of a search" in capsys.readouterr().err


def test_no_folder_of_this_machine_in_the_head(book: Ledger, tmp_path: Path) -> None:
    id = search(book, path=str(tmp_path / "deep" / "matmul" / "p.py"))
    page = search_page.Page.of_record(book, store.load(book, id))
    for whole in (search_page.render(page), html.render([page])):
        assert str(tmp_path) not in whole
        assert "matmul/p.py" in whole
    m = made_up.faster(kernel=str(tmp_path / "softmax" / "kernel.c"))
    assert str(tmp_path) not in html.render([m])
