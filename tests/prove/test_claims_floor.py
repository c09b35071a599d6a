"""No kind of operator loses its claim: a few rows measured again, and the rule that compares them."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEW = ["softmax/rows", "layer_norm/rows", "matmul/plain", "attention/dense", "rope/positions"]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("claims_run", ROOT / "benchmarks" / "claims" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def floor() -> dict:
    return json.loads((ROOT / "benchmarks" / "claims.json").read_text())["rows"]


def measured() -> list[str]:
    """A handful of rows, or all of them where ``TILEWRIGHT_CLAIMS=all`` asks for it."""
    rows = floor()
    return list(rows) if os.environ.get("TILEWRIGHT_CLAIMS") == "all" else [n for n in FEW if n in rows]


@pytest.mark.parametrize("name", measured())
def test_a_row_is_no_weaker(tool: ModuleType, name: str) -> None:
    assert tool.weaker(floor(), {name: tool.row(name)}) == []


def test_a_weaker_row_is_told(tool: ModuleType) -> None:
    held = {"a": {"claim": "algebra"}, "b": {"claim": "real"}, "c": {"claim": "sampled"}}
    now = {"a": {"claim": "real", "reason": "a logarithm"}, "b": {"claim": "algebra"}, "c": {"claim": "sampled"}}
    assert tool.weaker(held, now) == ["a: was algebra, is real (a logarithm)"]


def test_every_kind_of_the_corpus_has_a_row(tool: ModuleType) -> None:
    assert set(tool.kinds()) == set(floor())


def test_the_page_is_the_table(tool: ModuleType) -> None:
    assert tool.page(json.loads(tool.EVIDENCE.read_text())) == tool.PAGE.read_text()
