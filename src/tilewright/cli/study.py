"""``tilewright study``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as o

Sources = Annotated[
    list[str],
    typer.Argument(help="Recorded runs (ids of the ledger) and files of recorded spaces.", metavar="RUN|FILE…"),
]
Strategies = Annotated[
    list[str] | None, typer.Option("--strategy", "-s", help="NAME or NAME:key=value,…; may be repeated (default: all).")
]
Trials = Annotated[
    int | None, typer.Option("--trials", help="Trials of a game (default: a third of the space).", min=1)
]
Seeds = Annotated[int, typer.Option("--seeds", help="Games of each strategy on each space.", min=2)]
Fit = Annotated[Path | None, typer.Option("--fit", help="Fit a policy on every other space, write it here, and let it take "
                                          "part on the others.", metavar="FILE")]  # fmt: skip
Save = Annotated[Path | None, typer.Option("--save", help="Write the spaces as one file.", metavar="FILE")]
Html = Annotated[Path | None, typer.Option("--html", help="Write the report as one HTML file.", metavar="FILE")]


def command(
    sources: Sources, strategy: Strategies = None, trials: Trials = None, seeds: Seeds = 20, fit: Fit = None,
    save: Save = None, html: Html = None, json: o.Json = None, ledger: o.LedgerPath = None,
) -> None:  # fmt: skip
    """Compare search strategies on recorded runs, at equal budget: no compiler, no device, no model.

    Exit code: 0 done, 2 error.

    Example: tilewright study examples/07_search_rowsum/recorded.json --html study.html
    """
    import json as jsonlib

    from .. import report
    from ..report import search_page, search_study
    from ..search import fit as fitting
    from ..search import plugins
    from ..search.study import study

    report.must_be_writable(json, html, save, fit)
    spaces = _spaces(sources, ledger)
    if save is not None:
        report.write_text(save, jsonlib.dumps([s.dump() for s in spaces]))
    names = list(strategy or plugins.names("strategies"))
    budget = trials or max(5, min(s.trials for s in spaces) // 3)
    judged, notes = spaces, ""
    if fit is not None:
        known, judged = fitting.halves(spaces)
        policy = fitting.fit(known, budget)
        report.write_text(fit, policy.model_dump_json(indent=1))
        names.append(f"learned:weights={fit}")
        notes = _fitted(fit, policy, known == judged)
    done = study(judged, names, trials=budget, seeds=seeds)
    if json is not None:
        report.write_text(json, done.model_dump_json(indent=1))
    if html is not None:
        report.write_text(html, search_page.render_study(done))
    if str(json) != "-":
        search_study.show(done, note=notes)


def _fitted(file, policy, same):  # type: ignore[no-untyped-def]
    where = "; judged on other seeds of the same space" if same else ""
    return (f"{file}: fitted on {', '.join(policy.spaces)}; mean regret there {policy.before:.3f} before, "
            f"{policy.after:.3f} after{where}")  # fmt: skip


def _spaces(sources, ledger):  # type: ignore[no-untyped-def]
    """Spaces from files and from runs. Raises UserError, LedgerError."""
    from ..api import open_ledger
    from ..search import store
    from ..search.space import Space, load

    found = []
    for name in sources:
        if Path(name).exists() or name.endswith(".json"):
            found += load(Path(name))
            continue
        record = store.find(open_ledger(ledger), name)
        found.append(
            Space.of_tree(f"{Path(record.kernel_path).name} {record.id}", store.tree_of(open_ledger(ledger), record.id))
        )
    return found
