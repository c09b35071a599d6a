"""Tables with one column of prose that stay readable where the screen is narrow.

wide:   ``kernel  verdict  because`` side by side, short cells whole
narrow: the short cells of a row on a line, the prose below them, indented
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

LEAST = 36  # columns below which prose goes under its row
Cell = str | Text
Columns = dict[str, dict[str, str]]


def folded(out: Console, columns: Columns, rows: Sequence[Sequence[Cell]], *, prose: str) -> RenderableType:
    """A table for ``out``. ``columns``: names with options of rich's columns; ``prose``: the one that may wrap."""
    names = list(columns)
    at = names.index(prose)
    texts = [[c if isinstance(c, Text) else Text(c) for c in row] for row in rows]
    wide = [
        max([len(n), *(t.cell_len for t in column)]) for n, column in zip(names, _turned(texts, names), strict=True)
    ]
    short = sum(w + 2 for i, w in enumerate(wide) if i != at)
    if short + min(LEAST, wide[at]) <= out.width:
        return _table(columns, texts, prose)
    return Group(*(part for row in texts for part in _stacked(row, at)))


def _turned(rows: list[list[Text]], names: list[str]) -> list[list[Text]]:
    return [[row[i] for row in rows] for i in range(len(names))]


def _table(columns: Columns, rows: list[list[Text]], prose: str) -> Table:
    t = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name, options in columns.items():
        more = {"ratio": 1} if name == prose else {"no_wrap": True}
        t.add_column(name, **more, **options)  # type: ignore[arg-type]
    for row in rows:
        t.add_row(*row)
    return t


def _stacked(row: list[Text], at: int) -> list[RenderableType]:
    head = Text("  ").join(c for i, c in enumerate(row) if i != at and c.plain)
    below = [Padding(row[at], (0, 0, 0, 2))] if row[at].plain else []
    return [head, *below]
