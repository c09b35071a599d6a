"""Planted faults of memory: each is seen, at its line, and the right kernel beside it is clean."""

import math
from pathlib import Path

import ir_kernels as K
import pytest
import torch

from tilewright.errors import KernelError, Unsupported
from tilewright.ir import launch
from tilewright.ir.domains.machine import Machine
from tilewright.ir.phantom import Phantom, corners


def line_of(fn, text):
    """``file:line`` of the first source line of a kernel that holds ``text``."""
    code = fn.fn.__code__
    lines = Path(code.co_filename).read_text().split("\n")
    at = next(i for i in range(code.co_firstlineno - 1, len(lines)) if text in lines[i])
    return f"{code.co_filename}:{at + 1}"


def test_off_by_one_mask_is_a_fault_of_load_and_store():
    x, y = torch.randn(100), torch.zeros(100)
    result = launch.run(K.copy_off_by_one, (4,), (x, y, 100, 32))
    assert [(f.kind, f.argument, f.offset, f.program, f.masked) for f in result.faults] == [
        ("load", "x", 100, (3, 0, 0), True),
        ("store", "y", 100, (3, 0, 0), True),
    ]
    assert result.faults[0].where == line_of(K.copy_off_by_one, "tl.store")
    assert "load beyond the end of 'x': element 100 of 100, program (3, 0, 0)" in str(result.faults[0])
    assert torch.equal(x, y)


def test_the_same_mask_within_the_storage_is_no_fault():
    x, y = torch.randn(101), torch.zeros(101)
    assert launch.run(K.copy_off_by_one, (4,), (x, y, 100, 32)).clean


def test_store_beyond_the_end_is_dropped():
    y = torch.full((100,), -1, dtype=torch.int32)
    result = launch.run(K.store_beyond, (4,), (y, 100, 32))
    assert [(f.kind, f.offset, f.count, f.masked) for f in result.faults] == [("store", 100, 28, False)]
    assert torch.equal(y, torch.arange(100, dtype=torch.int32))


def test_load_before_the_start_gives_nan():
    x, y = torch.randn(64), torch.zeros(64)
    result = launch.run(K.before_start, (1,), (x, y, 64, 64))
    assert [(f.kind, f.offset) for f in result.faults] == [("load", -1)]
    assert "before the start" in str(result.faults[0])
    assert math.isnan(y[0])
    assert torch.equal(y[1:], x[:-1])


def test_masked_load_without_other_poisons_what_it_reaches():
    x, y = torch.randn(10, 100), torch.zeros(10, 100)
    result = launch.run(K.softmax_no_other, (10,), (x, y, 100, 100, 128))
    assert bool(y.isnan().all())
    assert [(u.kind, u.count) for u in result.undefined] == [("masked load", 280)]


def test_masked_load_without_other_that_reaches_nothing_is_harmless():
    x, y = torch.randn(10, 100), torch.zeros(10, 100)
    assert launch.run(K.copy_rows, (10,), (x, y, 100, 100, 100, 128)).clean
    assert torch.equal(x, y)


def test_two_writers_of_one_element_are_a_race():
    x, y = torch.randn(100), torch.zeros(100)
    result = launch.run(K.write_race, (7,), (x, y, 100, 32))
    assert [(r.kind, r.argument, r.offset, r.programs, r.same_value) for r in result.races] == [
        ("write/write", "y", 16, (0, 1), True)
    ]
    assert int(result.writes["y"].count.max()) == 2


@pytest.mark.parametrize("chunk", [1 << 18, 32])
def test_a_reader_of_what_another_program_writes_is_a_race_in_any_order(chunk):
    x = torch.randn(128)
    result = launch.run(K.shift_in_place, (4,), (x, 128, 32), chunk_elements=chunk)
    assert [(r.kind, r.argument, r.count) for r in result.races] == [("read/write", "x", 3)]


def test_programs_that_keep_to_themselves_do_not_race():
    x, y = torch.randn(100), torch.randn(100)
    before = y.clone()
    result = launch.run(K.read_back, (4,), (x, y, 100, 32))
    assert result.clean
    assert torch.equal(y, x + before)


def test_one_storage_behind_two_arguments_is_one_buffer():
    x = torch.randn(129)
    result = launch.run(K.read_back, (4,), (x[1:], x[:-1], 128, 32))
    assert [r.kind for r in result.races] == ["read/write"]


