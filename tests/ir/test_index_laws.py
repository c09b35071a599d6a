"""Laws of the index domain: at each size, the elements that the walked launch says are written are those that the evaluator
writes. One mutant a rule: a wrong rule breaks the law."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import index_sizes_kernels as K
import pytest
import torch

from tilewright.ir import launch as concrete
from tilewright.ir.compile import compile

z3 = pytest.importorskip("z3")
from tilewright.ir.domains import index, index_rules  # noqa: E402
from tilewright.ir.domains.index import AX, PID, num  # noqa: E402
from tilewright.ir.domains.index_launch import launch  # noqa: E402
from tilewright.ir.domains.index_walk import Walker  # noqa: E402

T = 4
TURNS = 8


def walked(fn: Any, numbers: tuple[int, ...], grid: list[str], counters: int) -> list[Any]:
    """Accesses of a launch with one storage at symbolic n, M and N, and how to make them concrete."""
    text = compile(fn, (torch.zeros(1), *numbers), {"T": T}).program.text
    made = {"text": text, "dims": {n: [1, 64, 1, None] for n in "nMN"}, "constraints": [], "picked": [],
            "args": [["pointer", 0, "0", "f32"], *(["int", n, "i32"] for n in "nMN")], "grid": grid,
            "storages": [["1000000", ["y"], None]], "memory": 1 << 40}  # fmt: skip
    return Walker(launch(made)[0]).run()


def elements(touches: list[Any], sizes: dict[str, int], programs: tuple[int, int, int]) -> set[int]:
    """Every element that is written at these sizes."""
    fixed = [(z3.Int(n), z3.IntVal(v)) for n, v in sizes.items()]
    out: set[int] = set()
    for t in touches:
        ids = itertools.product(*(range(p) for p in programs))
        places = list(itertools.product(*(range(n) for n in t.shape)))
        turns = list(itertools.product(range(TURNS), repeat=len(t.counters)))
        both = z3.If(index.truth(t.when), index.whole(t.off.e), -1)
        both = z3.substitute(both, fixed)
        for pid, at, k in itertools.product(ids, places, turns):
            now = [*zip(PID, pid, strict=True), *zip(AX, at, strict=False), *zip(t.counters, k, strict=True)]
            found = z3.simplify(z3.substitute(both, [(v, z3.IntVal(x)) for v, x in now]))
            if not z3.is_int_value(found):
                return {-1}  # not known, which agrees with nothing
            out |= {found.as_long()} if found.as_long() >= 0 else set()
    return out


def written(fn: Any, sizes: dict[str, int], programs: tuple[int, int, int]) -> set[int]:
    y = torch.zeros(200_000)
    concrete.run(fn, programs, (y, *sizes.values()), {"T": T})
    return set(y.nonzero().reshape(-1).tolist())


CASES = [
    ({"n": 11, "M": 3, "N": 7}, (3, 1, 1)),
    ({"n": 6, "M": 2, "N": 5}, (2, 1, 1)),
    ({"n": 9, "M": 2, "N": 14}, (3, 1, 1)),
]


def agree(fn: Any, grid: list[str]) -> bool:
    touches = walked(fn, (11, 3, 7), grid, 0)
    return all(elements(touches, sizes, programs) == written(fn, sizes, programs) for sizes, programs in CASES)


def test_operations_on_integers() -> None:
    assert agree(K.sums, ["(n+3)//4", "1", "1"])


def test_loops() -> None:
    assert agree(K.turns, ["(n+3)//4", "1", "1"])


def wrong(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A rule whose integers are one too large, and whose truth values are the other way round."""

    def rule(w: Any, op: Any, *args: Any) -> Any:
        out = fn(w, op, *args)
        if isinstance(out, index.Num):
            return index.add(out, num(1))
        return index.Flag(index.inverse(out.e)) if isinstance(out, index.Flag) else out

    return rule


@pytest.mark.parametrize("name", ["arith.addi", "arith.muli", "arith.divsi", "arith.remsi", "arith.cmpi", "arith.andi",
                                  "arith.maxsi", "arith.minsi", "arith.shli", "arith.shrsi", "arith.select", "arith.trunci",
                                  "tt.make_range", "tt.get_program_id", "tt.get_num_programs", "tt.reshape",
                                  "arith.constant"])  # fmt: skip
def test_a_wrong_rule_breaks_the_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(index_rules.RULES, name, wrong(index_rules.RULES[name]))
    assert not agree(K.sums, ["(n+3)//4", "1", "1"])
