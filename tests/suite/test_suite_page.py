"""The page of a suite: what it says, and that it says it truly."""

from __future__ import annotations

import re
from pathlib import Path

from report.test_html import read, text
from tilewright.prove.verdict import Verdict
from tilewright.report import html
from tilewright.report.html.suite import curve, lost, not_counted, share
from tilewright.suite import Done, Problem, Suite
from tilewright.suite.pairing import Entry, Pairing
from tilewright.suite.run import Measured, Outcome
from tilewright.suite.scores import Share, Timing

PROBLEMS = tuple(Problem(f"p{i}", Path("x"), f"level {1 + i // 2}") for i in range(5))


def outcome(i: int, speed: float | None, verdict: str = "accept", method: str = "ada") -> Outcome:
    entry = Entry(PROBLEMS[i], Path("k.py"), method)
    answer = "" if speed is None else "faster" if speed > 1 else "slower"
    timings = () if speed is None else (Timing("N=64", speed, speed * 0.98, speed * 1.02, 0.5),)
    why = "timed on a GPU" if speed is None else ""
    measured = Measured(answer, timings, why=why) if verdict == "accept" else None
    return Outcome(entry, Verdict(verdict=verdict, reason="<b>wrong</b>"), measured=measured)  # type: ignore[arg-type]


def done() -> Done:
    """Twice as fast, half as fast, rejected, not measured, missing."""
    outcomes = [outcome(0, 2.0), outcome(1, 0.5), outcome(2, None, "reject"), outcome(3, None)]
    suite = Suite("bench", "kernelbench", Path("bench"), PROBLEMS)
    return Done(suite, Pairing(tuple(o.entry for o in outcomes), {Path("readme.py"): "no problem"}), outcomes)


def test_the_page_says_everything() -> None:
    page = html.render_suite(done(), (0.0, 1.0))
    said = text(page)
    for part in ("fast_0 60.0%", "fast_1 20.0% to 40.0%", "slower p1 N=64 0.500×", "reject p2 <b>wrong</b>",
                 "missing p4 no kernel", "not measured p3 timed on a GPU",
                 "readme.py no problem", "level 1 2 2 0 0 1 1 1.000×"):  # fmt: skip
        assert part in said, part
    assert "<b>wrong" not in page
    assert read(page).open == []


def test_the_curve_falls_where_the_kernels_are() -> None:
    """Of five problems two are measured: 2/5 below 0.5, 1/5 up to 2, none beyond; one more may be anywhere."""
    drawn = curve(done().results("ada"))
    assert drawn is not None
    level = r'<line x1="[\d.]+%" y1="([\d.]+)%" x2="[\d.]+%" y2="\1%" class="step"'
    assert [float(y) for y in re.findall(level, drawn)] == [60.0, 80.0, 100.0]
    assert drawn.count('class="noise"') == 3, "one kernel is not measured, at any p"


def test_no_curve_without_measurements() -> None:
    d = done()
    d.outcomes = [outcome(0, None)]
    assert curve(d.results("ada")) is None
    assert "fast_p, over p" not in html.render_suite(d, (0.0,))


def test_shares_losses_and_reasons() -> None:
    assert share(Share(1, 2, 4)) == "25.0% to 50.0%"
    assert share(Share(1, 1, 4)) == "25.0%"
    assert share(Share(0, 0, 0)) == "—"
    rows = done().results("ada")
    assert lost(rows) == [("p1", "N=64 0.500×")]
    assert not_counted(rows) == [("reject", "p2", "<b>wrong</b>"), ("missing", "p4", "no kernel")]
