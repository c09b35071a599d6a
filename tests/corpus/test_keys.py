"""Mutants of the corpus have keys of their own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tilewright.corpus.scoring import chosen


def test_no_two_mutants_share_a_key() -> None:
    counts = Counter(m.key for m in chosen(Path(__file__).parents[2] / "corpus", each=1000))
    assert len(counts) > 500
    assert [k for k, n in counts.items() if n > 1] == []
