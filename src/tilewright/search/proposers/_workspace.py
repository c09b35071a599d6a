"""The folder that a coding agent works in: the task in words, the kernel, a copy of the problem, and two commands that go
through Tilewright. What it decides there decides nothing: the run checks and times the kernel itself.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import sys
from pathlib import Path

from ..tree import Context
from . import _prompt
from ._http import Passing
from ._reply import LARGEST

TOKENS = 20000  # of the task in words
GUIDE = """# Make this kernel {aim}

Change `{kernel}` and nothing else: it is the only file that is looked at afterwards.

* `./CHECK` proves that the kernel still computes what the reference in `TASK.md` computes (exit code 0: accepted).
* `./BENCH` times it, if it was accepted.

Afterwards it is checked and timed again elsewhere, on sizes and values that are not in this folder. Results that are kept
between calls, torch operations in place of kernels and code that asks who is watching are found and rejected.

{parts}
"""
SCRIPT = """#!/bin/sh
# {what}
cd "$(dirname "$0")" && TILEWRIGHT_LEDGER="$PWD/.ledger.sqlite" exec {python} -m tilewright {command} "$@"
"""


def prepare(context: Context, folder: Path) -> Path:
    """Fill an empty folder. Returns the kernel's path in it."""
    kernel = folder / Path(context.kernel_path).name
    kernel.write_text(context.source)
    problem = _problem(context, folder)
    entry = f"::{context.entry}" if kernel.suffix == ".py" and context.entry else ""
    aim = "faster" if context.parent.accepted else "right, and keep it fast"
    parts = [p for p in _prompt.parts(context) if p.name != "kernel"]
    (folder / "TASK.md").write_text(GUIDE.format(aim=aim, kernel=kernel.name, parts=_prompt.fitted(parts, TOKENS)))
    target = shlex.quote(kernel.name + entry)
    device = f" --device {context.device}" if context.device != "cpu" else ""
    _script(folder / "CHECK", "Is the kernel right?", f"check {problem} {target}")
    _script(folder / "BENCH", "How fast is it?", f"bench {problem} {target} --quick{device}")
    return kernel


def _problem(context: Context, folder: Path) -> str:
    """A copy of the problem as the reference alone where that can be had; its hidden workloads are left out."""
    name, _, entry = context.problem.partition("::")
    path = Path(name)
    target = folder / "problem"
    if path.is_dir():
        shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__", ".*"), dirs_exist_ok=True)
        return "problem"
    target.mkdir(exist_ok=True)
    text = re.sub(r"^.*kind\s*=\s*['\"]hidden['\"].*$", "", path.read_text(), flags=re.MULTILINE)
    (target / path.name).write_text(text)
    return shlex.quote(f"problem/{path.name}" + (f"::{entry}" if entry else ""))


def _script(path: Path, what: str, command: str) -> None:
    path.write_text(SCRIPT.format(what=what, python=shlex.quote(sys.executable), command=command))
    path.chmod(0o755)


def collect(kernel: Path) -> str:
    """The kernel as the agent left it: a regular file of a sensible size, opened without following links."""
    try:
        fd = os.open(kernel, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as e:
        raise Passing(f"{kernel.name} can't be read afterwards: {e.strerror}") from None
    with os.fdopen(fd, "rb") as f:
        if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
            raise Passing(f"{kernel.name} is no regular file afterwards")
        raw = f.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise Passing(f"{kernel.name} is larger than {LARGEST >> 10} KiB afterwards")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Passing(f"{kernel.name} is no UTF-8 text afterwards") from None


def changed(folder: Path, before: dict[str, bytes], kernel: Path) -> list[str]:
    """Names of other files that were changed or made; they are left behind."""
    after = snapshot(folder)
    names = {n for n in after if before.get(n) != after[n]} - {kernel.name}
    return sorted(n for n in names if not n.startswith(".ledger"))[:20]


def snapshot(folder: Path) -> dict[str, bytes]:
    """Small regular files directly in the folder and what they hold."""
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())
            if p.is_file() and not p.is_symlink() and p.stat().st_size < LARGEST}  # fmt: skip
