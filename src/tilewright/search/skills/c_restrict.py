"""Restrict: the compiler is told that inputs and outputs lie apart, so that it need not load again after each store.

``const float *x, float *y`` → ``const float *restrict x, float *restrict y``
"""

from __future__ import annotations

from collections.abc import Iterator

from ._access import resolve
from ._c import Node, Source, walk
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site


class Restrict(CSkill):
    name = "c-restrict"
    what = "pointers are declared to lie apart"
    holds = "what is const is not written; written buffers lie apart by the calling convention of native kernels"
    source = "ISO C, 6.7.3.1; docs/ARCHITECTURE.md, kernels in C"
    example = ("matmul.py", "rows.c")

    def look(self, source: Source) -> Iterator[Found]:
        for f in source.exported():
            pointers = [p for p in source.parameters(f) if p.pointer]
            open_ = [p for p in pointers if not p.restrict]
            if not open_:
                continue
            line = source.line(f)
            if bad := _written(source, f, {p.name for p in pointers if p.const}):
                yield Refusal(line, f"'{bad}' is const and written")
            elif any("**" in source.text(p.node) for p in open_):
                yield Refusal(line, "a parameter points to pointers")
            else:
                edits = [(n.start_byte, n.start_byte, "restrict ") for p in open_ for n in _names(p.node)]
                yield Site(line, f"{', '.join(p.name for p in open_)} lie apart", source.edit(*edits))


def _names(node: Node) -> list[Node]:
    return [n for n in walk(node) if n.type == "identifier"][-1:]


def _written(source: Source, function: Node, const: set[str]) -> str:
    for n in walk(function.child_by_field_name("body")):
        if n.type == "assignment_expression":
            left = n.child_by_field_name("left")
            names = [x for x in walk(left) if x.type == "identifier"]
            if left is not None and left.type != "identifier" and names:
                found = resolve(source, n, source.text(names[0]))
                if not isinstance(found, str) and found[0] in const:
                    return found[0]
    return ""


SKILL = Restrict()
