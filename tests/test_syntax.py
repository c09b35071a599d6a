"""Parsing in many threads at once, which CPython 3.11 does not survive unguarded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tilewright.task.syntax import expression, parse
from tilewright.task.tensors import evaluate


def test_threads_may_parse_at_once() -> None:
    nested = "(" * 60 + "N" + " + 1)" * 60

    def work(i: int) -> int:
        parse("def f():\n" + "    x = [[[[1]]]]\n" * 200)
        return evaluate(f"{nested} + {i % 7}", {"N": i})

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(200))) == [i + 60 + i % 7 for i in range(200)]
    assert expression("1 + 1") is expression("1 + 1")
