"""Interchange: two perfectly nested loops change places, so that the inner one walks over neighbouring elements.

``for i { for j { … } }`` → ``for j { for i { … } }``
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ._c import Source
from ._order import order
from ._rewrite import CSkill, outermost
from ._skill import Found, Refusal, Site


class Interchange(CSkill):
    name = "c-interchange"
    what = "two perfectly nested loops change places"
    holds = "bounds do not depend on each other; iterations meet in no element, or in an order that stays"
    keeps = "every bit, unless two loops of one sum change places: then its rounding"
    source = "loop interchange: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001"
    example = ("matmul.py", "interchange.c")

    def look(self, source: Source) -> Iterator[Found]:
        for line, loops in outermost(source):
            if len(loops) < 2:
                continue
            may = order(source, loops)
            if may.refused:
                yield Refusal(line, may.refused)
                continue
            for a, b in pairwise(loops):
                heads = [(x.node.start_byte, source.head_end(x.node)) for x in (a, b)]
                text = source.edit((*heads[0], b.head()), (*heads[1], a.head()))
                both = a.var in may.sums and b.var in may.sums
                note = "; the sum is taken in another order" if both else ""
                yield Site(source.line(a.node), f"{b.var} outside {a.var}{note}", text)


SKILL = Interchange()
