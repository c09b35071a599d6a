"""The HTML report of a search or of a study: one static file with inline SVG, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from ..ledger import Ledger
from ..search import store
from ..search.finalists import Conclusion
from ..search.run import Run
from ..search.study import Study
from ..search.tree import Node, Tree
from . import search_changes, search_draw, search_facts
from .html import environment, words
from .html.draw import tag

EXTRA = """
svg .thin { stroke: var(--soft); stroke-width: 1; opacity: .6; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; font-size: .87rem; margin: .2rem 0 .8rem; padding: 0;
  list-style: none; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; margin-right: .4rem;
  vertical-align: -1px; }
.diff .add { color: var(--good); } .diff .cut { color: var(--bad); } .tree { overflow-x: auto; padding-left: 0; }
.plane-box { padding: .3rem 0 .4rem 3.2rem; } .tree svg { min-width: 30rem; }
"""


@dataclass(frozen=True)
class Page:
    """A finished or unfinished run, as a report needs it."""

    tree: Tree
    conclusion: Conclusion | None
    run: str = ""
    task: str = ""
    kernel: str = ""
    strategy: str = ""
    proposers: tuple[str, ...] = ()
    declines: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of_run(cls, run: Run, conclusion: Conclusion) -> Page:
        return cls(run.tree, conclusion, str(run.book.id), run.subject.sheet.name, run.subject.kernel_path,
                   run.strategy.name, tuple(sorted(run.proposers)), tuple(run.declines),
                   tuple(dict.fromkeys(getattr(run.evaluator, "notes", ()))))  # fmt: skip

    @classmethod
    def of_record(cls, ledger: Ledger, record: store.RunRecord) -> Page:
        """A recorded run, finished or not."""
        steps = store.read_steps(ledger, record.id)
        tree = Tree({s.node.number: s.node for s in steps if s.node is not None})
        declined = tuple(s.states["declined"]["reason"] for s in steps if "declined" in s.states)
        conclusion = Conclusion(**record.ended) if record.ended else None
        return cls(tree, conclusion, record.id, record.problem, record.kernel_path, record.options.get("strategy", ""),
                   tuple(record.options.get("proposers", ())), declined)  # fmt: skip


def render(page: Page) -> str:
    """The whole page of one run."""
    return _html(f"Search: {words.place(page.task)}", page.run, _parts(page))


def view(page: Page) -> dict[str, Any]:
    """One run as a part of a page with other records."""
    c = page.conclusion
    return {"word": "faster" if c and c.answer == "faster" else "search", "kernel": words.place(page.kernel),
            "task": words.place(page.task), "id": page.run, "line": c.words if c else "unfinished", "style": Markup(EXTRA),
            "body": Markup("\n").join(p for p in _parts(page) if p)}  # fmt: skip


def _parts(page: Page) -> list[Markup | str]:
    c = page.conclusion
    winner = c.node if c else None
    if not page.tree.nodes:
        return [_answer(page), _limits(page)]
    return [
        _answer(page), _tiles(page),
        _sheet("Best so far", "Ratio of the starting kernel's time over the trial's, on the workloads of the search.",
               _plane(search_draw.best_curve(page.tree, winner))),
        _finalists(c), _way(page, winner),
        _sheet("Lineage", "Green: the winner; blue: right; amber: right but slower than its parent; red: failed.",
               tag("div", search_draw.lineage(page.tree, winner), class_="tree")),
        _archive(page.tree), _skills(page.tree), _predictions(page.tree), _failures(page), _trials(page.tree), _limits(page),
    ]  # fmt: skip


def render_study(study: Study) -> str:
    """The whole page of a study."""
    curves = {c.strategy: (c.mean, c.low, c.high) for c in study.curves}
    legend = tag("ul", Markup("").join(_named(i, n) for i, n in enumerate(curves)), class_="legend")
    rows = [(c.strategy, f"{c.area:.3f}", f"{c.area_low:.3f} to {c.area_high:.3f}", f"{c.mean[-1]:.3f}", f"{c.arrived:.0%}",
             "–" if c.trials_to_near is None else f"{c.trials_to_near:g}") for c in study.curves]  # fmt: skip
    against = [(v.strategy, f"{v.difference:+.3f}", f"{v.low:+.3f} to {v.high:+.3f}",
                ("better" if v.high < 0 else "worse") if v.clear else "no clear difference")
               for v in study.versus]  # fmt: skip
    spaces = [(n, str(size), f"{best:.3g}x") for n, size, best in study.spaces]
    head = Markup('<div class="answer even"><h1>{} strategies compared</h1><p class="said">{} recorded space(s), {} trials '
                  "each, {} seeds; the best mean regret: {}</p></div>").format(
        len(study.curves), len(study.spaces), study.budget, study.seeds, study.curves[0].strategy)  # fmt: skip
    parts = [
        head,
        _sheet("Regret", "Share of the best known gain still missing after each trial, mean over all games; the band is "
               f"its {study.level:.0%} interval (bootstrap over games).", legend, _plane(search_draw.regret(curves))),
        _sheet("Strategies", "Area: mean regret over all trials; near: less than 5% of the gain missing.",
               _table(("strategy", "area", "interval", "at the end", "games near", "trials to near (median)"), rows)),
        _sheet("Against random, game by game", "Below zero is better.",
               _table(("strategy", "difference of area", "interval", ""), against)) if against else "",
        _sheet("Spaces", "Recorded versions and the fastest among them; times are those of the record.",
               _table(("space", "versions", "best"), spaces)),
    ]  # fmt: skip
    return _html("Study of strategies", "", parts)


def _named(place: int, name: str) -> Markup:
    colour = search_draw.COLOURS[place % len(search_draw.COLOURS)]
    return tag("li", Markup("{}{}").format(tag("i", style=f"background:{colour}"), name))


def _html(title: str, id: str, parts: Iterable[Any]) -> str:
    from .. import __version__

    style = Markup("{}{}").format(environment().globals["style"], Markup(EXTRA))
    return str(Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        'initial-scale=1"><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        '\'unsafe-inline\'; img-src data:"><link rel="icon" href="data:,"><title>{}</title><style>{}</style></head><body>'
        '<main><header class="top"><span><strong>Tilewright</strong> report</span><span>{}</span></header>{}'
        "<footer>Made by Tilewright {}. This page is one file: it runs no script and fetches nothing.</footer></main>"
        "</body></html>\n").format(title, style, id, Markup("\n").join(p for p in parts if p), __version__))  # fmt: skip


def _sheet(title: str, lead: str, *body: Markup | str) -> Markup:
    head = tag("p", lead, class_="lead") if lead else ""
    return tag("section", Markup("").join([tag("h2", title), head, *body]), class_="sheet")


def _plane(chart: Markup) -> Markup:
    return tag("div", chart, class_="plane-box")


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    head = tag("thead", tag("tr", Markup("").join(tag("th", n) for n in names)))
    cells = (Markup("").join(tag("td", c, data_name=n, class_="first" if i == 0 else None)
             for i, (n, c) in enumerate(zip(names, row, strict=True))) for row in rows)  # fmt: skip
    return tag("table", Markup("").join([head, tag("tbody", Markup("").join(tag("tr", c) for c in cells))]))


def _answer(page: Page) -> Markup:
    c = page.conclusion
    word = c.words if c else "unfinished"
    tone = "good" if c and c.answer == "faster" else "even"
    kind = f". The times of this run are {c.kind}, not measured." if c and c.kind != "measured" else ""
    said = (c.reason if c else "The run was not ended; `tilewright search --run` goes on with it.") + kind
    return Markup('<article><div class="answer {}"><p class="subject"><b>{}</b> for {}</p><h1>{}</h1><p class="said">{}</p>'
                  "</div></article>").format(tone, words.place(page.kernel), words.place(page.task), word, said)  # fmt: skip


def _tiles(page: Page) -> Markup:
    c, tree = page.conclusion, page.tree
    values = [("trials", str(len(tree) - 1), f"{sum(n.ok for n in tree) - tree.root.ok} right and timed"),
              ("strategy", page.strategy, ", ".join(page.proposers)),
              ("declined", str(len(page.declines)), "nothing new to propose")]  # fmt: skip
    if c is not None:
        values += [(name, value.split(",")[0], value.partition(", ")[2]) for name, value in search_facts.prices(c)]
    return tag("div", Markup("").join(
        tag("div", Markup('<div class="name">{}</div><div class="value">{}</div><div class="note">{}</div>').format(*v),
            class_="tile") for v in values), class_="tiles")  # fmt: skip


def _finalists(c: Conclusion | None) -> Markup | str:
    if c is None or not c.finalists:
        return ""
    rows = [(f"#{f.number}", f"{f.developed:.3f}x", f.dropped or f"{f.ratio:.3f}x",
             "" if f.dropped else f"{f.low:.3f} to {f.high:.3f}", f.rounds) for f in c.finalists]  # fmt: skip
    lead = (f"Measured again in fresh processes on hidden workloads, round by round. Test: {c.method}; level {c.level:.0%}, "
            f"margin {c.margin:.0%}; {c.tried} were tried, {len(c.finalists)} tested.")  # fmt: skip
    return _sheet("Finalists", lead, _table(("trial", "in the search", "hidden", "interval", "rounds"), rows))


def _way(page: Page, winner: int | None) -> Markup | str:
    steps = search_facts.way(page.tree, winner)
    if not steps:
        return ""
    told = {c.number: c.words for c in search_changes.changes(page.tree, winner)}
    rows = [
        (f"#{s.number}", told[s.number], f"{s.gain:.3f}x", "" if s.share is None else f"{s.share:.0%}") for s in steps
    ]
    parts = [
        tag("p", f"#{winner}: {search_changes.summary(page.tree, winner)}", class_="said"),
        _table(("trial", "change", "over its parent", "share of the gain"), rows),
    ]
    without = search_facts.ablation(page.tree, winner)
    if without:
        cells = [(w.parameter, str(w.value), str(w.instead), f"#{w.number}", w.loss) for w in without]
        parts += [tag("h3", "One parameter another: the fastest such version that was tried"),
                  _table(("parameter", "winner", "instead", "trial", "effect"), cells)]  # fmt: skip
    return _sheet("Where the gain comes from", "The steps that lead to the winner, and what each gave.", *parts)


def _archive(tree: Tree) -> Markup | str:
    chart = search_draw.heat_map(tree)
    return "" if chart is None else _sheet("Archive", "The fastest of each kind of kernel.", _plane(chart))


def _skills(tree: Tree) -> Markup | str:
    rows = [
        (s.name, s.tried, s.right, s.faster, "–" if s.gain is None else f"{s.gain:.3f}x")
        for s in search_facts.skills(tree)
    ]
    return _sheet("Skills", "Gain: median over the parent, of those that were right.",
                  _table(("who: what", "tried", "right", "faster", "gain"), rows)) if rows else ""  # fmt: skip


def _predictions(tree: Tree) -> Markup | str:
    pairs = search_facts.predictions(tree)
    return (
        ""
        if not pairs
        else _sheet("Predicted and measured", "Gain over the parent.", _plane(search_draw.predictions(pairs)))
    )


def _failures(page: Page) -> Markup | str:
    rows = search_facts.failures(page.tree)
    return _sheet("Failures", "", _table(("kind", "how many", "the last one"), rows)) if rows else ""


def _trials(tree: Tree) -> Markup:
    return _sheet("Trials", "Each with its change.", *(_trial(tree, n) for n in tree))


def _trial(tree: Tree, n: Node) -> Markup:
    t, f = n.timing, n.failure
    parent = tree[n.parent] if n.parent is not None else None
    worth = f"{t.ratio:.3f}x ({t.low:.3f} to {t.high:.3f})" if t else ""
    tone = "good" if t and not f else "warn" if t else "bad"
    said = "; ".join(x for x in (worth, f"{f.kind}: {f.message}" if f else "") if x)
    head = Markup('<b>#{}</b><span class="badge {}">{}</span><span>{}</span><span class="soft">{}</span>').format(
        n.number, tone, f.kind if f else "right", search_facts.what(n, parent), said)  # fmt: skip
    body = [_diff(tree.diff(n.number)) if n.number else tag("pre", n.source)]
    if n.proposal.rationale:
        body.insert(0, tag("p", n.proposal.rationale, class_="soft"))
    if n.verdict:
        body.append(tag("code", f"tilewright show {n.verdict}", class_="command"))
    return tag("details", Markup("").join([tag("summary", head), tag("div", Markup("").join(body), class_="inside")]))


def _diff(text: str) -> Markup:
    kinds = {"+": "add", "-": "cut"}
    lines = [
        tag("span", x, class_=kinds.get(x[:1])) if x[:1] in kinds else Markup("{}").format(x) for x in text.splitlines()
    ]
    return tag("pre", Markup("\n").join(lines), class_="diff")


def _limits(page: Page) -> Markup:
    said = ["Times of the search are short and flatter the fastest of many; only the finalists' interval is a claim.",
            "The steps on the way to the winner and the skills are told by the search's own times.",
            *page.notes]  # fmt: skip
    if page.conclusion is None or not page.conclusion.finalists:
        said.append("No finalist was measured on hidden workloads.")
    items = (tag("li", Markup("<div></div><div>{}</div>").format(x)) for x in said)
    return _sheet("What this does not show", "", tag("ul", Markup("").join(items), class_="list"))
