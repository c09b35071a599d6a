"""The page: one file, the answer first, nothing hidden, nothing that a browser would fetch or run."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tilewright.measure.record import Measurement
from tilewright.prove.finding import CaseRecord, Finding, TensorRecord
from tilewright.prove.verdict import Claim, GateReport, Verdict
from tilewright.report import html
from tilewright.report.html import facts, measurement, words

from . import made_up

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Checks that elements nest, and keeps attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, k, v or "") for k, v in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data.strip())


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def text(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(w for w in read(page).words if w))


EVERY = {"faster": made_up.faster(), "refused": made_up.refused(), "even": made_up.even()}


@pytest.mark.parametrize("m", EVERY.values(), ids=EVERY)
def test_one_file_without_script_or_network(m: Measurement) -> None:
    page = html.render([m])
    reader = read(page)
    assert not [a for a in reader.attributes if a[0] in ("script", "iframe", "object") or a[1].startswith("on")]
    links = [v for _, k, v in reader.attributes if k in ("src", "href", "action", "data")]
    assert {v for v in links if not v.startswith(("#", "data:"))} == set()
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_answer_comes_first_and_the_loss_beside_it() -> None:
    page = text(html.render([made_up.faster()]))
    order = ["Faster", "1.21× the speed of compile, the fastest of 3 right baselines, 99% interval",
             "Slower at M=128 N=100000", "Against every right baseline", "How near the floor",
             "Workloads", "Samples", "Machine"]  # fmt: skip
    places = [page.find(part) for part in order]
    assert -1 not in places
    assert places == sorted(places)


def test_what_was_not_counted_is_there_with_its_reason() -> None:
    page = text(html.render([made_up.faster()]))
    assert "unavailable baseline max-autotune no g++ on this machine" in page
    assert "wrong baseline fast.py values: 12 of 8192 elements beyond the budget" in page
    refused = text(html.render([made_up.refused()]))
    assert "call 17 of block 2 returned the answer of an earlier call" in refused
    assert "Nothing was timed" in refused


def test_no_gain_is_said_so() -> None:
    m = made_up.even()
    assert measurement.sentence(m) == \
        "1.002× the speed of right.c (99% interval 0.996–1.008×): no difference within the noise of ±3.0%."  # fmt: skip
    page = html.render([m])
    assert "No measurable gain" in page
    assert "FLOP/B" not in page, "no operations are known, so there is no plane to draw on"
    assert "of the floor&#39;s speed" in page


def test_every_workload_state_and_baseline_is_drawn() -> None:
    page = html.render([made_up.faster()])
    for name in ("compile", "eager", "peer:liger"):
        said = re.findall(rf'aria-label="vs {name}: [\d.]+×, 99% interval', page)
        assert len(said) == 3 * 3, "three workloads, each in the deciding state and two others"
    assert page.count("Ratio to compile, block by block") == 3
    assert "CUDA graph replay" in page


def dots(page: str) -> list[str]:
    """The classes of the marks of forest plots, by row: those of the bar and of the dot."""
    rows = [s for s in re.findall(r"<svg.*?</svg>", page) if "% interval" in s]
    return [found for s in rows for found in re.findall(r'class="whisker ([a-z ]+)".*?class="point ([a-z ]+)"', s)]


def test_what_is_too_noisy_is_hollow_and_said() -> None:
    from tilewright.report.html.forest import figure_rows, forest

    figure = made_up.noisy().workloads[0].figures[0]
    tracks = {row.label: (row.mark, *dots(track)[0]) for row, track in forest(figure_rows(figure, "")).rows}
    assert tracks["vs compile"] == ("too noisy", "void warn strong", "warn hollow strong")
    assert tracks["vs eager"] == ("", "good faint", "good full faint")
    page = text(html.render([made_up.noisy()]))
    assert "1.21–1.23×, too noisy too noisy 1.22× 1.21–1.23×" in page
    assert "Hollow and dashed: nothing may be claimed from it." in page
    assert "Hollow and dashed" not in text(html.render([made_up.faster()]))


def test_a_state_that_was_too_noisy_is_listed_once_and_hidden_ones_are_told() -> None:
    m = made_up.noisy()
    w = m.workloads[0]
    loud = tuple(
        r.model_copy(update={"answer": "too noisy", "reason": f"{r.baseline} varies"}) for r in w.figure.ratios
    )
    w = w.model_copy(update={"kind": "hidden", "figures": (w.figure.model_copy(update={"ratios": loud}),)})
    m = m.model_copy(update={"workloads": (w, m.workloads[1])})
    noisy = [r for r in measurement.refused(m) if r.kind == "noisy"]
    assert [r.what for r in noisy] == ["M=8192 N=8192, warm, plain"]
    assert noisy[0].why.startswith("against eager, eager varies; against compile, compile varies")
    assert "M=8192 N=8192 (hidden)" in text(html.render([m]))


def test_nothing_of_a_refused_measurement_looks_like_a_gain() -> None:
    """Hidden workloads were wrong: what was measured on the announced ones does not count either."""
    page = html.render([made_up.faster(answer="refused", reason="hidden workload M=3: wrong")])
    assert dots(page)
    assert all("hollow" in d and "void" in w for w, d in dots(page))


def test_the_noise_band_says_what_it_is_made_of() -> None:
    from tilewright.report import noise

    wide = made_up.noisy()
    assert noise.of_measurement(wide) == "±12.0%: as far as A/A reaches at w"
    assert noise.of_figure(wide.workloads[0].figures[0]) == "band ±12.0%: as far as A/A reaches"
    least = "the least effect that the protocol calls one"
    assert noise.of_measurement(made_up.faster()) == f"±3.0%: {least}; A/A stays within ±0.6%"
    alone = wide.workloads[0].figures[0].model_copy(update={"null": None, "noise": 0.03})
    assert noise.of_figure(alone) == f"band ±3.0%: {least}; no A/A run came together"
    page = text(html.render([wide]))
    assert "Noise band ±12.0%: as far as A/A reaches." in page
    page = text(html.render([made_up.faster()]))
    first = page[page.index("Ratio to compile, block by block") :]
    assert first.index("Noise band") < first.index("Other states"), "the deciding state's stands with it"
    assert page.count("Noise band ±3.0%") == 3 * 3, "three workloads, in three states each"
    assert f"below this nothing is called a gain: {least}" in text(html.render([made_up.faster()]))


def test_no_fact_is_listed_under_the_name_of_another() -> None:
    m = made_up.faster(versions={"torch": "2.11.0", "kernel": "6.1.0"})
    for rows in (measurement.provenance(m), html.verdict.view(verdict().model_copy(update={
            "versions": {"kernel": "6.1.0"}, "kernel_sha256": "k" * 64}))["provenance"]):  # fmt: skip
        names = [name for name, _ in rows]
        assert len(names) == len(set(names)), names
        assert ("operating system", "6.1.0") in rows


def test_the_forest_puts_one_where_one_is() -> None:
    """The point of a ratio of 1 lies on the line of 1; a slower one to its left, a faster one to its right."""
    from tilewright.report.html.forest import Row, forest

    rows = [Row("a", "", made_up.interval([v]), "", 0.03) for v in (0.5, 1.0, 2.0)]
    places = [float(re.search(r'cx="([\d.]+)%"', track)[1]) for _, track in forest(rows).rows]  # type: ignore[index]
    one = float(re.search(r'x1="([\d.]+)%"[^>]*class="one"', forest(rows).rows[0][1])[1])  # type: ignore[index]
    assert places[0] < places[1] < places[2]
    assert places[1] == pytest.approx(one, abs=0.01)
    assert one - places[0] == pytest.approx(places[2] - one, abs=0.02), "twice and half are equally far on a log scale"


def test_the_band_is_the_one_that_decides() -> None:
    """``slower`` begins below 1 / (1 + noise): the band reaches as far on either side of 1 on a logarithmic scale."""
    from tilewright.report.html.forest import Row, forest

    track = forest([Row("a", "", made_up.interval([1.0]), "", 0.5)]).rows[0][1]
    x, width = (float(v) for v in re.search(r'<rect x="([\d.]+)%" width="([\d.]+)%"', track).groups())  # type: ignore[union-attr]
    one = float(re.search(r'x1="([\d.]+)%"[^>]*class="one"', track)[1])  # type: ignore[index]
    assert one - x == pytest.approx(width / 2, abs=0.02)


def test_foreign_words_are_shown_and_not_run() -> None:
    bad = '<img src=x onerror="alert(1)"></style><script>alert(2)</script>'
    m = made_up.faster(task=bad, reason=bad, kernel=bad, notes=(bad,), state={bad: bad})
    page = html.render([m, verdict(summary=bad, detail=bad)])
    tags = {a[0] for a in read(page).attributes} | set(re.findall(r"<(\w+)", page))
    assert "script" not in tags
    assert "img" not in tags


def verdict(summary: str = "out[0] is nan, expected 0", detail: str = "") -> Verdict:
    case = CaseRecord(dims={"M": 1, "N": 3}, dtype="float16", inputs={"x": TensorRecord(
        dtype="float16", shape=(1, 3), strides=(3, 1), preview="all 0")})  # fmt: skip
    f = Finding(cls="wrong", summary=summary, where="out[0, 0]", case=case, expected="0.33333", got="0.25", gate="shapes",
                detail=detail, id="b7440e501f3b")  # fmt: skip
    gates = (GateReport(name="values", role="core", status="pass", meaning="20 cases"),
             GateReport(name="shapes", role="core", status="fail", reason=summary, findings=(f,)),
             GateReport(name="gradients", role="deciding", status="not applicable", reason="needs a GPU"))  # fmt: skip
    return Verdict(verdict="reject", reason=f"shapes: {summary}", gates=gates, task="softmax", kernel="wrong.py",
                   language="triton", claims=(Claim(kind="sampled", domain="M=1", strength="3 inputs"),),
                   domain={"dtypes": ["float16"], "dims": {"M": [0, 64]}, "layouts": "any"}, id="555a873b5431")  # fmt: skip


def test_a_verdict_with_its_counterexample() -> None:
    page = text(html.render([verdict()]))
    for part in ("Reject", "expected 0.33333", "got 0.25", "sizes M=1 N=3", "x float16 (1, 3): all 0",
                 "tilewright replay b7440e501f3b", "needs a GPU", "sampled M=1 (3 inputs)", "size M 0 to 64"):  # fmt: skip
        assert part in page, part


def test_the_source_around_a_finding() -> None:
    from tilewright.report.html.verdict import source

    lines = "\n".join(f"line {n}" for n in range(1, 30))
    f = Finding(cls="wrong", summary="s", where="wrong.py:12")
    found = source(f, lines)
    assert [n for n, _, here in found if here] == [12]
    assert (found[0][0], found[-1][0]) == (8, 16)
    assert source(f.model_copy(update={"where": "out[0]"}), lines) == []
    assert source(f.model_copy(update={"where": "wrong.py:99"}), lines) == []


def test_several_records_are_listed_at_the_top() -> None:
    page = html.render([made_up.refused(), verdict(), made_up.even()])
    ids = [v for t, k, v in read(page).attributes if k == "id" and t == "article"]
    links = [v for t, k, v in read(page).attributes if k == "href" and v.startswith("#")]
    assert links == [f"#{i}" for i in ids]
    assert text(page).index("refused remembers.c for silu_mul") < text(page).index("Reject")


@pytest.mark.parametrize(("value", "shown"), [
    (1.234e-5, "12.3\u202fµs"), (2.5, "2.50\u202fs"), (3e-10, "0.300\u202fns"), (None, "—"), (0.999, "999\u202fms"),
])  # fmt: skip
def test_times(value: float | None, shown: str) -> None:
    assert words.seconds(value) == shown


@pytest.mark.parametrize(("value", "shown"), [
    (1.0012, "1.001×"), (1.23456, "1.23×"), (0.95, "0.950×"), (12.34, "12.3×"), (1234.5, "1234×"), (float("nan"), "—"),
])  # fmt: skip
def test_ratios(value: float, shown: str) -> None:
    assert words.times(value) == shown


def test_machine_state_as_rows() -> None:
    state = {
        "clocks": {"sm_mhz": [1980, 1975.5]},
        "power_w": 412.5,
        "idle": False,
        "reasons": [],
        "name": "a_w",
        "n_s": "x",
    }
    assert facts.rows(state) == [("clocks SM", "1980, 1976\u202fMHz"), ("power", "412.5\u202fW"), ("idle", "no"),
                                 ("name", "a_w"), ("n s", "x")]  # fmt: skip
