"""Gates that judge values on their way do not report once more that values are wrong; what is independent stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.prove.examine import check
from tilewright.prove.verdict import GateReport

from trial import RIGHT, SOFTMAX  # isort: skip

WRONG = RIGHT.replace("e / tl.sum(e, axis=0)", "e / tl.sum(e, axis=0) + 0.5")
LAUNCH = "def kernel(x):\n    return launch(x)\n"


def reports(folder: Path, kernel: str) -> dict[str, GateReport]:
    (folder / "problem.py").write_text(SOFTMAX)
    (folder / "kernel.py").write_text(kernel)
    verdict, _ = check(str(folder / "problem.py"), str(folder / "kernel.py") + "::kernel", all_gates_run=True, seed=7,
                       gate_seconds=2)  # fmt: skip
    assert verdict.verdict == "reject"
    return {g.name: g for g in verdict.gates}


def test_wrong_values_are_told_once(tmp_path: Path) -> None:
    found = reports(tmp_path, WRONG + LAUNCH)
    assert found["values"].status == "fail"
    for name in ("purity", "honesty"):
        assert found[name].status == "pass", found[name]
        assert "left out: values are wrong (gate values)" in found[name].reason
        assert not found[name].claims


def test_what_always_raises_is_told_once(tmp_path: Path) -> None:
    found = reports(tmp_path, "def kernel(x):\n    raise ValueError('no')\n")
    assert found["interface"].status == "fail"
    for name in ("purity", "honesty"):
        assert found[name].status == "not applicable", found[name]
        assert "values are wrong (gate interface)" in found[name].reason


@pytest.mark.parametrize(("kernel", "gate", "words"), [
    (WRONG + "def kernel(x):\n    y = launch(x)\n    x[0] = 0\n    return y\n", "purity", "is overwritten"),
    (RIGHT + "def kernel(x):\n    return torch.softmax(x, -1) + 0.5\n", "honesty", "no kernel is launched"),
])  # fmt: skip
def test_independent_findings_stay(tmp_path: Path, kernel: str, gate: str, words: str) -> None:
    found = reports(tmp_path, kernel)
    assert found["values"].status == "fail"
    assert found[gate].status == "fail"
    assert words in found[gate].reason
