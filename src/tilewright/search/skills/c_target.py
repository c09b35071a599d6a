"""Target: the file is compiled for the vector instructions that this machine has, and for speed.

Nothing → ``#pragma GCC optimize("O3")``, and → ``#pragma GCC target("avx2")`` or wider.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ._c import Source
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site

SETS = {"avx2": ("avx2",), "avx512f": ("avx512f", "avx512vl", "avx512bw", "avx512dq")}


class Target(CSkill):
    name = "c-target"
    what = "compiled with -O3 and for wider vector instructions"
    holds = "an x86 machine that has them; the kernel then runs on such machines only"
    keeps = "every bit: products and sums are not contracted"
    source = "GCC manual, function-specific options"
    example = ("matmul.py", "rows.c")

    def look(self, source: Source) -> Iterator[Found]:
        text, top = source.raw.decode(), source.top()
        if 'optimize("O3")' not in text:
            yield Site(1, "-O3", source.edit((top, top, '\n#pragma GCC optimize("O3")')))
        if "GCC target" in text:
            yield Refusal(1, "the file names its target already")
            return
        for name, needs in SETS.items():
            if missing := sorted(set(needs) - flags()):
                yield Refusal(1, f"this machine has no {missing[0]}")
                continue
            width = ",prefer-vector-width=512" if name == "avx512f" else ""
            lines = f'\n#pragma GCC target("{",".join(needs)}{width}")'
            lines += "" if 'optimize("O3")' in text else '\n#pragma GCC optimize("O3")'
            yield Site(1, f"-O3 and {name}", source.edit((top, top, lines)))


@cache
def flags() -> frozenset[str]:
    """What the processor says it has; nothing where it can't be asked."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    line = next((x for x in text.splitlines() if x.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())


SKILL = Target()
