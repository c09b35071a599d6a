"""Sizes: lawful, telling, within the budget; constraints are evaluated and nothing else is."""

from __future__ import annotations

import pytest

from tilewright.errors import TaskError
from tilewright.prove import sizes
from tilewright.prove.examine import open_task
from tilewright.task.task import TaskSheet
from tilewright.task.tensors import Dim, TensorSpec


def sheet(dims: dict[str, Dim], *constraints: str, **inputs: str) -> TaskSheet:
    return TaskSheet(name="t", inputs={n: TensorSpec(s) for n, s in inputs.items()}, dims=dims, constraints=constraints)


MATMUL = sheet({"M": Dim(0), "N": Dim(), "K": Dim(1, 4096)}, a="M K", b="K N")
GIVEN = {"M": 128, "N": 128, "K": 256}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("K % G == 0", True), ("K % 3 == 0", False), ("1 <= G <= K", True), ("G > K or K == 8", True),
        ("not K == 8", False),
        ("K == 8 and G == 3", False), ("K - 8", False), ("min(K, G) == 4", True), ("K // 0 == 1", False),
        ("True", True),
    ],
)  # fmt: skip
def test_constraints_hold_or_not(condition: str, expected: bool) -> None:
    assert sizes.holds(condition, {"K": 8, "G": 4}) is expected


@pytest.mark.parametrize(
    "condition",
    [
        "__import__('os').system('true')",
        "K in (1, 2)",
        "K.bit_length() == 4",
        "K ==",
        "[K][0] == 8",
        "X == 1",
        "K is G",
    ],
)
def test_anything_else_is_a_task_error(condition: str) -> None:
    with pytest.raises(TaskError) as e:
        sizes.holds(condition, {"K": 8, "G": 4})
    assert "expression" in str(e.value) or "no value" in str(e.value) or "uses" in str(e.value)


def test_the_plan_is_lawful_distinct_and_small() -> None:
    plan = sizes.plan(MATMUL, GIVEN, most=64)
    assert len({s.key() for s in plan}) == len(plan) == 64
    assert all(sizes.legal(MATMUL, s.dims) for s in plan)
    assert all(0 < sizes.elements(MATMUL, s.dims) <= sizes.SMALL for s in plan)


@pytest.mark.parametrize("dim", ["M", "N", "K"])
def test_each_dim_meets_the_edges(dim: str) -> None:
    tried = {s.dims[dim] for s in sizes.plan(MATMUL, GIVEN, most=64)}
    assert {1, 2, 3, 17, 33, 31, 129, GIVEN[dim] - 1, GIVEN[dim] + 1} <= tried


def test_early_cases_leave_several_tiles_unfilled_at_once() -> None:
    first = sizes.plan(MATMUL, GIVEN)[0].dims
    assert all(n > 16 and n % 16 for n in first.values())


def test_constraints_and_lists_of_sizes_are_kept() -> None:
    dims = {"H": Dim(1, 64), "G": Dim(1, 64), "N": Dim(1, 4096, multiple_of=4), "D": Dim(sizes=(32, 64, 128))}
    s = sheet(dims, "H % G == 0", q="H N D", k="G N D")
    plan = sizes.plan(s, {"H": 8, "G": 2, "N": 128, "D": 64})
    assert len(plan) > 20
    for p in plan:
        assert p.dims["H"] % p.dims["G"] == 0
        assert p.dims["N"] % 4 == 0
        assert p.dims["D"] in (32, 64, 128)
    assert {p.dims["D"] for p in plan} == {32, 64, 128}


def test_sizes_of_the_source_come_early() -> None:
    hints = sizes.constants("SPLIT = 96\nBLOCK = 1 << 9\nx = 3.75 + y7 * 1e-5 + 0x10\nz = 2**8")
    assert hints == (512, 256, 96, 9, 8)
    early = [s.dims for s in sizes.plan(MATMUL, GIVEN, hints=(96,))[:30]]
    assert any(d["K"] == 97 for d in early)
    assert any(d["N"] == 95 for d in early)


def test_zero_only_where_the_range_has_it_unless_nobody_said() -> None:
    assert [s.dims["M"] for s in sizes.empties(MATMUL, GIVEN, beyond=False)] == [0]
    beyond = sizes.empties(MATMUL, GIVEN, beyond=True)
    assert [s.varied for s in beyond] == ["M", "N", "K", ""]


def test_extremes_exceed_a_grid_axis_within_memory() -> None:
    found = sizes.extremes(MATMUL, GIVEN)
    assert {s.varied for s in found if max(s.dims.values()) > sizes.GRID_AXIS} == {"M", "N"}
    assert all(sizes.elements(MATMUL, s.dims) <= sizes.LARGE for s in found)


def test_extremes_have_several_rows_where_memory_allows() -> None:
    s = sheet({"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}, x="M N")
    rows = [e.dims["M"] for e in sizes.extremes(s, {"M": 64, "N": 512}) if e.dims["N"] == 1 << 16]
    assert rows == [1, 9]


def test_longest_fits_and_is_odd() -> None:
    long = sizes.longest(MATMUL, {"M": 16, "N": 16, "K": 1}, "K", 1 << 14)
    assert long == {"M": 16, "N": 16, "K": 1023}
    assert sizes.longest(sheet({"N": Dim(1, 8)}, x="N"), {"N": 8}, "N", 1 << 14) is None


def test_a_task_without_dims_has_no_sizes() -> None:
    s = sheet({}, x="4 4")
    assert sizes.plan(s, {}) == []
    assert sizes.extremes(s, {}) == []
    assert sizes.empties(s, {}, beyond=True) == []


def test_a_multiple_of_sixteen_that_no_larger_tile_divides_comes_early(tmp_path):
    """Compilers and launchers choose by divisibility by 16."""
    (tmp_path / "p.py").write_text(
        "from tilewright.task import Contract, Dim, Task, TensorSpec\n"
        "TASK = Task(reference=lambda x: x, inputs={'x': TensorSpec('M N')}, outputs={'y': TensorSpec('M N')},\n"
        "            dims={'M': Dim(1, 4096), 'N': Dim(1, 4096)}, workloads=[{'M': 7, 'N': 100}], contract=Contract())\n"
    )
    sheet, session = open_task(str(tmp_path / "p.py"))
    session.close()
    early = sizes.plan(sheet, {"M": 7, "N": 100}, hints=(32, 16), most=20, seed=3)
    assert any(s.dims["N"] % 16 == 0 and s.dims["N"] % 32 for s in early)


def test_what_a_check_can_afford():
    spec = TensorSpec("M N", dtypes=("bfloat16",))
    dims = {"M": Dim(1, 8192), "N": Dim(1, 8192)}
    big = TaskSheet(name="big", inputs={"x": spec}, outputs={"y": spec}, dims=dims)
    assert sizes.affordable(big, {"M": 64, "N": 1000}, "bfloat16")
    assert not sizes.affordable(big, {"M": 8192, "N": 8192}, "bfloat16")
    smaller = sizes.cheaper(big, {"M": 8192, "N": 8192}, "bfloat16")
    assert sizes.affordable(big, smaller, "bfloat16")
    assert min(smaller.values()) >= 512, "halved no further than it must be"