def test_reads_of_uninitialised_memory():
    x, y = torch.randn(100), torch.zeros(100)
    result = launch.run(K.read_back, (4,), (x, y, 100, 32), uninitialised=("y",))
    assert [(u.argument, u.count) for u in result.uninitialised] == [("y", 100)]
    assert launch.run(K.softmax, (1,), (x, y, 100, 100, 128), uninitialised=("y",)).uninitialised == []


def test_unwritten_elements_show_in_the_counts():
    x, y = torch.randn(100), torch.zeros(100)
    result = launch.run(K.read_back, (3,), (x, y, 100, 32))
    assert result.writes["y"].count.tolist() == [1] * 96 + [0] * 4


def test_a_subset_of_programs():
    x, y = torch.randn(10, 100), torch.zeros(10, 100)
    result = launch.run(K.softmax, (10,), (x, y, 100, 100, 128), programs=[3, 7])
    assert (result.programs, result.evaluated) == (10, 2)
    assert (y != 0).any(1).nonzero().flatten().tolist() == [3, 7]


def test_a_lock_that_nobody_opens_is_unsupported_in_time():
    with pytest.raises(Unsupported, match="takes longer to evaluate") as e:
        launch.run(K.never_unlocks, (1,), (torch.zeros(1, dtype=torch.int32),), seconds=0.2)
    assert "ir_kernels.py:" in e.value.where


def test_an_instruction_without_a_rule_is_unsupported_at_its_line():
    with pytest.raises(Unsupported) as e:
        launch.run(K.inline_clock, (1,), (torch.zeros(1, dtype=torch.int64),))
    assert str(e.value) == f"{line_of(K.inline_clock, 'inline_asm')}: inline assembly 'mov.u64 $0, %globaltimer'"


def test_wrong_arguments_are_named():
    with pytest.raises(KernelError, match="argument 'y' is a pointer in the kernel"):
        launch.evaluate(_program(), ("x", "y", "n"), (1, 1, 1), [torch.zeros(4), 3.0, 4], _machine())
    with pytest.raises(KernelError, match="takes 3 runtime arguments, got 1"):
        launch.evaluate(_program(), ("x",), (1, 1, 1), [torch.zeros(4)], _machine())
    with pytest.raises(KernelError, match="arguments don't fit kernel 'read_back'"):
        launch.run(K.read_back, (1,), (torch.zeros(4),))


def _program():
    from tilewright.ir.compile import compile

    return compile(K.read_back, (torch.zeros(100), torch.zeros(100), 100, 32)).program


def _machine():
    from tilewright.ir.domains.machine import Machine

    return Machine()


def test_accesses_are_counted():
    x, y = torch.randn(10, 100), torch.zeros(10, 100)
    result = launch.run(K.softmax, (10,), (x, y, 100, 100, 128))
    assert {(a.kind, a.argument, a.elements, a.active) for a in result.accesses} == {
        ("load", "x", 1280, 1000),
        ("store", "y", 1280, 1000),
    }


def test_a_race_through_another_type_of_the_same_memory():
    x = torch.randn(100)
    result = launch.run(K.write_race, (7,), (torch.randn(100), x.view(torch.int32), 100, 32))
    assert [r.kind for r in result.races] == ["write/write"]


def test_tables_of_addresses_lead_to_reachable_tensors():
    rows = [torch.randn(100) for _ in range(3)]
    table, y = torch.tensor([r.data_ptr() for r in rows]), torch.zeros(3, 100)
    result = launch.run(K.by_address, (3,), (table, y, 100, 128), reachable=rows)
    assert result.clean
    assert torch.equal(y, torch.stack(rows))
    short = [rows[0], rows[1][:60].clone(), rows[2]]
    table = torch.tensor([r.data_ptr() for r in short])
    faults = launch.run(K.by_address, (3,), (table, y, 100, 128), reachable=short).faults
    assert [(f.kind, f.argument, f.offset, f.size) for f in faults] == [("load", "reachable.1", 60, 60)]


def test_a_number_that_is_no_address_is_unsupported():
    with pytest.raises(Unsupported, match="no address of an argument"):
        launch.run(K.by_address, (1,), (torch.tensor([4096]), torch.zeros(100), 100, 128))


