"""Tilewright from Python: ``check(task, kernel) -> Verdict``. The command line is a thin coat over this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UserError
from .kernel import Kernel, read
from .prove.verdict import Verdict

if TYPE_CHECKING:
    from .ledger import Ledger
    from .prove.examination import Examination

SANDBOX = ("require", "best", "none")


@dataclass
class Result:
    """A verdict and the examination behind it (which holds the tensors of its findings)."""

    verdict: Verdict
    exam: Examination


def check(task: str | Path, kernel: str | Path | Kernel, *, strict: bool = False, ledger: str | None = None,
          **options: Any) -> Verdict:  # fmt: skip
    """Examine ``kernel`` (a file, ``FILE::ENTRY``, or a Kernel) before ``task`` (a problem file).

    Returns the Verdict; it is also recorded in the ledger. Raises UserError for a problem or kernel that can't be read,
    EnvironmentProblem for what this machine lacks. A fault of the kernel is never an exception.

    >>> import tilewright                                                        # doctest: +SKIP
    >>> tilewright.check("problem.py", "kernel.py").verdict                      # doctest: +SKIP
    'accept'
    """
    return examine_and_record(str(task), kernel if isinstance(kernel, Kernel) else str(kernel), strict=strict,
                              ledger=ledger, **options).verdict  # fmt: skip


def examine_and_record(
    problem: str, kernel: str | Kernel, *, strict: bool = False, every: bool = False, ledger: str | None = None,
    overrides: str | None = None, reference: str | None = None, sandbox: str = "best", seed: int | None = None,
    gate_seconds: float = 20.0, timeout: float = 60.0, progress: Any = None, record: bool = True,
    device: str = "cpu",
) -> Result:  # fmt: skip
    """``check`` with every option; ``progress`` is a context manager that gives ``(gate, cases) -> None``."""
    from .prove.child import pool

    pool.begin()
    import torch

    from .prove.child.session import Limits
    from .prove.examine import check as examine

    torch.set_num_threads(
        1
    )  # small tensors: waiting for a thread team costs more than it saves, and audits run in parallel

    if sandbox not in SANDBOX:
        raise UserError(f"sandbox is '{sandbox}'", remedy=f"use one of {', '.join(SANDBOX)}")
    if isinstance(kernel, str):
        kernel = read(kernel)
    book = open_ledger(ledger) if record else None
    with progress or nullcontext(None) as show:
        verdict, exam = examine(
            problem, kernel, strict=strict, all_gates_run=every, overrides=overrides, reference=reference, seed=seed,
            sandbox=sandbox, gate_seconds=gate_seconds, limits=Limits(seconds=timeout), progress=show,
            device=device,
        )  # fmt: skip
    if book is not None:
        verdict = keep(book, verdict, exam)
    return Result(verdict, exam)


def open_ledger(where: str | None) -> Ledger:
    """The ledger at a path or URL, or the default one. Raises LedgerError."""
    from .ledger import Ledger

    return Ledger.open(where)


def keep(book: Ledger, verdict: Verdict, exam: Examination) -> Verdict:
    """Record a verdict with its findings' tensors and the sources; returns it with its id."""
    from .ledger import tensors
    from .prove.replay import attach

    files = {str(p): p.read_bytes() for p in _files(exam)}
    verdict = attach(verdict, exam.tensors, lambda many: tensors.save_case(many, book.put_blob))
    return book.record_verdict(verdict, exam.kernel, exam.sheet, files)


def _files(exam: Examination) -> set[Path]:
    """All files of the kernel and of the task, by the names that they were read under."""
    kernel, problem = Path(exam.kernel.path), Path(exam.sheet.path.partition("::")[0])
    folder = problem if problem.is_dir() else problem.parent
    found = {kernel.parent / n for n in exam.kernel.files} | {folder / n for n in exam.sheet.files} | {problem}
    return {p for p in found if p.is_file()}


Progress = Callable[[str, int], None]


@contextmanager
def silent() -> Iterator[Progress]:
    """Progress that shows nothing."""
    yield lambda gate, cases: None
