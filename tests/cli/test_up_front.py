"""What can't be is refused before any work, in words, with exit code 2. Inputs are missing as well: whoever looked at them
first would say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright import cli
from tilewright.cli import run

SECONDS = "is not a number of seconds above 0"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_LEDGER", str(tmp_path / "ledger.sqlite"))
    (tmp_path / "file").write_text("")
    (tmp_path / "pairs").mkdir()
    (tmp_path / "latin.toml").write_bytes('name = "\xe9"\n'.encode("latin-1"))
    (tmp_path / "latin.json").write_bytes('{"answer": "\xe9"}'.encode("latin-1"))
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "keys.json").write_text('{"answer": ' * 100_000 + "1" + "}" * 100_000)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 20_000 + "]" * 20_000)
    (tmp_path / "inf.toml").write_text("softmax = inf\n")
    (tmp_path / "minus.toml").write_text('[softmax]\nworkloads = {"M=1" = -1.0}\n')
    return tmp_path


REFUSED = [
    (["bench", "none.py", "none.c", "--hidden", "-1"], "--hidden"),
    (["bench", "none.py", "none.c", "--baselines", ""], "--baselines names no kind of baseline"),
    (["bench", "none.py", "none.c", "--baselines", " , "], "choose from eager, compile"),
    (["bench", "none.py", "none.c", "--baselines", "eagre"], "there is no kind of baseline 'eagre'"),
    (["bench", "none.py", "none.c", "--timeout", "-1"], f"-1 {SECONDS}"),
    (["check", "none.py", "none.c", "--timeout", "nan"], f"nan {SECONDS}"),
    (["check", "none.py", "none.c", "--timeout", "inf"], f"inf {SECONDS}"),
    (["audit", "none", "--gate-seconds", "0"], f"0 {SECONDS}"),
    (["suite", "run", "none", "--hidden", "-1"], "--hidden"),
    (["suite", "run", "none", "--baselines", ","], "--baselines names no kind of baseline"),
    (["suite", "run", "none", "--json", "file/x.json"], "can't write 'file/x.json'"),
    (["suite", "run", "none", "--html", "file/x.html"], "can't write 'file/x.html'"),
    (["suite", "run", "none", "--html", "pairs"], "it is a folder"),
    (["report", "none.json", "--html", "file/x.html"], "can't write 'file/x.html'"),
    (["report", "latin.json"], "latin.json: not JSON: byte 12 is no UTF-8"),
    (["report", "deep.json"], "deep.json: nested too deeply for a measurement or a verdict"),
    (["report", "keys.json"], "keys.json: nested too deeply for a measurement or a verdict"),
    (["audit", "pairs", "--problem-glob", "/abs"], "--problem-glob '/abs' leads out of 'pairs'"),
    (["audit", "pairs", "--kernel-glob", "../*"], "--kernel-glob '../*' leads out of 'pairs'"),
    (["audit", "pairs", "--problem-glob", "**x/y"], "--problem-glob '**x/y' is no pattern"),
    (["audit", "pairs", "--kernel-glob", "."], "--kernel-glob '.' is no pattern"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(a) for a, _ in REFUSED])
def test_refused(place: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(place.iterdir())
    assert run(arguments) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert words in said
    assert "Traceback" not in said
    assert "itself failed" not in said
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize(("facts", "words"), [
    ("latin.toml", "not TOML: byte 8 is no UTF-8"), ("deep.toml", "not a list of facts: nested too deeply"),
    ("inf.toml", "[softmax] weight"), ("minus.toml", "[softmax] workloads.M=1"),
])  # fmt: skip
def test_facts(place: Path, facts: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "suite" / "softmax").mkdir(parents=True)
    (place / "suite" / "softmax" / "problem.py").write_text("")
    assert run(["suite", "list", "suite", "--facts", facts]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{facts}: {words}" in said


@pytest.mark.parametrize(
    "more", [["--seed", "1"], ["--mutants", "1"], ["--mutants", "1", "--mutants-only"], ["--no-usual"]]
)
def test_a_corpus_without_such_a_kernel(more: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = Path(__file__).parents[2] / "corpus"
    assert run(["corpus", str(corpus), "--only", "zzzz", *more]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "has 'zzzz' in its name" in said
    assert "itself failed" not in said


def test_baseline_files_are_read_before_the_kernel_is_checked(place: Path, monkeypatch: pytest.MonkeyPatch,
                                                              capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    from tilewright.measure import bench

    monkeypatch.setattr(bench, "licensed", lambda *a, **k: pytest.fail("the kernel was checked"))
    (place / "kernel.c").write_text("void kernel(const float *x, float *y, long N) {}\n")
    (place / "triton_file.py").write_text(
        "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef kernel(x):\n    k[(1,)](x)\n"
    )
    assert cli.run(["bench", "none.py", "kernel.c", "-b", "none.c"]) == 2
    assert "'none.c' does not exist" in capsys.readouterr().err
    assert cli.run(["bench", "none.py", "kernel.c", "-b", "triton_file.py"]) == 2
    assert "can't be timed on the CPU" in capsys.readouterr().err


def test_nothing_to_compare_with_from_python(place: Path) -> None:
    from tilewright.errors import UserError
    from tilewright.measure.bench import Options, bench

    (place / "kernel.c").write_text("void kernel(const float *x, float *y, long N) {}\n")
    for options, words in ((Options(kinds=()), "nothing to compare with"), (Options(hidden=-2), "-2 hidden workloads")):
        with pytest.raises(UserError, match=words):
            bench("none.py", "kernel.c", options=options)
