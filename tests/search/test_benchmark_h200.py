"""``benchmarks/h200/search``: its kernels are right, and its script goes from a search to a ratio, with host memory in the
device's place; what is missing or fails is told and the next step begins."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from tilewright import api
from tilewright.measure import cuda
from tilewright.prove.device import machine
from tilewright.search.proposers._declared import read

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "benchmarks" / "h200"
TASKS = ("softmax", "cross_entropy", "rms_norm")
PROBLEM = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec, Work
TASK = Task(
    reference=lambda x: torch.relu(x) * 2,
    inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 512), "N": Dim(1, 512)}, workloads=[{"M": 256, "N": 256}],
    contract=Contract(layouts="excluded", special_values="excluded", empty="excluded"),
    work=Work(bytes="2*M*N*itemsize", flops="2*M*N"),
)
"""
KERNEL = """
import torch

TIMES = 40  # knob: 1 40

def kernel(x):
    y = torch.relu(x)
    for _ in range(TIMES):
        y = torch.relu(y)
    return y * 2
"""


LONG = pytest.mark.skipif("TILEWRIGHT_LONG" not in os.environ, reason="a run of minutes: make test-long")


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("h200_search", HERE / "search" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked on the CPU; timed with host memory in the device's place."""
    monkeypatch.setattr(machine, "named", lambda device: "cpu" if device == "host" else device)
    monkeypatch.setattr(machine, "started", lambda kind, sandbox: machine.start("cpu", sandbox=sandbox))
    monkeypatch.setattr(cuda, "start", lambda sandbox="best": machine.Device("host", "host memory", (0, 0)))


@pytest.mark.parametrize("name", TASKS)
def test_a_plain_kernel_declares_what_is_searched(name: str) -> None:
    space = read((HERE / "search" / name / "kernel.py").read_text(), "triton")
    assert {k.name for k in space.knobs} == {"BLOCK", "num_warps", "num_stages"}
    assert (HERE / name / "problem.py").is_file()


@LONG
@pytest.mark.parametrize("name", TASKS)
def test_a_plain_kernel_is_accepted_at_both_ends_of_its_space(name: str, tmp_path: Path) -> None:
    text = (HERE / "search" / name / "kernel.py").read_text()
    space = read(text, "triton")
    for end in (0, -1):
        (tmp_path / "kernel.py").write_text(space.apply({k.name: k.choices[end] for k in space.knobs[:1]}))
        found = api.examine_and_record(str(HERE / name / "problem.py"), str(tmp_path / "kernel.py"), record=False,
                                       gate_seconds=2.0).verdict  # fmt: skip
        assert found.accepted, found.reason


def arguments(tmp_path: Path, *more: str) -> list[str]:
    return ["--device", "host", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "s.json"),
            "--kernels", str(tmp_path), "--problems", str(tmp_path), "--budget", "1trials,120s", *more]  # fmt: skip


@LONG
def test_from_a_search_to_a_ratio(script: ModuleType, host: None, tmp_path: Path) -> None:
    (tmp_path / "relu").mkdir()
    (tmp_path / "relu" / "problem.py").write_text(PROBLEM)
    (tmp_path / "relu" / "kernel.py").write_text(KERNEL)
    script.main(arguments(tmp_path, "--only", "relu"))
    made = json.loads((tmp_path / "s.json").read_text())
    found = made["tasks"]["relu"]
    assert found["search"]["exit code"] == 0
    assert found["start accepted"], found
    assert found["trials"] in (0, 1), "none where a busy machine had no time for it"
    assert found["answer"] in ("faster", "no measurable gain")
    assert found["bench"]["exit code"] in (0, 1, 3), found["bench"]
    assert "ratio to torch.compile" in found or found["not measured"]
    if found["answer"] == "faster":
        assert found["winner"].startswith("TIMES 40 to 1")
    assert made["versions"]["torch"]
    run = found["run"]
    script.main(arguments(tmp_path, "--only", "relu"))
    assert json.loads((tmp_path / "s.json").read_text())["tasks"]["relu"]["run"] == run, "it was not searched again"


def test_a_task_that_fails_is_told_and_the_next_one_begins(script: ModuleType, tmp_path: Path, capsys) -> None:
    (tmp_path / "relu").mkdir()
    (tmp_path / "relu" / "problem.py").write_text(PROBLEM)
    (tmp_path / "relu" / "kernel.py").write_text("def kernel(")
    assert script.main(arguments(tmp_path, "--only", "none", "relu")) == 1
    made = json.loads((tmp_path / "s.json").read_text())
    assert [m["search"]["exit code"] for m in made["tasks"].values()] == [2, 2]
    assert all("failed" in m for m in made["tasks"].values())


def test_a_kernel_that_bench_does_not_accept_has_no_ratio(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"verdict": "reject", "reason": "values: off by one"}))
    assert script.against(tmp_path / "b.json") == {"not measured": "the kernel is not accepted: values: off by one"}
    measured = {
        "answer": "too noisy",
        "reason": "a busy machine",
        "workloads": [],
        "ratio": {"median": 2, "low": 1, "high": 3},
    }
    (tmp_path / "b.json").write_text(json.dumps(measured))
    found = script.against(tmp_path / "b.json")
    assert "ratio to torch.compile" not in found, "what is too noisy claims nothing"
    assert found["not measured"] == "too noisy: a busy machine"
    (tmp_path / "b.json").write_text(json.dumps({**measured, "answer": "slower"}))
    assert script.against(tmp_path / "b.json")["ratio to torch.compile"] == {"median": 2, "low": 1, "high": 3}
    assert "bench left no measurement" in script.against(tmp_path / "none.json")["not measured"]


def test_what_is_not_installed_is_told(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.importlib.util, "find_spec", lambda name: None)
    assert script.missing() == {"optuna": "the sampler tpe of knobs", "tree_sitter": "skills for C"}
