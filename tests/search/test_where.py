"""Where the trials of a search can be timed, and what is said where they can't."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tilewright.cli import run as command
from tilewright.ledger import Ledger
from tilewright.prove.device import machine
from tilewright.search import store

EXAMPLES = Path(__file__).parents[2] / "examples"
TRITON = [str(EXAMPLES / "01_softmax/problem.py"), str(EXAMPLES / "01_softmax/right.py")]
CUDA = [str(EXAMPLES / "06_cuda_softmax/problem.py"), str(EXAMPLES / "06_cuda_softmax/right.cu")]
NATIVE = [str(EXAMPLES / "03_native/problem.py"), str(EXAMPLES / "03_native/right.c")]
WITHOUT = "tilewright check"


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(machine, "NODES", ())


@pytest.fixture
def told(tmp_path, capsys):
    def said(*arguments):
        began = time.monotonic()
        ledger = str(tmp_path / "l.sqlite")
        assert command(["search", *arguments, "--budget", "1trials", "--ledger", ledger]) == 2
        assert time.monotonic() - began < 60, "it is said before anything is opened"
        assert store.runs(Ledger.open(ledger)) == [], "and no run is left"
        return " ".join(capsys.readouterr().err.split())

    return said


def test_triton_without_a_gpu(no_gpu, told):
    """What can't be done, why, and what can: here and elsewhere."""
    said = told(*TRITON)
    assert "no times of a Triton kernel can be taken on this machine" in said
    assert "without a GPU it is evaluated, not run" in said
    assert "no GPU was found" in said
    for way in ("--device cuda", "tilewright check", "tilewright explain", "tilewright study"):
        assert way in said, way
    assert "01_softmax/right.py" in said


def test_triton_where_there_is_a_gpu_and_nobody_asked_for_it(monkeypatch, tmp_path, told):
    (tmp_path / "node").touch()
    monkeypatch.setattr(machine, "NODES", (str(tmp_path / "node"),))
    said = told(*TRITON)
    assert "this machine has a GPU" in said
    assert "add --device cuda" in said


def test_cuda_without_a_gpu(no_gpu, told):
    assert "no times of a CUDA kernel can be taken on this machine: without a GPU it is compiled, not run" in told(
        *CUDA
    )


@pytest.mark.skipif(any(Path(n).exists() for n in machine.NODES), reason="needs a machine without a GPU")
def test_a_device_that_is_not_there(told):
    """The remedy is not to leave out --device cuda: that would not help."""
    said = told(*TRITON, "--device", "cuda")
    assert "no CUDA device on this machine" in said
    assert "leave out --device" not in said
    assert "tilewright check" in said


def test_devices_and_kernels_that_do_not_go_together(no_gpu, told):
    assert "device is 'tpu'" in told(*NATIVE, "--device", "tpu")
    assert "a kernel in C runs on the CPU" in told(*NATIVE, "--device", "cuda")
