"""HTML: one static file, no script, nothing fetched. ``render(items)`` makes it from measurements, verdicts, searches."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from ...ledger.records import VerdictRecord
from ...measure.record import Measurement
from ...prove.verdict import Verdict
from . import measurement, verdict, words

if TYPE_CHECKING:
    from ...suite import Done
    from ..search_page import Page

TEMPLATES = Path(__file__).parent / "templates"
TONES = {
    "faster": "good", "accept": "good", "pass": "good", "right": "good", "slower": "bad", "reject": "bad", "fail": "bad",
    "refused": "bad", "wrong": "bad", "too noisy": "warn", "noisy": "warn", "incomplete": "warn", "inconclusive": "warn",
}  # fmt: skip


@functools.cache
def environment() -> jinja2.Environment:
    """Templates with everything escaped and nothing undefined."""
    env = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
                             lstrip_blocks=True, undefined=jinja2.StrictUndefined)  # fmt: skip
    env.globals.update(
        style=Markup((TEMPLATES / "style.css").read_text()),
        plural=words.plural,
        tone=lambda word: TONES.get(word, "even"),
    )
    env.filters.update(
        dims=words.dims, percent=words.percent, seconds=words.seconds, times=words.times, span=words.span
    )
    return env


def render(items: Sequence[Measurement | VerdictRecord | Verdict | Page]) -> str:
    """The whole page. The order of ``items`` is kept."""
    from ... import __version__

    views = [_view(item, i) for i, item in enumerate(items, 1)]
    return environment().get_template("page.html.j2").render(views=views, title=_title(views), version=__version__)


def render_suite(done: Done, thresholds: Sequence[float]) -> str:
    """The page of a suite."""
    from ... import __version__
    from . import suite

    template = environment().get_template("suite.html.j2")
    return template.render(view=suite.view(done, thresholds), title=f"suite {done.suite.name}", version=__version__)


def _view(item: Measurement | VerdictRecord | Verdict | Page, number: int) -> dict[str, Any]:
    if not isinstance(item, Measurement | VerdictRecord | Verdict):
        from .. import search_page

        return {"kind": "search", "anchor": f"s{number}", **search_page.view(item)}
    if isinstance(item, Measurement):
        return {"kind": "measurement", "anchor": f"m{number}", "word": item.answer, "kernel": Path(item.kernel).name,
                "task": item.task, "id": item.id, "line": measurement.sentence(item), **measurement.view(item)}  # fmt: skip
    v = item if isinstance(item, Verdict) else item.verdict
    return {"kind": "verdict", "anchor": f"v{number}", "word": v.verdict, "kernel": Path(v.kernel).name, "task": v.task,
            "id": v.id, "line": v.reason, **verdict.view(item)}  # fmt: skip


def _title(views: Sequence[dict[str, Any]]) -> str:
    first = views[0]
    more = f" and {len(views) - 1} more" if len(views) > 1 else ""
    return f"{first['kernel']}: {first['word']}{more}"
