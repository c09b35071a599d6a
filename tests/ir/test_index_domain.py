"""Index domain: proofs for all sizes, counterexamples that are none the less possible, and what is left open."""

from __future__ import annotations

from typing import Any

import index_sizes_kernels as K
import pytest

from tilewright.ir.compile import Pointer, compile

pytest.importorskip("z3")
from tilewright.ir.domains import index_queries
from tilewright.ir.domains.index_launch import answer

WIDE, LONG = [1, 1 << 20, 1, None], [1, 4096, 1, None]


def spec(fn: Any, args: list[Any], numbers: tuple[int, ...], constants: dict[str, int], *, dims: Any, grid: list[str],
         storages: list[list[Any]], elem: str = "fp32", **more: Any) -> dict[str, Any]:  # fmt: skip
    """A launch as data: ``args`` are pointers (their storage's number) and forms, in order."""
    values = iter(numbers)
    given = [Pointer("i64" if storages[a][2:] and storages[a][2] else elem) if isinstance(a, int) else next(values)
             for a in args]  # fmt: skip
    text = compile(fn, tuple(given), constants).program.text
    kinds = {"fp32": "f32", "i64": "i64"}
    made = [["pointer", a, "0", kinds["i64" if storages[a][2:] and storages[a][2] else elem]] if isinstance(a, int)
            else ["int", a, "i32"] for a in args]  # fmt: skip
    held = [[b, [n], *(rest or [None])] for b, n, *rest in storages]
    return {"text": text, "dims": dims, "constraints": [], "picked": [], "args": made, "grid": [*grid, "1", "1"][:3],
            "storages": held, "memory": 64 << 30, **more}  # fmt: skip


def asked(question: str, *args: Any, seconds: float = 20.0, **options: Any) -> dict[str, Any]:
    return answer(spec(*args, **options), question, seconds, {}, "")


def rows(fn: Any, question: str = "bounds", m: Any = LONG, n: Any = LONG, block: int = 4096, y: str = "4*M*N",
         **more: Any) -> dict[str, Any]:  # fmt: skip
    return asked(question, fn, [0, 1, "N"], (1001,), {"BLOCK": block}, dims={"M": m, "N": n}, grid=["M"],
                 storages=[["4*M*N", "x"], [y, "y"]], **more)  # fmt: skip


def proved(a: dict[str, Any]) -> bool:
    return bool(a.get("proved")) and not a["shown"] and not a["left"]


def test_rows_are_in_range_and_apart_at_every_size() -> None:
    assert proved(rows(K.rows))
    assert proved(rows(K.rows, "races"))


def test_one_column_too_far() -> None:
    found = rows(K.rows_one_too_far)
    (shown,) = found["shown"]
    m, n = shown["sizes"]["M"], shown["sizes"]["N"]
    assert shown["offset"] == m * n, "the element after the last"
    assert shown["programs"] == [[m - 1, 0, 0]]
    assert shown["argument"] == "x"
    assert "index_sizes_kernels.py" in shown["where"]


def test_an_offset_that_wraps_in_32_bits_is_shown_and_in_64_bits_is_none() -> None:
    found = rows(K.rows, m=WIDE, n=[2048, 4096, 1, None])
    (shown,) = found["shown"]
    assert shown["sizes"]["M"] * shown["sizes"]["N"] > 2**31
    assert shown["offset"] < 0
    assert proved(rows(K.rows_in_64_bits, m=WIDE, n=WIDE, block=128))


def test_a_loop_that_carries_a_pointer_is_followed_by_induction() -> None:
    assert proved(rows(K.walking, block=64, y="4*M"))
    assert rows(K.walking_too_far, block=64, y="4*M")["shown"]


def test_a_loop_without_a_steady_step_is_left_open() -> None:
    found = asked("bounds", K.jumping, [0, 1, "N"], (1001,), {}, dims={"N": LONG}, grid=["1"],
                  storages=[["4*N", "x"], ["4", "y"]])  # fmt: skip
    assert not found["shown"], "what is unknown is no counterexample"
    assert "a value that the kernel reads or sums" in found["left"][0]


