"""What ``tilewright report`` shows: measurements, attempts, verdicts, searches, by id from the ledger or from JSON files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..api import open_ledger
from ..errors import UserError
from ..ledger import Ledger
from ..ledger.records import VerdictRecord
from ..measure.record import Measurement
from ..prove.verdict import Verdict
from ..search import store
from . import measurement_table, search_live, terminal
from .search_page import Page

Item = Measurement | VerdictRecord | Verdict | Page


def read_all(ids: Sequence[str], ledger: str | None) -> list[Item]:
    """The records in the order given. Raises UserError for an id or a file that holds neither."""
    book: Ledger | None = None
    items: list[Item] = []
    for id in ids:
        if id.endswith(".json"):
            items += from_file(Path(id))
        else:
            book = book or open_ledger(ledger)
            items.append(from_ledger(book, id))
    return items


def from_ledger(book: Ledger, id: str) -> Item:
    """The measurement, attempt, verdict or search under an id; for a finding the verdict that it stands in."""
    found = book.find(id)
    if found.kind == "verdict":
        return found.record  # type: ignore[no-any-return]
    if found.kind == "finding":
        return found.record.verdict  # type: ignore[no-any-return]
    if found.kind in ("measurement", "attempt"):
        return _measurement(json.loads(found.record["body"]), f"{found.kind} {found.id}", found.id)
    if found.kind == "search":
        return Page.of_record(book, store.load(book, found.id))
    raise UserError(f"'{id}' is the {found.kind} {found.id[:12]}; a report shows measurements, verdicts and searches",
                    remedy=f"tilewright show {found.id[:12]} lists what belongs to it")  # fmt: skip


def from_file(path: Path) -> list[Item]:
    """What a JSON file holds: a measurement, a verdict, or a list of them."""
    try:
        data = json.loads(path.read_text())
    except OSError as e:
        raise UserError(f"can't read '{path}': {e.strerror}", remedy="check the path, or give an id") from None
    except UnicodeDecodeError as e:
        raise UserError(f"not JSON: byte {e.start} is no UTF-8", where=str(path)) from None
    except ValueError as e:
        raise UserError(f"not JSON: {e}", where=str(path)) from None
    except RecursionError:
        raise UserError("nested too deeply for a measurement or a verdict", where=str(path),
                        remedy="give a file that --json wrote") from None  # fmt: skip
    items = [_item(d, str(path)) for d in (data if isinstance(data, list) else [data])]
    if not items:
        raise UserError("the file holds an empty list", where=str(path))
    return items


def _item(data: Any, where: str) -> Item:
    if isinstance(data, dict) and "finalists" in data:
        raise UserError("this is the conclusion of a search, without its trials", where=where,
                        remedy="tilewright search --list shows the runs; tilewright report RUN shows one")  # fmt: skip
    if isinstance(data, dict) and "answer" in data:
        return _measurement(data, where, str(data.get("id") or ""))
    if isinstance(data, dict) and "verdict" in data:
        try:
            return Verdict.model_validate(data)
        except ValidationError as e:
            raise _unreadable("verdict", where, e) from None
    raise UserError("this is neither a measurement nor a verdict", where=where,
                    remedy="tilewright bench and tilewright check write them with --json FILE")  # fmt: skip


def _measurement(data: Any, where: str, id: str) -> Measurement:
    try:
        return Measurement.model_validate({**data, "id": data.get("id") or id})
    except ValidationError as e:
        raise _unreadable("measurement", where, e) from None


def _unreadable(kind: str, where: str, e: ValidationError) -> UserError:
    first = e.errors()[0]
    return UserError(f"a {kind} in a form that this version can't read", where=where,
                     detail=f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
                     remedy="use the version of Tilewright that wrote it")  # fmt: skip


def show(items: Sequence[Item]) -> None:
    """Print them one below the other; several measurements as a table of answers first."""
    measured = [i for i in items if isinstance(i, Measurement)]
    if len(measured) > 1:
        measurement_table.overview(measured)
    for i in items:
        if isinstance(i, Measurement):
            measurement_table.show(i)
        elif isinstance(i, Page):
            search_live.recorded(i.tree, i.conclusion, i.run)
        else:
            terminal.verdict(i.verdict if isinstance(i, VerdictRecord) else i)
