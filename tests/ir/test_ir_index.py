"""Launches at sizes beyond memory: leaps over long loops see what whole loops would, and what steers is told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from index_kernels import doubling, gather, ragged, until, walk, wrap

from tilewright.ir.arguments import Arg
from tilewright.ir.compile import Pointer, compile
from tilewright.ir.index import Filled, probe, sectors, steering, too_large

ONE = (1, 1, 1)


def flat(size: int, dtype: torch.dtype = torch.float32, value: int = 0) -> Arg:
    return Arg(Filled(size, dtype, value), 0, dtype)


def faults(kernel, *args, grid=ONE):
    return probe(kernel, grid, args, {})[0].faults


def test_a_leap_sees_the_last_turn_of_a_carried_pointer() -> None:
    turns = 1 << 22
    started = time.monotonic()
    assert not faults(walk, flat(turns), flat(1), turns, 1)
    (fault,) = faults(walk, flat(turns - 1), flat(1), turns, 1)
    assert (fault.offset, fault.size) == (turns - 1, turns - 1)
    assert time.monotonic() - started < 5, "not by running four million turns"


def test_an_offset_that_wraps_in_the_last_turns_of_a_loop() -> None:
    turns, step = 40_000, 65_536
    (fault,) = faults(wrap, flat(turns * step), flat(1), turns, step)
    assert fault.offset < 0
    assert not faults(wrap, flat(30_000 * step), flat(1), 30_000, step)


def test_a_loop_with_other_steps_is_run_whole() -> None:
    values, at = [], 1
    for _ in range(60):
        values.append(at)
        at = at * 3 % 101
    assert not faults(doubling, flat(max(values) + 1), flat(1), 60)
    assert [f.offset for f in faults(doubling, flat(max(values)), flat(1), 60)] == [max(values)]


def test_programs_with_loops_of_different_length() -> None:
    programs, n = 7, 10
    assert not faults(ragged, flat(programs * n), flat(programs), n, grid=(programs, 1, 1))
    (fault,) = faults(ragged, flat(programs * n - 1), flat(programs), n, grid=(programs, 1, 1))
    assert fault.program == (programs - 1, 0, 0)


def test_a_storage_holds_what_it_is_filled_with() -> None:
    index = flat(8, torch.int32, 11)
    args = (index, flat(8), flat(11), flat(8), 8)
    (fault,) = probe(gather, ONE, args, {"BLOCK": 8})[0].faults
    assert (fault.argument, fault.offset) == ("w_ptr", 11)
    assert index.storage.reads


@pytest.mark.parametrize(
    ("kernel", "args", "line"),
    [
        (gather, (Pointer("i32"), Pointer("fp32"), Pointer("fp32"), Pointer("fp32"), 8), "at = tl.load(i_ptr"),
        (until, (Pointer("i32"), Pointer("fp32"), Pointer("fp32")), "for i in range(tl.load(n_ptr))"),
    ],
)
def test_what_steers(kernel, args, line) -> None:
    found = steering(compile(kernel, args, {"BLOCK": 8} if kernel is gather else {}).program)
    text = Path(kernel.fn.__code__.co_filename).read_text().splitlines()
    (where,) = found
    assert line in text[int(where.rpartition(":")[2]) - 1]


def test_what_is_only_summed_does_not_steer() -> None:
    assert not steering(compile(walk, (Pointer("fp32"), Pointer("fp32"), 99, 7)).program)


def test_sectors_of_neighbours_and_of_strangers() -> None:
    args = {
        "i_ptr": flat(64, torch.int32),
        "v_ptr": flat(64),
        "w_ptr": flat(64),
        "y_ptr": flat(64),
        "n": 64,
        "BLOCK": 64,
    }
    found = {kind: totals for (_, kind), totals in sectors(gather, ONE, args).items()}
    assert found["store"] == [8, 256, 1], "64 neighbours of 4 bytes lie in 8 sectors"
    strided = sectors(walk, ONE, {"x_ptr": flat(80), "y_ptr": flat(1), "turns": 10, "step": 8})
    touched, used, _ = next(totals for (_, kind), totals in strided.items() if kind == "load")
    assert touched * 32 == 8 * used, "every eighth element: an eighth of each sector"


def test_grids_that_a_gpu_refuses() -> None:
    assert not too_large((2**31 - 1, 65535, 65535))
    assert "axis z" in too_large((1, 1, 65536))
    assert "axis x" in too_large((2**31, 1))