def tiles(fn: Any, question: str, constants: dict[str, int], grid: list[str], x: str = "4*M*N") -> dict[str, Any]:
    return asked(question, fn, [0, 1, "M", "N"], (1001, 999), constants, dims={"M": LONG, "N": LONG}, grid=grid,
                 storages=[[x, "x"], ["4*M*N", "y"]])  # fmt: skip


def test_tiles_and_their_transpose() -> None:
    grid = ["(M+31)//32", "(N+31)//32"]
    assert proved(tiles(K.transposed, "bounds", {"T": 32}, grid))
    assert proved(tiles(K.transposed, "races", {"T": 32}, grid))
    assert tiles(K.transposed, "bounds", {"T": 32}, grid, x="4*M*N-4")["shown"], "one element less than is read"


def test_a_grid_with_two_programs_a_tile_races() -> None:
    grid = ["(M+31)//32", "(N+31)//32", "2"]
    (shown,) = tiles(K.transposed, "races", {"T": 32}, grid)["shown"]
    (a, b) = shown["programs"]
    assert a[:2] == b[:2]
    assert a[2] != b[2]


def test_tiles_in_groups_are_in_range() -> None:
    assert proved(tiles(K.swizzled, "bounds", {"T": 32, "GROUP": 4}, ["((M+31)//32)*((N+31)//32)"]))


@pytest.mark.parametrize(("last", "holds"), [("V-1", True), ("V", False)])
def test_an_index_within_what_the_contract_promises(last: str, holds: bool) -> None:
    dims = {"T": LONG, "V": [1, 1 << 16, 1, None], "D": [1, 128, 1, None]}
    found = asked("bounds", K.gathered, [0, 1, 2, "D"], (101,), {"BLOCK": 128}, dims=dims, grid=["T"],
                  storages=[["4*V*D", "w"], ["8*T", "i", ["0", last]], ["4*T*D", "y"]])  # fmt: skip
    assert proved(found) == holds
    assert holds or found["shown"][0]["argument"] == "w"


def lines(fn: Any, question: str, **more: Any) -> dict[str, Any]:
    return asked(question, fn, [0, 1, "N"], (1001,), {"BLOCK": 64}, dims={"N": WIDE}, grid=["(N+63)//64"],
                 storages=[["4*N", "x"], ["4*N", "y"]], **more)  # fmt: skip


def test_a_tile_that_reaches_into_the_next_one_races() -> None:
    assert proved(lines(K.overlapping, "bounds"))
    (shown,) = lines(K.overlapping, "races")["shown"]
    assert abs(shown["programs"][0][0] - shown["programs"][1][0]) == 1
    assert shown["sizes"]["N"] <= 1 << 13, "a small size is looked for"


def test_atomics_among_themselves_are_no_race() -> None:
    assert not lines(K.counted, "races")["shown"]


def test_early_returns_and_branches_are_conditions() -> None:
    assert proved(lines(K.stopping, "bounds"))
    assert proved(lines(K.stopping, "races"))
    assert lines(K.stopping, "bounds", picked=[["N", 65, 4096]])["proved"] == 4


def test_no_time_is_told_and_is_no_proof() -> None:
    found = rows(K.rows, seconds=0.0)
    assert not proved(found)
    assert not found["shown"]
    assert "ran out of time" in found["left"][0]


def test_constraints_and_listed_sizes_hold() -> None:
    odd = {"N": [1, 4096, 1, None]}
    common = {"dims": odd, "grid": ["N//64"], "storages": [["4*N", "x"], ["4*N", "y"]]}
    free = spec(K.rows, [0, 1, "64"], (64,), {"BLOCK": 64}, **common)
    assert proved(answer(free, "bounds", 20.0, {}, ""))
    listed = spec(K.rows, [0, 1, "N"], (1001,), {"BLOCK": 64}, dims={"N": [1, 64, 1, [32, 64]]}, grid=["1"],
                  storages=[["128", "x"], ["4*N", "y"]])  # fmt: skip
    assert answer(listed, "bounds", 20.0, {}, "")["shown"][0]["sizes"] == {"N": 64}
    bound = {**listed, "constraints": ["N % 64 != 0"]}
    assert proved(answer(bound, "bounds", 20.0, {}, ""))


