"""Kernels of the corpus that stand for an operator's are the operator's, but for the first docstring."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIES = sorted((ROOT / "corpus" / "ops").glob("*/right_operator.py"))


def body(path: Path) -> str:
    tree = ast.parse(path.read_text())
    return ast.unparse(ast.Module(tree.body[1:], []))


@pytest.mark.parametrize("name", [p.parent.name for p in COPIES if p.parent.name != "linear_cross_entropy"])
def test_the_copy_follows_the_operator(name: str) -> None:
    assert body(ROOT / "corpus" / "ops" / name / "right_operator.py") == body(
        ROOT / "src" / "tilewright" / "ops" / name / "kernel.py"
    )
