"""Tiling: a loop nest is walked tile by tile, so that what a tile touches stays in the cache.

``for i { for j { … } }`` → ``for i0 += TILE_I { for j0 += TILE_J { for i in tile { for j in tile { … } } } }``
"""

from __future__ import annotations

from collections.abc import Iterator

from ._c import Loop, Source
from ._order import order
from ._rewrite import CSkill, knob, outermost
from ._skill import Found, Refusal, Site

SIZES = "8 16 32 64 128 256 1024"


class Tile(CSkill):
    name = "c-tile"
    what = "a perfect loop nest is walked tile by tile, with a tile size for each loop"
    holds = "steps of one; bounds that do not depend on each other; iterations meet in no element, or only in sums"
    keeps = "every bit, unless a sum runs over two loops: then its rounding"
    source = "Wolf and Lam, A data locality optimizing algorithm, 1991"
    example = ("matmul.py", "rows.c")

    def look(self, source: Source) -> Iterator[Found]:
        for line, loops in outermost(source):
            if len(loops) < 2:
                continue
            if any(not x.unit for x in loops):
                yield Refusal(line, f"'{next(x.var for x in loops if not x.unit)}' does not step by one")
                continue
            may = order(source, loops)
            if may.refused:
                yield Refusal(line, may.refused)
                continue
            yield Site(line, f"tiles over {', '.join(x.var for x in loops)}", self._tiled(source, loops))

    def _tiled(self, source: Source, loops: list[Loop]) -> str:
        sizes = {x.var: source.fresh(f"TILE_{x.var.upper()}") for x in loops}
        starts = {x.var: source.fresh(f"{x.var}_tile") for x in loops}
        indent, lines = source.indent(loops[0].node), []
        for x in loops:
            lines.append(x.head(step=sizes[x.var], var=starts[x.var]))
        for x in loops:
            end = f"{starts[x.var]} + {sizes[x.var]}"
            lines.append(x.head(low=starts[x.var], high=f"({end} < {x.high} ? {end} : {x.high})"))
        text = "\n".join(indent * (n > 0) + "    " * n + line for n, line in enumerate(lines)) + " "
        knobs = "".join(knob(sizes[x.var], 32, SIZES) for x in loops)
        first, body = loops[0].node, loops[-1].body
        return source.edit((source.top(), source.top(), knobs), (first.start_byte, body.start_byte, text))


SKILL = Tile()