@pytest.mark.parametrize(("kernel", "right"), [(K.scale_rows_32, False), (K.scale_rows_64, True)])
def test_an_offset_that_overflows_int32_shows_without_the_memory(kernel, right):
    rows, n = 50_001, 50_000
    grid = (rows, -(-n // 1024), 1)
    x, y = (launch.Arg(Phantom(rows * n, torch.float16), 0, torch.float16) for _ in range(2))
    result = launch.run(kernel, grid, (x, y, n, 1024), programs=corners(grid), track=False)
    assert result.evaluated < 80
    assert (result.faults == []) is right
    if not right:
        assert {f.kind for f in result.faults} == {"load", "store"}
        assert "before the start of 'x'" in str(result.faults[0])
    small = (launch.Arg(Phantom(100 * n, torch.float16), 0, torch.float16) for _ in range(2))
    assert launch.run(kernel, (100, 49), (*small, n, 1024), track=False).faults == []


def test_corners_of_a_grid():
    assert corners((1, 1, 1)) == [0]
    assert corners((4, 1, 1), extra=0) == [0, 1, 2, 3]
    assert {0, 99, 9900, 9999} <= set(corners((100, 100, 1)))
    assert max(corners((7, 5, 3))) == 7 * 5 * 3 - 1


def test_bytes_read_as_words():
    x, y = torch.arange(64 * 4, dtype=torch.int32).to(torch.uint8), torch.zeros(64, dtype=torch.int32)
    assert launch.run(K.wider_read, (1,), (x, y, 64)).clean
    assert torch.equal(y, x.view(torch.int32))
    faults = launch.run(K.wider_read, (1,), (x[:100].clone(), y, 64)).faults
    assert [(f.offset, f.size, f.count) for f in faults] == [(25, 25, 39)]


def test_faults_count_active_elements_only():
    x, y = torch.randn(10), torch.zeros(100)
    (fault,) = launch.run(K.read_back, (4,), (x, y, 20, 32)).faults
    assert (fault.offset, fault.count, fault.program) == (10, 10, (0, 0, 0))
    (access,) = [a for a in launch.run(K.read_back, (4,), (y, y.clone(), 20, 32)).accesses if a.kind == "store"]
    assert (access.low, access.high) == (0, 19)


def test_a_compiled_kernel_runs_again():
    from tilewright.ir.compile import compile

    x, y = torch.randn(50), torch.zeros(50)
    compiled = compile(K.tuple_arguments, ((x, y), (3, 5), 50, 64))
    assert launch.run(compiled, (1,), ((x, y), (3, 5), 50)).clean
    assert torch.equal(y, x * 3 + 5)
    with pytest.raises(KernelError, match="takes 3 runtime arguments, got 1"):
        launch.run(compiled, (1,), (50,))


def test_programs_that_leave_a_loop_early_are_not_taken_for_others():
    n, block = 12, 16
    x, y = torch.randn(block), torch.zeros(n, n, block)
    result = launch.run(K.ragged_rows, (n,), (x, y, n, block))
    assert result.clean, result.races
    writer = result.writes["y"].program.reshape(n, n, block)
    for row in range(n):
        assert bool((writer[row, : row + 1] == row + 1).all())
        assert bool((writer[row, row + 1 :] == 0).all())
    assert torch.equal(y.reshape(n * n, block)[0], x)


def test_masked_load_without_other_gives_zero_where_the_target_does():
    x, y = torch.randn(10, 100), torch.zeros(10, 100)
    result = launch.run(K.softmax_no_other, (10,), (x, y, 100, 100, 128), domain=Machine(masked_zero=True))
    padded = torch.cat((x, torch.zeros(10, 28)), 1)
    torch.testing.assert_close(y, torch.softmax(padded, 1)[:, :100])
    assert [(u.kind, u.count) for u in result.undefined] == [("masked load", 280)]


def test_constant_that_no_integer_holds_is_undefined():
    x, y = torch.full((100,), -7, dtype=torch.int16), torch.zeros(1, dtype=torch.int16)
    result = launch.run(K.max_int_fill, (1,), (x, y, 100, 128))
    assert [u.kind for u in result.undefined] == ["constant out of range"]
    assert int(y[0]) != -7
