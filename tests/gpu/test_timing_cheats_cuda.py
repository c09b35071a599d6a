"""Cheats that need a device: rejected by the check there, or refused by the measurement, and never timed as faster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.measure.bench import Options, bench
from tilewright.measure.protocol import quick

FOLDER = Path(__file__).resolve().parents[2] / "corpus" / "cheats" / "silu_mul"
CHEATS = ("wrong_side_stream.py", "wrong_stale_graph.py", "wrong_thread_later.py", "wrong_cache_by_pointer.py",
          "wrong_counts_calls.py", "wrong_lazy_tensor.py")  # fmt: skip


def timed(name: str, tmp_path: Path):  # type: ignore[no-untyped-def]
    return bench(str(FOLDER / "problem.py"), str(FOLDER / name), ledger=str(tmp_path / "ledger.sqlite"), protocol=quick(),
                 options=Options(device="cuda", kinds=("eager",), gate_seconds=6.0))  # fmt: skip


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_never_timed_as_faster(name: str, tmp_path: Path) -> None:
    done = timed(name, tmp_path)
    if done.measurement is None:
        assert done.verdict.verdict == "reject", done.verdict.reason
    else:
        assert done.measurement.answer == "refused", (done.measurement.answer, done.measurement.reason)


def test_the_honest_control_is_timed(tmp_path: Path) -> None:
    done = timed("right_plain.py", tmp_path)
    assert done.measurement is not None, done.verdict.reason
    assert done.measurement.answer != "refused", done.measurement.reason
