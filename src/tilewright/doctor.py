"""What this machine can do: versions, compiler, sandbox and its leaks, evaluator, ledger, GPU.

``diagnose`` gathers data; ``render`` shows it. Nothing here decides a verdict: it says beforehand why one may be
``incomplete``, and how closely candidates are held.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from . import kernel as kernels
from .errors import TilewrightError
from .prove.child import pool
from .prove.child.kernel_session import KernelSession
from .prove.child.session import Session
from .task.calling import Calling

LEAST = {"python": (3, 11), "torch": (2, 9), "triton": (3, 6)}
BELOW = {"python": (3, 14)}
SYMBOLS = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "error": ("✗", "red")}


@dataclass(frozen=True)
class Item:
    """One line: ``state`` is ``ok``, ``note``, ``warning`` (less can be done) or ``error`` (nothing can)."""

    name: str
    state: str
    said: str
    remedy: str = ""


@dataclass
class Report:
    """The findings, the sandbox's measures, and each escape with its state."""

    items: list[Item] = field(default_factory=list)
    sandbox: dict[str, Any] = field(default_factory=dict)
    escapes: list[dict[str, str]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether kernels can be checked here at all."""
        return all(i.state != "error" for i in self.items)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for ``--json``."""
        return {"ok": self.ok, **asdict(self)}


def diagnose(*, policy: str = "best", ledger: str | Path | None = None, escapes: bool = True) -> Report:
    """Look at everything. ``policy`` is that of the sandbox; ``ledger`` a file (else the usual place);
    ``escapes=False`` leaves the attempts out, which take a few seconds."""
    report = Report()
    steps: list[tuple[str, Callable[[Report], Item]]] = [
        ("python", _python), ("torch", _torch), ("triton", _triton), ("compiler", _compiler),
        ("fork server", _fork_server), ("sandbox", lambda r: _sandbox(r, policy)),
    ]  # fmt: skip
    if escapes:
        steps.append(("escapes", lambda r: _escapes(r, policy)))
    steps += [("evaluator", _evaluator), ("ledger", lambda r: _ledger(ledger)), ("gpu", _gpu)]
    for name, step in steps:
        try:
            report.items.append(step(report))
        except TilewrightError as e:
            report.items.append(Item(name, "error", e.what, e.remedy or ""))
        except Exception as e:  # a broken machine is what this command is for
            report.items.append(Item(name, "error", f"{type(e).__name__}: {e}"))
    return report


def _supported(name: str, version: str) -> Item:
    parts = tuple(int("".join(c for c in p if c.isdigit()) or 0) for p in version.split("+")[0].split(".")[:2])
    least, below = LEAST[name], BELOW.get(name)
    words = f"{name} {version}"
    wanted = ".".join(map(str, least))
    if parts < least:
        return Item(name, "error", f"{words} is too old: {wanted} or newer is needed", f"install {name} >= {wanted}")
    if below and parts >= below:
        return Item(name, "warning", f"{words} is newer than what was tested (below {'.'.join(map(str, below))})")
    return Item(name, "ok", words)


def _python(report: Report) -> Item:
    report.versions["python"] = sys.version.split()[0]
    return _supported("python", report.versions["python"])


def _torch(report: Report) -> Item:
    report.versions["torch"] = torch.__version__
    return _supported("torch", torch.__version__)


def _triton(report: Report) -> Item:
    if importlib.util.find_spec("triton") is None:
        why = "" if sys.platform == "linux" else f" (there is none for {sys.platform})"
        remedy = "install triton" if sys.platform == "linux" else ""
        return Item("triton", "warning", f"no Triton{why}: only 'torch' and 'native' kernels can be checked", remedy)
    import triton

    report.versions["triton"] = triton.__version__
    return _supported("triton", triton.__version__)


def _compiler(report: Report) -> Item:
    from .kernel.languages.native import compiler

    try:
        path = compiler()
    except TilewrightError as e:
        return Item("compiler", "warning", f"{e.what}: 'native' kernels can't be checked", e.remedy or "")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    report.versions["compiler"] = (done.stdout.splitlines() or ["unknown"])[0]
    return Item("compiler", "ok", f"{report.versions['compiler']} ({path})")


def _fork_server(report: Report) -> Item:
    if sys.platform != "linux":
        return Item(
            "fork server", "error", f"kernels run in sealed processes, which need Linux; this is {sys.platform}"
        )
    began = time.perf_counter()
    pool.server().wait_ready()
    return Item("fork server", "ok", f"up in {time.perf_counter() - began:.1f} s")


def _sandbox(report: Report, policy: str) -> Item:
    from .prove.child import sandbox

    began = time.perf_counter()
    with Session("reference", sandbox=policy) as child:
        took = (time.perf_counter() - began) * 1000
        report.sandbox = child.sealed
    if policy == "none":
        return Item("sandbox", "warning", "off: candidates run with your rights", "use --sandbox best")
    said = f"{_measures(report.sandbox)}; a child starts in {took:.0f} ms"
    lacking = sandbox.missing(report.sandbox)
    if lacking:
        return Item("sandbox", "warning", f"{said}; missing here: {', '.join(lacking)}", "see the escapes below")
    return Item("sandbox", "ok", said)


def _measures(state: dict[str, Any]) -> str:
    parts = [f"namespaces ({', '.join(state['namespaces'])})"] if state.get("namespaces") else []
    parts += [f"Landlock {state['landlock']}"] if state.get("landlock") else []
    parts += ["system call filter"] if state.get("seccomp") else []
    parts += [f"user {state['uid']}"] if state.get("uid") not in (None, os.getuid()) else []
    parts += [f"limits ({', '.join(n.replace('_', ' ') for n in state['rlimits'])})"] if state.get("rlimits") else []
    return ", ".join(parts) or "nothing"


def _escapes(report: Report, policy: str) -> Item:
    from .prove.child.trials import try_all

    tried = try_all(policy)
    report.escapes = [asdict(t) for t in tried]
    still = [t.name for t in tried if t.state == "open"]
    closed = sum(t.state == "closed" for t in tried)
    if still:
        return Item("escapes", "warning", f"{closed} of {len(tried)} closed; open: {', '.join(still)}",
                    "check kernels you don't trust on a machine that grants namespaces")  # fmt: skip
    return Item("escapes", "ok", f"{closed} of {len(tried)} tried and closed")


def _evaluator(report: Report) -> Item:
    if importlib.util.find_spec("triton") is None:
        return Item("evaluator", "note", "not needed without Triton")
    began = time.perf_counter()
    fault = evaluator_fault()
    if fault:
        return Item("evaluator", "error", f"Triton launches can't be computed: {fault}")
    return Item("evaluator", "ok", f"computed a Triton kernel right in {time.perf_counter() - began:.1f} s")


SELF_TEST = """
import torch, triton, triton.language as tl

@triton.jit
def row_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    tl.store(y_ptr + row, tl.sum(x, axis=0))

def kernel(x):
    y = torch.empty(x.shape[0], dtype=x.dtype)
    row_sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=16)
    return y
"""


def evaluator_fault() -> str | None:
    """What goes wrong when a small Triton kernel is run as a candidate is; None if nothing does."""
    with tempfile.TemporaryDirectory(prefix="tw-doctor-") as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "self_test.py"
        path.write_text(SELF_TEST)
        x = torch.arange(33, dtype=torch.float32).reshape(3, 11)
        with KernelSession(kernels.read(str(path))) as session:
            if fault := session.build(Calling(), {}):
                return str(fault)
            outcome = session.call({"x": x})
    if outcome.trouble:
        return str(outcome.trouble)
    got = next(iter(outcome.outputs.values()))
    return None if torch.equal(got, x.sum(1)) else f"row sums of {x.tolist()} came out as {got.tolist()}"


def _ledger(given: str | Path | None) -> Item:
    from .ledger.store import locate

    url = locate(given)
    if url.get_backend_name() != "sqlite":
        return Item("ledger", "note", f"{url.render_as_string(hide_password=True)} (a database server; not tried here)")
    path = Path(str(url.database))
    folder = next(p for p in (path.parent, *path.parents) if p.exists())
    if (path.exists() and not os.access(path, os.W_OK)) or not os.access(folder, os.W_OK):
        return Item("ledger", "error", f"{path} can't be written", "set TILEWRIGHT_LEDGER or --ledger")
    free = shutil.disk_usage(folder).free
    if free < 100 << 20:
        return Item("ledger", "warning", f"{path}: only {free >> 20} MiB are free there", "free some space")
    return Item("ledger", "ok", f"{path} can be written")


def _gpu(report: Report) -> Item:
    if not torch.cuda.is_available():
        return Item("gpu", "note", "no GPU: gates that need one are 'not applicable' here; the others need none")
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Item("gpu", "ok", ", ".join(names))


def render(report: Report, console: Any) -> None:
    """Show a report on a rich console."""
    from rich.markup import escape
    from rich.table import Table

    for item in report.items:
        symbol, colour = SYMBOLS[item.state]
        console.print(f"[{colour}]{symbol}[/] [bold]{item.name}[/]  {escape(item.said)}", highlight=False)
        if item.remedy and item.state in ("warning", "error"):
            console.print(f"    Try: {escape(item.remedy)}", highlight=False)
    if report.escapes:
        table = Table(title="Ways out of the sealed child", title_justify="left")
        for column in ("attempt", "state", "if open, a kernel"):
            table.add_column(column)
        for t in report.escapes:
            colour = {"closed": "green", "open": "red"}.get(t["state"], "dim")
            table.add_row(t["name"], f"[{colour}]{t['state']}[/]", t["means"])
        console.print(table)
