"""What skills for C share: reading the text, new parameters, new definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ._c import Source, loops
from ._order import nest
from ._skill import Found, Refusal, Skill


class CSkill(Skill):
    """A skill for C: writes ``look``."""

    language = "native"

    def find(self, text: str) -> Iterator[Found]:
        source = Source(text)
        if not source.readable:
            yield Refusal(1, "the file is not plain C that can be followed (see the compiler's words)")
            return
        if found := re.search(r"\b(volatile|asm|__asm__|_Atomic|setjmp)\b", text):
            yield Refusal(text.count("\n", 0, found.start()) + 1, f"'{found[0]}' forbids moving anything")
            return
        yield from self.look(source)

    def look(self, source: Source) -> Iterator[Found]:
        raise NotImplementedError


def knob(name: str, value: int, choices: str) -> str:
    """``#define TILE 32 // knob: 8 16 32`` as a line of its own."""
    return f"\n#define {name} {value} // knob: {choices}"


def outermost(source: Source) -> Iterator[tuple[int, list]]:  # type: ignore[type-arg]
    """Maximal perfect nests (line, loops), those that begin with a loop that can't be read left out."""
    inside: set[int] = set()
    for node in loops(source):
        if node.id in inside:
            continue
        found, _ = nest(source, node)
        inside |= {x.node.id for x in found}
        if found:
            yield source.line(node), found
