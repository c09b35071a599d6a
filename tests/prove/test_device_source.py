"""Device functions read from files: names that a file defines in several branches, decorators that read other files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import triton

from tilewright.errors import Unsupported
from tilewright.prove.child.device_source import DeviceSource

OPS = """
import os
import triton
import triton.language as tl

if os.environ.get("FAST") == "1":
    @triton.jit
    def twice(x): return x + x + x
else:
    @triton.jit
    def twice(x): return x + x


@triton.jit
def four(x): return twice(twice(x))


if hasattr(tl, "gather"):
    gather = tl.gather
else:
    @triton.jit
    def gather(x, index): return None


@triton.jit
def picks(x, i): return gather(x, i)
"""
KERNEL = """
import triton
from .ops import four
from .settings import HOPPER


@triton.jit(do_not_specialize=["n"] if HOPPER else [])
def kernel(x, n):
    four(x)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "pkg").mkdir()
    for name, text in {"ops": OPS, "kernel": KERNEL, "__init__": "", "settings": 'HOPPER = len("x") == 1\n'}.items():
        (tmp_path / "pkg" / f"{name}.py").write_text(text)
    return tmp_path / "pkg"


def stated(path: Path, line: int = 0) -> dict:
    return {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "line": line}


def source(package: Path) -> DeviceSource:
    made = DeviceSource({str(p): p.read_text() for p in package.glob("*.py")})
    return made


@pytest.mark.parametrize(("line", "body"), [(7, "x + x + x"), (10, "return x + x\n")])
def test_the_line_says_which_branch(package: Path, line: int, body: str) -> None:
    ops = package / "ops.py"
    claimed = {"twice": {"function": [stated(ops, line), "twice", {}]}}
    found = source(package).function(stated(ops, 15), "four", claimed)
    assert body in found.fn.__globals__["twice"].src + "\n"


def test_a_name_with_two_definitions_and_no_line_is_refused(package: Path) -> None:
    with pytest.raises(Unsupported, match="defined more than once"):
        source(package).function({**stated(package / "ops.py"), "line": None}, "twice", {})


def test_what_an_imported_function_reads_is_filled(package: Path) -> None:
    ops, kernel = package / "ops.py", package / "kernel.py"
    inner = {"twice": {"function": [stated(ops, 10), "twice", {}]}}
    claimed = {"four": {"function": [stated(ops, 15), "four", inner]}, "HOPPER": {"=": True}}
    found = source(package).function(stated(kernel, 7), "kernel", claimed)
    assert "x + x" in found.fn.__globals__["four"].fn.__globals__["twice"].src
    assert found.do_not_specialize == ["n"]


def test_a_decorator_that_reads_what_is_not_there_counts_for_nothing(package: Path) -> None:
    found = source(package).function(stated(package / "kernel.py", 7), "kernel", {})
    assert not found.do_not_specialize


def test_a_claimed_constexpr_is_one(package: Path) -> None:
    ops = package / "ops.py"
    claimed = {"A": {"constexpr": {"=": 3}}, "C": {"=": 3}}
    scope = source(package).function(stated(ops, 15), "four", claimed).fn.__globals__
    assert isinstance(scope["A"], triton.language.constexpr)
    assert scope["A"].value == 3
    assert scope["C"] == 3
    assert not isinstance(scope["C"], triton.language.constexpr)


def test_a_branch_that_is_not_taken_defines_nothing(package: Path) -> None:
    ops = package / "ops.py"
    claimed = {"gather": {"triton": ["triton.language", "gather"]}}
    found = source(package).function(stated(ops, 28), "picks", claimed)
    assert found.fn.__globals__["gather"] is triton.language.gather


def test_a_single_definition_in_a_branch_is_found(package: Path) -> None:
    ops = package / "ops.py"
    assert "return None" in source(package).function(stated(ops, 21), "gather", {}).src
