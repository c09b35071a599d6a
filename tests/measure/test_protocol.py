"""The protocol's hash covers every file that decides a time."""

import ast
from pathlib import Path

import pytest

import tilewright
from tilewright.errors import InternalError
from tilewright.measure import protocol

PACKAGE = Path(tilewright.__file__).parent
IDLE = {
    "measure/__init__.py": "public names",
    "measure/bench.py": "the order of work: what is timed, not how",
    "measure/machine.py": "prints and keeps ceilings",
    "measure/cuda.py": "opens the device",
    "measure/gpu_state.py": "reads the state that stands beside a time",
}
"""Files of ``measure`` that decide no time, and why."""
SHARED = {"transport", "session", "ends", "pool", "roles", "worker", "role_reference", "watch", "preload", "sandbox",
          "kernel_session", "reference_session"}  # fmt: skip
"""Modules of ``prove/child`` that carry every child, whatever it is for."""


def imported(file):
    """Files of the package that a file imports relatively, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in ("", *(a.name for a in node.names)):
                for path in (base / f"{name}.py", base / name / "__init__.py", base.with_suffix(".py")):
                    if path.is_file() and PACKAGE in path.parents:
                        yield path.relative_to(PACKAGE).as_posix()


def missing(acting):
    """Files that act, by where they lie and by who imports them, and are not among ``acting``."""
    here = {p.relative_to(PACKAGE).as_posix() for p in (PACKAGE / "measure").rglob("*.py")}
    child = {f for name in acting if name.endswith(".py") for f in imported(PACKAGE / name)
             if f.startswith("prove/child/") and Path(f).stem not in SHARED | {"__init__"}}  # fmt: skip
    return sorted((here | child) - set(acting) - set(IDLE))


def test_every_file_that_acts_is_hashed():
    assert missing(protocol.acting()) == [], "add it to ACTING, or to IDLE here with the reason"
    assert set(IDLE) & set(protocol.acting()) == set()
    for name in IDLE:
        assert (PACKAGE / name).is_file(), name


@pytest.mark.parametrize("name", ["measure/stage.py", "measure/workload.py", "measure/figure.py", "measure/device_hand.py",
                                  "measure/device_stage.py", "measure/decide.py", "measure/baselines/compiled.py",
                                  "prove/child/timing_device.py", "prove/child/gpu.py",
                                  "prove/child/judge_session.py"])  # fmt: skip
def test_one_that_is_left_out_is_seen(name):
    left = {n: p for n, p in protocol.acting().items() if n != name}
    assert missing(left) == [name]


def test_roles_of_timing_are_hashed():
    """They are started by name, not imported."""
    assert {"prove/child/role_timing.py", "prove/child/role_judge.py"} <= set(protocol.acting())


def test_a_changed_text_is_another_protocol(monkeypatch, tmp_path):
    before = protocol.PROTOCOL.sha256()
    changed = tmp_path / "decide.py"
    changed.write_text((PACKAGE / "measure/decide.py").read_text() + "# another rule\n")
    found = protocol.acting() | {"measure/decide.py": changed}
    monkeypatch.setattr(protocol, "acting", lambda: found)
    protocol._code.cache_clear()
    try:
        assert protocol.PROTOCOL.sha256() != before
    finally:
        monkeypatch.undo()
        protocol._code.cache_clear()
    assert protocol.PROTOCOL.sha256() == before


def test_a_file_that_is_gone_is_no_silence(monkeypatch):
    monkeypatch.setattr(protocol, "ACTING", ("measure/flush.py",))
    with pytest.raises(InternalError, match=r"names 'measure/flush.py', which is not there"):
        protocol.acting()
