"""Reading what a model answered: one fenced block with the whole file, a few lines of words before it, and nothing else
is taken. None of it is run here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...errors import KernelError
from ...kernel import read
from ._http import Passing

LARGEST = 256 << 10  # bytes of a kernel
FENCE = re.compile(r"^(`{3,})[ \t]*[\w+-]*[ \t]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
UNSEEN = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)  # and reordering marks
WORD = re.compile(r"^(TITLE|PREDICTED|RATIONALE):[ \t]*(.+)$", re.MULTILINE)
FORM = """Answer in exactly this form:
TITLE: what you changed, in at most ten words
PREDICTED: the old time divided by the new time, as a number
RATIONALE: why this is faster, in one or two sentences
then one fenced code block with the whole new file. No second block."""


@dataclass(frozen=True)
class Answer:
    """A kernel and the words about it."""

    source: str
    title: str
    rationale: str
    predicted: float | None


def parse(text: str) -> Answer:
    """Raises Passing, with what was expected, for a reply of another form."""
    blocks = FENCE.findall(text)
    if len(blocks) != 1:
        raise Passing(f"the reply holds {len(blocks)} fenced blocks; expected one with the whole file")
    source = blocks[0][1]
    if len(source.encode(errors="replace")) > LARGEST:
        raise Passing(f"the kernel in the reply is larger than {LARGEST >> 10} KiB")
    if bad := UNSEEN.search(source):
        raise Passing(f"the kernel in the reply holds the control character {bad[0]!r}")
    before = text[: text.index(blocks[0][0])]
    words = {name: " ".join(value.split())[:400] for name, value in WORD.findall(before)}
    return Answer(source.replace("\r\n", "\n"), words.get("TITLE", "")[:100], words.get("RATIONALE", ""),
                  _number(words.get("PREDICTED", "")))  # fmt: skip


def _number(text: str) -> float | None:
    found = re.match(r"\d{1,4}(?:\.\d{1,6})?", text)
    value = float(found[0]) if found else 0.0
    return value if 0.01 <= value <= 1000 else None


def fit(source: str, language: str, name: str, entry: str, scratch: Path) -> None:
    """Raises Passing where the text is no kernel of this language with this entry; it is parsed and not run."""
    path = scratch / Path(name).name
    path.write_text(source)
    try:
        found = read(f"{path}::{entry}" if path.suffix == ".py" and entry else str(path))
    except (KernelError, RecursionError, MemoryError, ValueError) as e:
        raise Passing(f"the reply is no kernel: {getattr(e, 'what', type(e).__name__)}") from None
    if found.language != language:
        raise Passing(f"the reply is a {found.language} kernel; expected {language}")
