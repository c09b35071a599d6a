"""``--device`` where there is no GPU: an error that says what to do, from each command that takes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilewright.cli import _options, main
from tilewright.corpus.grade import grade
from tilewright.prove.device import machine

ROOT = Path(__file__).resolve().parents[2]
no_gpu = pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU")


@no_gpu
@pytest.mark.parametrize("device", ["cuda", "tpu"])
def test_check_says_what_is_wrong_with_the_device(
    device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ROOT / "examples" / "01_softmax"
    arguments = ["check", str(folder / "problem.py"), str(folder / "right.py"), "--device", device, "--ledger"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, str(tmp_path / "l.db")])
    words = {"cuda": "no CUDA device on this machine", "tpu": "device is 'tpu'"}[device]
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@no_gpu
def test_an_audit_on_a_device_that_is_not_there_is_no_grade(tmp_path: Path) -> None:
    machine.started.cache_clear()
    folder = ROOT / "corpus" / "softmax" / "rows"
    done = grade(folder, only="right_one_block", modes=("default",), usual=False, device="cuda",
                 ledger=str(tmp_path / "l.db"))  # fmt: skip
    assert done.exit_code != 0


def test_an_audit_on_the_cpu_keeps_the_options_that_it_had() -> None:
    assert _options.on("cpu") == {}
    assert _options.on("cuda") == {"device": "cuda"}
