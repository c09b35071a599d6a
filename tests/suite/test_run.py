"""A run of a suite: what is kept, what is done again after a stop, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.samples import Sample
from tilewright.errors import KernelError
from tilewright.ledger import Ledger
from tilewright.prove.verdict import Verdict
from tilewright.suite import Done, Entry, data, pair, read_facts, read_suite, run, run_suite
from tilewright.suite.run import Measured
from tilewright.suite.scores import Timing

from .conftest import write


class Stopped(Exception):
    """As if the process had been killed."""


@pytest.fixture
def book(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    for name in ("level1/1_Relu", "level1/10_Twice", "level2/1_Relu"):
        write(folder / f"{name}.py", "")
    return folder


class Referee:
    """Stands in for the check: verdicts by kernel name, recorded as real ones are. Counts its calls."""

    def __init__(self, words: dict[str, str], folder: Path):
        self.words, self.folder, self.calls = words, folder, 0

    def __call__(self, problem: str, kernel: str, *, ledger: str, **options: Any) -> Any:
        self.calls += 1
        word = self.words["/".join(Path(kernel).with_suffix("").parts[-2:])]
        if word == "stop":
            raise Stopped
        if word == "error":
            raise KernelError("has no entry point")
        sample = Sample(self.folder / f"sample{self.calls}", f"def kernel(x, eps):\n    return x - {self.calls}\n")
        return SimpleNamespace(verdict=sample.record(Ledger.open(ledger), word))


def timings(speedup: float) -> Callable[[Entry, Verdict], Measured]:
    answer = "faster" if speedup > 1 else "slower"
    return lambda e, v: Measured(
        answer, (Timing("N=1", speedup, speedup * 0.99, speedup * 1.01, 0.5),), ids=("a" * 12,)
    )


def go(bench: Path, kernels: Path, book: str, referee: Referee, measure: Any, **more: Any) -> Done:
    suite = read_suite(bench)
    return run_suite(suite, pair(suite, kernels), measure, jobs=1, ledger=book, **more)


@pytest.fixture
def referee(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Referee:
    made = Referee(
        {"level1/1_Relu": "accept", "level1/10_Twice": "reject", "level2/1_Relu": "accept"}, tmp_path / "samples"
    )
    made.folder.mkdir()
    monkeypatch.setattr(run, "examine_and_record", made)
    return made


def test_only_what_was_accepted_is_measured(kernelbench: Path, kernels: Path, book: str, referee: Referee) -> None:
    asked: list[str] = []

    def measure(entry: Entry, verdict: Verdict) -> Measured:
        assert verdict.accepted
        asked.append(entry.problem.name)
        return timings(2.0)(entry, verdict)

    done = go(kernelbench, kernels, book, referee, measure)
    assert asked == ["level1/1_Relu", "level2/1_Relu"]
    assert [(r.problem, r.verdict, r.answer) for r in done.results("kernels")] == [
        ("level1/1_Relu", "accept", "faster"), ("level1/10_Twice", "reject", ""),
        ("level2/1_Relu", "accept", "faster")]  # fmt: skip
    assert done.exit_code == 1


def test_an_attempt_is_not_listed_as_a_measurement(
    kernelbench: Path, kernels: Path, book: str, referee: Referee
) -> None:
    def measure(entry: Entry, verdict: Verdict) -> Measured:
        if entry.problem.name.startswith("level2"):
            return Measured("too noisy", (), why="it varies", ids=("b" * 12,))
        return timings(2.0)(entry, verdict)

    done = go(kernelbench, kernels, book, referee, measure)
    ids = {r["problem"]: r["ids"] for r in data(done, (1.0,))["methods"]["kernels"]["results"]}
    assert (ids["level1/1_Relu"]["measurements"], ids["level1/1_Relu"]["attempts"]) == (["a" * 12], [])
    assert (ids["level2/1_Relu"]["measurements"], ids["level2/1_Relu"]["attempts"]) == ([], ["b" * 12])


def test_a_stopped_run_goes_on(kernelbench: Path, kernels: Path, book: str, referee: Referee) -> None:
    referee.words["level2/1_Relu"] = "stop"
    with pytest.raises(Stopped):
        go(kernelbench, kernels, book, referee, timings(2.0))
    assert referee.calls == 3
    referee.words["level2/1_Relu"] = "accept"
    done = go(kernelbench, kernels, book, referee, timings(2.0))
    assert referee.calls == 4, "only the third is checked again"
    assert done.resumed == 2
    assert [r.answer for r in done.results("kernels")] == ["faster", "", "faster"]


def test_measurements_are_not_repeated_either(kernelbench: Path, kernels: Path, book: str, referee: Referee) -> None:
    def stops(entry: Entry, verdict: Verdict) -> Measured:
        if entry.problem.name.startswith("level2"):
            raise Stopped
        return timings(2.0)(entry, verdict)

    with pytest.raises(Stopped):
        go(kernelbench, kernels, book, referee, stops)
    done = go(kernelbench, kernels, book, referee, timings(0.5))
    assert [r.speedup for r in done.results("kernels") if r.timings] == [2.0, 0.5], "the first is remembered"
    first = next(o for o in done.outcomes if o.entry.problem.name == "level1/1_Relu")
    assert first.measured == timings(2.0)(first.entry, Verdict(verdict="accept"))


def test_a_changed_kernel_is_checked_and_measured_again(
    kernelbench: Path, kernels: Path, book: str, referee: Referee
) -> None:
    referee.words["level2/1_Relu"] = "stop"
    with pytest.raises(Stopped):
        go(kernelbench, kernels, book, referee, timings(2.0))
    referee.words["level2/1_Relu"] = "accept"
    write(kernels / "level1/1_Relu.py", "x = 1\n")
    done = go(kernelbench, kernels, book, referee, timings(2.0))
    assert referee.calls == 5
    assert done.resumed == 1


def test_a_finished_run_begins_anew_and_other_keys_are_other_runs(
    kernelbench: Path, kernels: Path, book: str, referee: Referee
) -> None:
    go(kernelbench, kernels, book, referee, timings(2.0))
    go(kernelbench, kernels, book, referee, timings(2.0))
    assert referee.calls == 6
    referee.words["level2/1_Relu"] = "stop"
    with pytest.raises(Stopped):
        go(kernelbench, kernels, book, referee, timings(2.0), key={"device": "cpu"})
    with pytest.raises(Stopped):
        go(kernelbench, kernels, book, referee, timings(2.0), key={"device": "cuda"})
    assert referee.calls == 12


def test_what_can_not_be_measured_is_said_and_tried_again(
    kernelbench: Path, kernels: Path, book: str, referee: Referee
) -> None:
    done = go(kernelbench, kernels, book, referee, lambda e, v: Measured(why="timed on a GPU"))
    assert dict(done.unmeasured()) == {"timed on a GPU": 2}
    assert [r.reason for r in done.results("kernels") if r.verdict == "accept"] == ["timed on a GPU"] * 2
    assert data(done, (0.0, 1.0))["methods"]["kernels"]["scores"]["fast_p"]["1"] == {
        "least": 0.0,
        "most": 2 / 3,
        "of": 3,
    }


def test_errors_and_missing_kernels_count_as_not_right(
    kernelbench: Path, kernels: Path, book: str, referee: Referee
) -> None:
    (kernels / "level1/1_Relu.py").unlink()
    referee.words["level2/1_Relu"] = "error"
    done = go(kernelbench, kernels, book, referee, timings(2.0))
    assert [(r.verdict, r.reason) for r in done.results("kernels")] == [
        ("missing", "no kernel"), ("reject", ""), ("error", "has no entry point")]  # fmt: skip
    assert done.exit_code == 2
    assert data(done, (0.0,))["methods"]["kernels"]["scores"]["fast_p"]["0"]["least"] == 0.0


def test_weights_of_workloads(kernelbench: Path, kernels: Path, book: str, referee: Referee, tmp_path: Path) -> None:
    two = (Timing("N=1", 4.0, 4.0, 4.0, 0.8), Timing("N=2", 1.0, 1.0, 1.0, 0.4))
    facts = write(tmp_path / "facts.toml", '["level1/1_Relu"]\nworkloads = {"N=1" = 3, "N=2" = 1}\n')
    suite = read_suite(kernelbench).weighed(read_facts(facts))
    done = run_suite(suite, pair(suite, kernels), lambda e, v: Measured("faster", two), jobs=1, ledger=book)
    first = done.results("kernels")[0]
    assert first.floor == pytest.approx(0.7)
    assert first.speedup == pytest.approx(4**0.75)


def test_a_refused_measurement_is_not_right(kernelbench: Path, kernels: Path, book: str, referee: Referee) -> None:
    done = go(kernelbench, kernels, book, referee, lambda e, v: Measured("refused", why="below the floor"))
    scores = data(done, (0.0,))["methods"]["kernels"]["scores"]
    assert scores["fast_p"]["0"]["least"] == 0.0
    assert [r.reason for r in done.results("kernels") if r.verdict == "accept"] == ["below the floor"] * 2
