"""Bad input: a clear error that says what, where and what next; exit code 2; nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import PROBLEM, Run

MODEL = (
    "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def forward(self, x):\n        return {body}\n\n"
    "def get_inputs():\n    return [torch.rand(8, 8)]\n\ndef get_init_inputs():\n    return []\n"
)


def told(run: Run, *arguments: object, code: int = 2) -> str:
    done = run(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def test_missing_problem_and_kernel(folder: Path, tilewright: Run) -> None:
    assert "problem 'none.py' does not exist" in told(tilewright, "check", "none.py", "right.py")
    assert "kernel file 'none.py' does not exist" in told(tilewright, "check", "problem.py", "none.py")


def test_syntax_errors_name_file_and_line(folder: Path, tilewright: Run) -> None:
    (folder / "bad.py").write_text("import torch\n\ndef kernel(x:\n    return x\n")
    text = told(tilewright, "check", "problem.py", "bad.py")
    assert "bad.py:3" in text
    assert "syntax error" in text
    (folder / "bad_problem.py").write_text("TASK = (\n")
    assert "bad_problem.py:1" in told(tilewright, "check", "bad_problem.py", "right.py")


def test_syntax_errors_show_the_line_with_a_caret(folder: Path, tilewright: Run) -> None:
    (folder / "bad.py").write_text("import torch\n\ndef kernel(x):\n    return x +* 2\n")
    (folder / "mine.py").write_text("def f(:\n")
    (folder / "imports.py").write_text("import mine\n" + PROBLEM)
    for problem, kernel, place, line, caret in (
        ("problem.py", "bad.py", "bad.py:4", "    return x +* 2", "              ^"),
        ("bad.py", "right.py", "bad.py:4", "    return x +* 2", "              ^"),
        ("imports.py", "right.py", "mine.py:1", "    def f(:", "          ^"),
    ):
        done = tilewright("check", problem, kernel)
        assert done.returncode == 2, done.stdout + done.stderr
        assert place in done.stderr
        assert f"{line}\n{caret}\n" in done.stderr, done.stderr
        assert "\nTry: " in done.stderr


def test_a_null_byte(folder: Path, tilewright: Run) -> None:
    (folder / "bad.py").write_text("import torch\n\0\n")
    for arguments in (("problem.py", "bad.py"), ("bad.py", "right.py")):
        assert "null bytes" in told(tilewright, "check", *arguments)


def test_a_folder_for_a_kernel(folder: Path, tilewright: Run) -> None:
    (folder / "kernels").mkdir()
    assert "holds no kernel file" in told(tilewright, "check", "problem.py", "kernels")
    (folder / "kernels" / "first.py").write_text("")
    text = told(tilewright, "check", "problem.py", "kernels")
    assert "kernel 'kernels' is a folder" in text
    assert "it holds first.py" in text
    assert "tilewright audit kernels" in text


def test_no_entry_point(folder: Path, tilewright: Run) -> None:
    (folder / "two.py").write_text("def first(x): return x\n\ndef second(x): return x\n")
    text = told(tilewright, "check", "problem.py", "two.py")
    assert "no entry point" in text
    assert "two.py::FUNCTION" in text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x.no_such_method()", "no_such_method"),
        ("'text'", "no tensor"),
        (
            "x + torch.rand(8, 8, generator=torch.Generator().manual_seed(torch.seed() % 2**31))",
            "two results for one input",
        ),
    ],
)
def test_reference_at_fault(folder: Path, tilewright: Run, body: str, words: str) -> None:
    (folder / "model.py").write_text(MODEL.format(body=body))
    (folder / "new.py").write_text(
        "import torch.nn as nn\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    assert words in told(tilewright, "check", "model.py", "new.py")


def test_an_import_that_fails_in_the_problem(folder: Path, tilewright: Run) -> None:
    (folder / "needs.py").write_text("import no_such_package\n" + PROBLEM)
    text = told(tilewright, "check", "needs.py", "right.py")
    assert "no_such_package" in text
    assert "needs.py:1" in text


def test_an_import_that_fails_in_the_kernel_is_its_fault(folder: Path, tilewright: Run) -> None:
    (folder / "needs.py").write_text("import no_such_package\ndef kernel(x): return x\n")
    done = tilewright("check", "problem.py", "needs.py")
    assert done.returncode == 1
    assert "no_such_package" in done.stdout


def test_a_ledger_that_is_none(folder: Path, tilewright: Run) -> None:
    (folder / "text.sqlite").write_text("not a database, but long enough to be looked at " * 10)
    text = told(tilewright, "check", "problem.py", "right.py", "--ledger", folder / "text.sqlite")
    assert "text.sqlite" in text
    assert (folder / "text.sqlite").read_text().startswith("not a database")


def test_wrong_options(folder: Path, tilewright: Run) -> None:
    assert "sandbox is 'maybe'" in told(tilewright, "check", "problem.py", "right.py", "--sandbox", "maybe")
    assert "No such option" in told(tilewright, "check", "--frobnicate")
    assert "no (problem, kernel) pair" in told(tilewright, "audit", _empty(folder))
    assert "is not a folder" in told(tilewright, "audit", "nowhere")
    assert "nothing" in told(tilewright, "replay", "ffffffffffff").lower() or "no " in told(
        tilewright, "replay", "ffffffffffff"
    )


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir(exist_ok=True)
    return folder / "empty"


def test_no_compiler(folder: Path, tilewright: Run) -> None:
    (folder / "k.c").write_text("void kernel(const float *x, float *y, long M, long N) {}\n")
    text = tilewright(
        "check", "problem.py", "k.c", env={"PATH": "/nonexistent", "CC": ""})  # fmt: skip
    assert text.returncode == 2, text.stdout + text.stderr
    assert "no C compiler found" in text.stderr


def test_a_report_that_cannot_be_written(folder: Path, tilewright: Run) -> None:
    (folder / "file").write_text("")
    assert "can't write" in told(tilewright, "check", "problem.py", "right.py", "--json", folder / "file" / "x.json")


@pytest.mark.parametrize("command", ["check", "audit", "compare", "corpus", "doctor"])
def test_reports_are_tried_before_the_work_and_leave_nothing(folder: Path, tilewright: Run, command: str) -> None:
    """The inputs are missing as well; what is told is the report, so nothing else was looked at before."""
    arguments = {"check": ["none.py", "none.py"], "compare": ["none.py", "none.py", "-p", "none.py"],
                 "audit": ["none"], "corpus": ["none"], "doctor": []}[command]  # fmt: skip
    (folder / "file").write_text("")
    reports = ["--json", folder / "file" / "x.json"]
    if command in ("check", "audit"):
        reports = ["--json", folder / "new" / "a.json", "--junit", folder / "b.xml", "--sarif", folder / "file" / "c"]
    text = told(tilewright, command, *arguments, *reports)
    assert "can't write" in text
    assert "is not a folder" in text
    assert sorted(p.name for p in folder.iterdir() if "ledger" not in p.name) == [
        "file", "problem.py", "right.py", "wrong.py"]  # fmt: skip
    assert "it is a folder" in told(tilewright, command, *arguments, "--json", folder)


def test_a_failed_run_leaves_no_report(folder: Path, tilewright: Run) -> None:
    told(
        tilewright, "check", "problem.py", "none.py", "--json", folder / "x.json", "--junit", folder / "deep" / "x.xml"
    )
    assert not (folder / "x.json").exists()
    assert not (folder / "deep").exists()


def test_an_endless_message_of_the_reference_is_cut(folder: Path, tilewright: Run) -> None:
    (folder / "model.py").write_text(MODEL.format(body="(_ for _ in ()).throw(ValueError('many words ' * 100_000))"))
    (folder / "new.py").write_text("import torch.nn as nn\nclass ModelNew(nn.Module):\n    pass\n")
    text = told(tilewright, "check", "model.py", "new.py")
    assert "ValueError: many words many words" in text
    assert "the rest: run model.py by itself" in text
    assert len(text) < 2000


def test_an_endless_message_of_the_kernel_is_cut(folder: Path, tilewright: Run) -> None:
    (folder / "loud.py").write_text("def kernel(x):\n    raise ValueError('many words ' * 100_000)\n")
    done = tilewright("check", "problem.py", "loud.py", "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the rest: the detail of the finding" in done.stdout
    assert len(done.stdout) < 2000
