"""Independence: the compiler is told that the iterations of an innermost loop meet in no element, so that it vectorises
without a test at run time.

``for j y[j] = f(x[j]);`` → the same under ``#pragma GCC ivdep``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._c import Source, innermost, loop, loops
from ._order import order
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site
from .c_unroll import before, pragma


class Ivdep(CSkill):
    name = "c-ivdep"
    what = "the compiler is told that iterations of an innermost loop are independent"
    holds = "shown by the dependence test: every written element belongs to one iteration"
    source = "GCC manual, loop-specific pragmas"
    example = ("matmul.py", "rows.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            if not innermost(node):
                continue
            made, line = loop(source, node), source.line(node)
            if isinstance(made, str):
                yield Refusal(line, made)
                continue
            may = order(source, [made])
            shared = [a for a in (may.facts.arrays(write=True) if may.facts else ())
                      if any(made.var not in x.index.names for x in may.facts.accesses  # type: ignore[union-attr]
                             if x.array == a and x.index is not None)]  # fmt: skip
            if may.refused or shared:
                yield Refusal(line, may.refused or f"every iteration meets in one element of '{shared[0]}'")
            elif not may.facts or not may.facts.arrays(write=True):
                yield Refusal(line, "the loop writes no array")
            elif "ivdep" in pragma(source, node):
                yield Refusal(line, "the compiler is told so already")
            else:
                yield Site(line, f"iterations over {made.var} independent", before(source, node, "#pragma GCC ivdep"))


SKILL = Ivdep()
