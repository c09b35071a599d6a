"""A run that can't begin leaves nothing behind that ``--resume`` would find."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tilewright.cli import run as command
from tilewright.errors import EnvironmentProblem
from tilewright.ledger import Ledger
from tilewright.search import start, store
from tilewright.search.measured import Measured, Options

ROOT = Path(__file__).parents[2]
PROBLEM = ROOT / "examples" / "03_native" / "problem.py"
KERNEL = ROOT / "examples" / "03_native" / "right.c"

FAILS = {
    "a problem that is not there": (["nope.py", KERNEL], "nope.py"),
    "a kernel that can't be timed here": (
        [ROOT / "examples/01_softmax/problem.py", ROOT / "examples/01_softmax/right.py"], "no times of a Triton kernel"),
    "a skill that there is not": ([PROBLEM, KERNEL, "-p", "rewrites:only=c-nothing"], "no skill 'c-nothing'"),
    "a program that there is not": ([PROBLEM, KERNEL, "-p", "agent:command=nobody-has-this"], "there is no program"),
    "a declaration that can't be read": ([PROBLEM, "BAD"], "knob"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILS)
def test_what_fails_to_start_leaves_no_run(name, tmp_path, capsys):
    given, words = FAILS[name]
    (tmp_path / "bad.c").write_text(KERNEL.read_text() + "#define A 1 // knob: 8..2*x\n")
    arguments = [str(tmp_path / "bad.c") if a == "BAD" else str(a) for a in given]
    ledger = str(tmp_path / "l.sqlite")
    assert command(["search", *arguments, "--budget", "1trials", "--ledger", ledger, "-q"]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert store.runs(Ledger.open(ledger)) == []
    assert not list((tmp_path / "runs").glob("*")), "no folder of a run that never was"
    if name != "a problem that is not there":
        assert start.interrupted(Ledger.open(ledger), *arguments[:2]) is None


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")
def test_a_first_kernel_that_can_not_be_judged_ends_the_run(tmp_path, monkeypatch):
    """It is recorded, and it is not gone on with."""

    def check(*_: object) -> None:
        raise EnvironmentProblem("there is no compiler")

    monkeypatch.setattr(Measured, "check", check)
    book = Ledger.open(str(tmp_path / "l.sqlite"))
    options = Options(ledger=str(tmp_path / "l.sqlite"))
    with pytest.raises(EnvironmentProblem, match="there is no compiler"):
        start.search(start.Request(str(PROBLEM), str(KERNEL), ("1trials",), proposers=("rewrites",), options=options))
    (record,) = store.runs(book)
    assert record.ended is not None
    assert (record.ended["stopped"], record.ended["reason"]) == ("it could not begin", "there is no compiler")
    assert start.interrupted(book, str(PROBLEM), str(KERNEL)) is None


def test_a_run_that_could_not_begin_says_so_in_the_list(tmp_path, capsys):
    from tilewright.search.finalists import not_begun

    book = store.RunStore.create(Ledger.open(str(tmp_path / "l.sqlite")), key={}, kind="measured", problem="p.py",
                                 kernel_path="k.c", options={})  # fmt: skip
    book.event(0, "ended", not_begun("there is no compiler").model_dump(mode="json"))
    assert command(["search", "--list", "--ledger", str(tmp_path / "l.sqlite")]) == 0
    assert "not begun" in capsys.readouterr().out
