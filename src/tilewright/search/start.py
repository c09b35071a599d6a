"""From what a person asks for to a run: a new one, or the one that was interrupted."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..api import open_ledger
from ..errors import TilewrightError, UserError
from ..kernel import Kernel, read
from ..ledger import Ledger
from ..ledger.store import locate
from . import plugins, store
from .budget import Budget
from .cascade import written
from .finalists import Conclusion, not_begun
from .measured import Measured, Options, shown
from .run import Run, Subject
from .tree import Node, Proposal


@dataclass(frozen=True)
class Request:
    """What is asked for. ``proposers`` and ``strategy`` are written ``name`` or ``name:key=value,key=value``."""

    problem: str
    kernel: str
    budget: tuple[str, ...] = ()
    strategy: str = "bandit"
    proposers: tuple[str, ...] = ()
    seed: int = 0
    finalists: int = 3
    options: Options = field(default_factory=Options)


def split(text: str) -> tuple[str, dict[str, str]]:
    """``llm:model=x,role=judge`` → name and options. Raises UserError."""
    name, _, rest = text.partition(":")
    options: dict[str, str] = {}
    for part in (p.strip() for p in rest.split(",") if p.strip()):
        key, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"'{part}' in '{text}' is no option", remedy=f"write {name}:key=value,key=value")
        options[key.strip()] = value.strip()
    return name.strip(), options


def default_proposers(kernel: Kernel) -> tuple[str, ...]:
    """Declared parameters where there are some, rewrites where there are none."""
    return ("knobs",) if "knob:" in kernel.text or "triton.autotune" in kernel.text else ("rewrites",)


def key_of(problem: str, kernel: Kernel) -> dict[str, str]:
    """What an interrupted run is found by: the same problem file, the same starting kernel."""
    return {"problem": str(Path(problem.partition("::")[0]).absolute()), "kernel": kernel.sha256()}


def interrupted(book: Ledger, problem: str, kernel: str) -> store.RunRecord | None:
    """The unfinished run of this problem and kernel, if there is one."""
    return store.unfinished(book, key_of(problem, read(kernel)))


def search(request: Request, *, resume: store.RunRecord | None = None,
           notify: Callable[[Run, str], None] | None = None, opened: Callable[[Run], None] | None = None,
           ) -> tuple[Run, Conclusion]:  # fmt: skip
    """Run a search to its end. ``opened(run)`` is called once it stands, before the first trial."""
    book = open_ledger(request.options.ledger)
    kernel = read(request.kernel)
    recorded = _recorded(request, kernel) if resume is None else resume.options
    budget = Budget.parse(request.budget or tuple(recorded["budget"]))
    names, strategy = recorded["proposers"], recorded["strategy"]
    proposers = {split(p)[0]: plugins.proposer(*split(p)) for p in names}
    name, options = split(strategy)
    chosen = plugins.strategy(name, **options)
    if resume is None:
        runs = store.RunStore.plan(book, key=key_of(request.problem, kernel), kind="measured", problem=request.problem,
                                     kernel_path=str(Path(kernel.path).absolute()), options=recorded)  # fmt: skip
    else:
        runs = store.RunStore(book, resume)
    folder = folder_of(book, runs.id)
    with locked(folder, runs.id), contextlib.closing(
        Measured(request.problem, kernel, folder, request.options, runs.id)) as evaluator:  # fmt: skip
        run = Run(runs, _subject(request, kernel, evaluator), evaluator, chosen, proposers, budget, seed=recorded["seed"],
                  finalists=_finalists(recorded["finalists"], budget), notify=notify)  # fmt: skip
        run.begin()
        if resume is None:
            runs.keep()
        if opened is not None:
            opened(run)
        return run, _went(run)


def _went(run: Run) -> Conclusion:
    """The run to its end. One whose first kernel could not even be judged is ended: there is nothing to go on with."""
    try:
        return run.go()
    except TilewrightError as e:
        if not run.tree.nodes and not any("told" in s.states for s in run.book.steps()):
            run.book.event(0, "ended", not_begun(e.what, run.evaluator.kind).model_dump(mode="json"))
        raise


def _finalists(wanted: int, budget: Budget) -> int:
    """With little time for them, fewer finalists: each needs rounds of its own."""
    if budget.seconds is None or budget.reserve >= 60:
        return wanted
    return min(wanted, 1 if budget.reserve < 30 else 2)


def _recorded(request: Request, kernel: Kernel) -> dict[str, Any]:
    if not request.budget:
        raise UserError("a search needs a budget", remedy="--budget 60s, --budget 40trials; also with commas")
    return {"budget": list(request.budget), "strategy": request.strategy, "seed": request.seed,
            "proposers": list(request.proposers or default_proposers(kernel)), "finalists": request.finalists,
            "strict": request.options.strict, "device": request.options.device, "reference": request.options.reference,
            "contract": request.options.overrides and str(Path(request.options.overrides).absolute())}  # fmt: skip


def _subject(request: Request, kernel: Kernel, evaluator: Measured) -> Subject:
    return Subject(
        sheet=shown(evaluator.sheet), problem=request.problem, kernel_path=kernel.path, language=kernel.language,
        entry=kernel.entry, start=Proposal(source=kernel.text, proposer="start", title="the kernel as it was given"),
        device=request.options.device, verdict=evaluator.verdict, explain=lambda node: _explain(request, evaluator, node),
        private=_private(request, evaluator),
    )  # fmt: skip


def _private(request: Request, evaluator: Measured) -> tuple[Path, ...]:
    """The ledger's file with what SQLite lays beside it, and the files of all runs."""
    url = locate(request.options.ledger)
    if url.get_backend_name() != "sqlite":
        return (evaluator.folder.parent,)
    return (evaluator.folder.parent, *(Path(f"{url.database}{end}") for end in ("", "-wal", "-shm")))


def _explain(request: Request, evaluator: Measured, node: Node) -> str:
    """What ``tilewright explain`` finds for a node, as text; empty for languages that it can't look into."""
    if evaluator.start.language not in ("triton", "torch") or not node.kernel:
        return ""
    from ..errors import TilewrightError
    from ..explain import explain

    path = evaluator.folder / f"{node.number:04d}" / Path(evaluator.start.path).name
    try:
        found = explain(request.problem, f"{path}::{evaluator.start.entry}", sandbox=request.options.sandbox)
    except TilewrightError as e:
        return f"explain gives nothing: {e.what}"
    return found.model_dump_json(indent=1, exclude_defaults=True)


def folder_of(book: Ledger, run: str) -> Path:
    """Where a run keeps the files of its candidates: beside the ledger's file, or in the user's data folder."""
    if book.store.is_sqlite:
        return Path(str(book.store.url.database)).parent / "runs" / run
    import platformdirs

    return Path(platformdirs.user_data_dir("tilewright", appauthor=False)) / "runs" / run


@contextlib.contextmanager
def locked(folder: Path, run: str) -> Iterator[None]:
    """One process at a time works on a run; the lock goes with the process, however it ends. A folder in which nothing
    came to lie goes too."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"another process is working on run {run}", remedy="wait for it, or stop it first"
            ) from None
        try:
            yield
        finally:
            if [p.name for p in folder.iterdir()] == ["lock"]:
                (folder / "lock").unlink()
                folder.rmdir()


def file_of(book: Ledger, run: str, node: Node, kernel: str) -> Path:
    """The source of a node as a file; written anew if it is gone."""
    folder = folder_of(book, run) / f"{node.number:04d}"
    path = folder / Path(kernel).name
    return path if path.exists() else written(node.proposal, folder, path.name)
