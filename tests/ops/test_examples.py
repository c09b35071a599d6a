"""Examples that use operators: they run, and learn."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch, capsys):
    """``example(path, **options)``: the numbers that its ``main`` prints, in order of the lines, the last one of each."""

    def run(path, **options):
        monkeypatch.syspath_prepend(str((EXAMPLES / path).parent))
        monkeypatch.delitem(sys.modules, "data", raising=False)
        spec = importlib.util.spec_from_file_location("example", EXAMPLES / path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main(**options)
        return [float(re.findall(r"[\d.]+", line)[-1]) for line in capsys.readouterr().out.splitlines()]

    return run


def test_late_interaction(example):
    words, exact, rounded = example("08_retrieval/late_interaction.py", steps=60, count=100)
    assert exact > 30 > words
    assert abs(exact - rounded) < 5


def test_sparse(example):
    size, words, index = example("08_retrieval/sparse.py", steps=60, count=100)
    assert index > 30 > words
    assert size == 240


@pytest.mark.parametrize("divergence", ["forward", "js"])
def test_distillation(example, divergence):
    before, after = example("09_distillation/attention.py", steps=40, divergence=divergence)
    assert after < 0.85 * before
