"""Declared parameters: what is read, what is written back, and what the errors say."""

from __future__ import annotations

import pytest

from tilewright.errors import KernelError
from tilewright.search.proposers._declared import read

C = """#include <stdint.h>
#define TILE 32   // knob: 8 16 32 64
#define LANES 4 /* knob: 1..8*2 */
#define OTHER 5   // no parameter
// require: TILE % LANES == 0 && LANES <= TILE
void kernel(const float *x, float *y, int64_t N) {}
"""
PYTHON = """BLOCK = 32  # knob: 16 32 64
WIDE: tl.constexpr = tl.constexpr(128)  # knob: 64 128
# require: BLOCK < WIDE
def kernel(x):
    f[(1,)](x,
        num_warps=4,  # knob: 1..4
    )
"""
TUNED = """
@triton.autotune(
    configs=[triton.Config({"B": 16}, num_warps=2), triton.Config({"B": 64}, num_warps=4)],
    key=["N"],
)
@triton.jit
def f(x, B: tl.constexpr):
    pass
"""


def test_c_macros_are_read_with_ranges_that_double() -> None:
    space = read(C, "native")
    assert {k.name: k.choices for k in space.knobs} == {"TILE": (8, 16, 32, 64), "LANES": (1, 2, 4, 8)}
    assert space.now == {"TILE": 32, "LANES": 4}
    assert [k.line for k in space.knobs] == [2, 3]


def test_a_value_is_written_where_it_stood_and_nothing_else_changes() -> None:
    text = read(C, "native").apply({"TILE": 8})
    assert text == C.replace("TILE 32 ", "TILE 8 ")
    assert read(text, "native").skeleton() == read(C, "native").skeleton()


def test_python_constants_keyword_arguments_and_wrapped_values() -> None:
    space = read(PYTHON, "triton")
    assert {k.name: k.choices for k in space.knobs} == {
        "BLOCK": (16, 32, 64), "WIDE": (64, 128), "num_warps": (1, 2, 3, 4)}  # fmt: skip
    text = space.apply({"WIDE": 64, "num_warps": 1})
    assert "tl.constexpr(64)  # knob" in text
    assert "num_warps=1,  # knob" in text


def test_the_configs_of_an_autotuner_are_a_space_and_a_proposal_leaves_one() -> None:
    space = read(TUNED, "triton")
    assert {k.name: k.choices for k in space.all} == {"B": (16, 64), "num_warps": (2, 4)}
    assert "configs=[triton.Config({'B': 64}, num_warps=2)],\n    key" in space.apply({"B": 64, "num_warps": 2})


def test_constraints_take_points_away() -> None:
    space = read(PYTHON, "triton")
    assert all(p["BLOCK"] < p["WIDE"] for p in space.grid())
    assert len(list(space.grid())) == 20
    assert space.broken({"BLOCK": 64, "WIDE": 64, "num_warps": 1}) == "BLOCK < WIDE"


@pytest.mark.parametrize(("rule", "words"), [
    ("TILE < N", "'N' in 'require: TILE < N' is no declared knob"),
    ("__import__('os').system('x')", "is no constraint"),
    ("TILE <", "is no constraint"),
    ("TILE ** 99999999 > 1", "is no constraint"),
])  # fmt: skip
def test_a_constraint_that_is_none_is_told_with_its_line(rule: str, words: str) -> None:
    with pytest.raises(KernelError, match=r"k\.c:2") as e:
        read(f"#define TILE 8 // knob: 8 16\n// require: {rule}\n", "native", "k.c")
    assert words in str(e.value)
    assert "Try:" in str(e.value)


def test_division_by_zero_does_not_hold() -> None:
    space = read("#define A 0 // knob: 0 1\n// require: 4 % A == 0\n", "native")
    assert list(space.grid()) == [{"A": 1}]


@pytest.mark.parametrize(("text", "words"), [
    ("#define A 1 // knob: 1\n", "with 1 values"),
    ("#define A 1 // knob: 9..3\n", "'9..3' is no range"),
    ("#define A 1 // knob: 1 2\n#define A 1 // knob: 1 2\n", "declared twice"),
])  # fmt: skip
def test_a_declaration_that_can_not_be_read_is_told(text: str, words: str) -> None:
    with pytest.raises(KernelError) as e:
        read(text, "native", "k.c")
    assert words in str(e.value)
    assert "k.c:" in str(e.value)
