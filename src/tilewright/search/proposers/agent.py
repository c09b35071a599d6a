"""A coding agent as a proposer: any program that edits files, in a folder prepared for it, for a limited time.

It gets the task in words, the kernel, and the commands CHECK and BENCH (``_workspace.py``). It does not get the ledger,
the run's folder or the hidden workloads: they lie under an empty mount, where this machine allows that
(``_confined.py``; ``confine=require`` insists). Afterwards the kernel is read, and nothing else; its whole process group,
and what left the group, is ended.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import EnvironmentProblem, UserError
from ...ledger.store import locate
from ..tree import BaseProposer, Context, Cost, Message, Proposal
from . import _reply
from ._http import Passing
from ._options import listed
from ._processes import Ended, run
from ._workspace import changed, collect, prepare, snapshot

PROMPT = "Read TASK.md in this folder and do what it says. Work alone; ask nothing."
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "SHELL", "SSL_CERT_FILE", "CC")


class Agent(BaseProposer):
    """``command``: words of the program; ``{prompt}`` and ``{task}`` stand for what it is told and for the file that says
    more. ``env``: names of variables that it is given beside the usual ones."""

    name = "agent"

    def __init__(self, command: Sequence[str], seconds: float = 900.0, env: Sequence[str] = (), confine: str = "best",
                 hide: Sequence[str] = ()):  # fmt: skip
        self.command, self.seconds, self.env = list(command), seconds, list(env)
        self.confine, self.hide = confine, list(hide)

    def begin(self, context: Context) -> None:
        """Raises EnvironmentProblem where there is no such program."""
        if shutil.which(self.command[0]) is None:
            raise EnvironmentProblem(f"there is no program '{self.command[0]}'", remedy="check command=, or install it")

    def propose(self, context: Context) -> Proposal | None:
        self.trouble, self.spent = "", Cost()
        try:
            return self._propose(context)
        except Passing as e:
            self.trouble = str(e)
        except ValueError as e:
            self.trouble = f"the task does not fit: {e}"
        return None

    def _propose(self, context: Context) -> Proposal:
        folder = context.scratch / "workspace"
        folder.mkdir()
        kernel = prepare(context, folder)
        before = snapshot(folder)
        ended, mode = self._run(context, folder)
        self.spent = Cost(seconds=ended.seconds)
        source = collect(kernel)
        if source.strip() == context.source.strip():
            raise Passing(f"the agent left the kernel as it was ({_how(ended)}): {ended.output[-300:].strip()}")
        _reply.fit(source, context.language, context.kernel_path, context.entry, context.scratch)
        return Proposal(
            source=source, proposer=self.name, title=f"by {Path(self.command[0]).name}", cost=self.spent,
            messages=(Message(role="user", text=(folder / "TASK.md").read_text()),
                      Message(role="tool", text=ended.output)),
            extra={"ended": _how(ended), "paths": mode, "left behind": changed(folder, before, kernel)},
        )  # fmt: skip

    def _run(self, context: Context, folder: Path) -> tuple[Ended, str]:
        seconds = min(self.seconds, context.left.seconds or self.seconds)
        env = {n: os.environ[n] for n in (*KEPT, *self.env) if n in os.environ}
        note = context.scratch / "note"
        words = [w.replace("{prompt}", PROMPT).replace("{task}", str(folder / "TASK.md")) for w in self.command]
        if self.confine != "none":
            hidden = private(self.hide, context)
            words = [sys.executable, "-m", f"{__package__}._confined", str(note), *hidden, "--", *words]
        try:
            ended = run(words, folder, env, seconds, context.scratch / "log")
        except OSError as e:
            raise EnvironmentProblem(f"'{words[0]}' can't be started: {e.strerror}") from None
        mode = note.read_text() if note.is_file() else "open"
        if self.confine == "require" and mode != "hidden":
            raise EnvironmentProblem("this machine can't hide the ledger from an agent (no mount namespace)",
                                     remedy="use confine=best to run it all the same")  # fmt: skip
        return ended, mode


def private(more: Sequence[str], context: Context) -> list[str]:
    """Paths that an agent must not see: Tilewright's data, the ledger that is in use, and what was named."""
    import platformdirs

    found = [Path(platformdirs.user_data_dir("tilewright", appauthor=False)), *map(Path, more)]
    found += list(context.private)
    url = locate(None)
    if url.database and url.get_backend_name() == "sqlite":
        book = Path(url.database)
        found += [book, Path(f"{book}-wal"), Path(f"{book}-shm"), book.parent / "runs"]
    inside = context.scratch.resolve()
    return [str(p.resolve()) for p in dict.fromkeys(found) if p.exists() and not inside.is_relative_to(p.resolve())]


def _how(ended: Ended) -> str:
    return "its time was over" if ended.code is None else f"exit code {ended.code}"


def make(options: Mapping[str, str]) -> Agent:
    """``command``, ``timeout`` (seconds), ``env`` and ``hide`` (joined by ``+``), ``confine`` (require, best, none)."""
    if unknown := set(options) - {"command", "timeout", "env", "hide", "confine"}:
        raise UserError(f"proposer 'agent' takes no option '{sorted(unknown)[0]}'",
                        remedy="it takes command, timeout, env, hide and confine")  # fmt: skip
    command = shlex.split(options.get("command", ""))
    if not command:
        raise UserError("proposer 'agent' needs a command", remedy="give command='PROGRAM {prompt}'")
    confine = options.get("confine", "best")
    if confine not in ("require", "best", "none"):
        raise UserError(f"confine is '{confine}'", remedy="use require, best or none")
    try:
        seconds = float(options.get("timeout", "900"))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise UserError(f"timeout is '{options['timeout']}'", remedy="give seconds, timeout=900")
    lists = {n: listed(options.get(n, "")) for n in ("env", "hide")}
    return Agent(command, seconds, lists["env"], confine, lists["hide"])
