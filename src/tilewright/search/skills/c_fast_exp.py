"""Inline exp: calls of ``expf`` become a function in the file, without branches, so that loops around it are vectorised.

exp(v) = 2^n exp(r) with n = round(v / ln 2) and |r| <= ln(2)/2; exp(r) by a polynomial of degree 6 fitted to the least
relative error there (3e-9 before rounding); 2^n in two factors, so that overflow and subnormal results come out right.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._c import Source, walk
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site

FUNCTION = """
#include <string.h>

/* exp in a form that compilers vectorise: no branches, no table. */
static inline float NAME(float v)
{
    float bounded = v < -104.0f ? -104.0f : v;
    bounded = bounded > 89.0f ? 89.0f : bounded;
    const float shifted = bounded * 1.44269504f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = bounded - n * 0.693145752f - n * 1.42860677e-6f;
    float p = 1.3814544e-3f;
    p = p * r + 8.368745e-3f;
    p = p * r + 4.166839e-2f;
    p = p * r + 0.16666521f;
    p = p * r + 0.49999994f;
    p = p * (r * r) + r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, 4);
    const int32_t whole = (int32_t)(bits - 0x4B400000u), half = whole >> 1;
    const uint32_t low = (uint32_t)(half + 127) << 23, high = (uint32_t)(whole - half + 127) << 23;
    float a, b;
    memcpy(&a, &low, 4);
    memcpy(&b, &high, 4);
    return p * a * b;
}
"""


class FastExp(CSkill):
    name = "c-fast-exp"
    what = "expf becomes an inline function that is vectorised"
    holds = "calls of expf from math.h"
    keeps = "each value within two units in the last place; infinities, NaN, overflow and underflow as before"
    source = "argument reduction: Cody and Waite, Software manual for the elementary functions, 1980"
    example = ("row_softmax.py", "softmax.c")

    def look(self, source: Source) -> Iterator[Found]:
        calls = [n for n in walk(source.root) if n.type == "call_expression"
                 and source.text(n.child_by_field_name("function")) == "expf"]  # fmt: skip
        if not calls:
            return
        line = source.line(calls[0])
        if "expf" in source.functions or "<math.h>" not in source.raw.decode():
            yield Refusal(line, "expf is not the one of math.h")
        elif "<stdint.h>" not in source.raw.decode():
            yield Refusal(line, "the file does not include stdint.h")
        else:
            name, top = source.fresh("exp_inline"), source.top()
            names = [n.child_by_field_name("function") for n in calls]
            edits = [(n.start_byte, n.end_byte, name) for n in names if n is not None]
            yield Site(line, f"{len(calls)} calls inline",
                       source.edit((top, top, FUNCTION.replace("NAME", name).rstrip("\n")), *edits))  # fmt: skip


SKILL = FastExp()
