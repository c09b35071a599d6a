"""``tilewright suite`` from the command line, with real checks of small torch kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.cli import run

from .conftest import write

RELU = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {body}\n"


def test_list(kernelbench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["suite", "list", str(kernelbench)]) == 0
    out = capsys.readouterr().out
    assert "level1/10_Twice" in out
    assert "3 problems, kernelbench" in out


def test_no_kernels_named(kernelbench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["suite", "run", str(kernelbench)]) == 2
    assert "--kernels DIR" in capsys.readouterr().err


@pytest.mark.slow
def test_run_without_a_gpu_gives_the_checks_and_says_so(
    kernelbench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    write(tmp_path / "k/level_1_problem_1_sample_0_kernel.py", RELU.format(body="x.clamp(min=0) + 0"))
    write(tmp_path / "k/level_1_problem_10_sample_0_kernel.py", RELU.format(body="x * 3"))
    report = tmp_path / "s.json"
    arguments = ["suite", "run", str(kernelbench), "--kernels", str(tmp_path / "k"), "--only", "level1",
                 "--json", str(report), "--ledger", str(tmp_path / "ledger.sqlite"), "--at", "0", "--at", "1",
                 "--check-only"]  # fmt: skip
    assert run(arguments) == 1
    out = capsys.readouterr().out
    assert "50.0%" in out
    assert "1 accepted kernel: checked only, as asked" in out
    assert "level1/10_Twice: wrong" in out
    rows = json.loads(report.read_text())["methods"]["sample 0"]
    assert [r["verdict"] for r in rows["results"]] == ["accept", "reject"]
    assert rows["scores"]["fast_p"] == {
        "0": {"least": 0.5, "most": 0.5, "of": 2},
        "1": {"least": 0.0, "most": 0.5, "of": 2},
    }