# -- coverage


def covered(fn: Any, args: list[Any], numbers: tuple[int, ...], constants: dict[str, int], **more: Any) -> bool:
    storages = [["4*M*N", "x"], [more.pop("y", "4*M*N"), "y"]]
    return proved(
        asked("coverage", fn, args, numbers, constants, dims={"M": LONG, "N": LONG}, storages=storages, **more)
    )


def test_every_element_is_written() -> None:
    assert covered(K.rows, [0, 1, "N"], (1001,), {"BLOCK": 4096}, grid=["M"])
    assert covered(K.rows_in_64_bits, [0, 1, "N"], (1001,), {"BLOCK": 128}, grid=["M"])
    tiled = ["(M+31)//32", "(N+31)//32"]
    assert covered(K.transposed, [0, 1, "M", "N"], (1001, 999), {"T": 32}, grid=tiled)
    assert covered(K.stopping, [0, 1, "M*N"], (1001,), {"BLOCK": 64}, grid=["(M*N+63)//64"])
    assert covered(K.flattened, [0, 1, "M", "N"], (1001, 999), {"T": 32}, grid=["M*((N+31)//32)"])


def test_an_element_that_nobody_writes() -> None:
    assert not covered(K.rows, [0, 1, "N"], (1001,), {"BLOCK": 2048}, grid=["M"]), "a row longer than the tile"
    assert not covered(K.rows, [0, 1, "N"], (1001,), {"BLOCK": 4096}, grid=["M-1"]), "a program too few"
    assert not covered(K.rows, [0, 1, "N"], (1001,), {"BLOCK": 4096}, grid=["M"], y="4*M*N+4*M"), "a column too many"
    tiled = ["(M+31)//32", "N//32"]
    assert not covered(K.transposed, [0, 1, "M", "N"], (1001, 999), {"T": 32}, grid=tiled), "the last columns"
    assert not covered(K.flattened, [0, 1, "M", "N"], (1001, 999), {"T": 32}, grid=["M*(N//32)"])


@pytest.mark.parametrize(("kernel", "right"), [(K.grouped, True), (K.grouped_wrongly, False)])
def test_tiles_in_groups_are_written_once(kernel: Any, right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """``pid // (4 * tiles)``, ``% height`` with a smaller last group: each program has a tile of its own."""
    monkeypatch.setattr(
        index_queries, "HARD_S", 120.0 if right else 1.0
    )  # the solver's steps are counted, not its time
    dims = {"M": [1, 65536, 1, None], "N": [1, 65536, 1, None]}
    for question in ("bounds", "races"):
        found = asked(question, kernel, [0, "M", "N"], (101, 203), {"TILE": 32, "GROUP": 4}, dims=dims,
                      grid=["((M+31)//32)*((N+31)//32)"], storages=[["4*M*N", "c"]])  # fmt: skip
        assert proved(found) == (right or question == "bounds"), found
        if not right and question == "races":
            assert found["shown"] or "ran out of time" in found["left"][0]


def test_a_step_that_is_the_size_of_the_grid() -> None:
    """It is no step of 0: where a program runs, the grid is not empty."""
    options = {"dims": {"N": [0, 1 << 20, 1, None], "P": [0, 132, 1, None]}, "grid": ["P"], "storages": [["4*N", "c"]]}
    assert proved(asked("bounds", K.sharing, [0, "N", "P"], (101, 7), {"TILE": 32}, **options))
    options["grid"] = ["P+1"]
    found = asked("bounds", K.sharing, [0, "N", "P"], (101, 7), {"TILE": 32}, **options)
    assert "a loop whose step or range isn't followed" in found["trouble"]
