"""One case in this process: the package's own Python runs on host tensors under the façade, its launches are evaluated.

Each launch is evaluated in real arithmetic and in the finite field on copies of the memory it found, then in the machine
domain, whose results go on to the package's Python. Every launch and comparison is written as one JSON line
at once, so that a case which runs out of time keeps what it did.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tilewright.errors import TilewrightError, Unsupported
from tilewright.ir import compile as compiling
from tilewright.ir import launch, ops
from tilewright.ir.domains.field import Field
from tilewright.ir.domains.machine import Machine
from tilewright.ir.domains.real import Real
from tilewright.kernel.languages import _facade
from tilewright.kernel.languages._launches import Recorder
from tilewright.prove.child.device_source import DeviceSource, decode

SECONDS = {"machine": 120.0, "real": 10.0, "field": 15.0}
TOLERANCE = 1e-2  # of the largest value of the reference; float32 products run in tf32 where the kernel asks for it


class Log:
    """Lines of JSON, flushed one by one."""

    def __init__(self, path: Path):
        self.file = path.open("a")

    def write(self, **line: Any) -> None:
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


class InProcess:
    """An evaluator for ``Recorder``."""

    def __init__(self, site: Path, log: Log):
        self.site, self.log = str(site) + "/", log
        self.sources = DeviceSource({})
        self.done: dict[tuple[str, str], str] = {}

    def launch(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """Evaluate a launch in each domain and note what came of it."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            self._launch(head, {n: t.detach() for n, t in tensors.items()})

    def _launch(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        file = head["file"]["path"].removeprefix(self.site)
        note: dict[str, Any] = {"kind": "launch", "file": file, "function": head["function"], "grid": head["grid"]}
        try:
            fn = self.sources.function(head["file"], head["function"], head.get("globals", {}))
            options = {k: decode(v, self.sources, {}) for k, v in head.get("options", {}).items()}

            def values(given: dict[str, torch.Tensor]) -> dict[str, Any]:
                return {n: decode(v, self.sources, given) for n, v in head["arguments"].items()} | options

            program = compiling.compile(fn, (), values(tensors)).program
            note["lines"] = self.lines(program)
            for domain in (Real(), Field(1)):
                note[domain.name] = self.also(domain, fn, head["grid"], values, tensors, (file, head["function"]))
            start = time.perf_counter()
            r = launch.run(fn, tuple(head["grid"]), (), values(tensors), domain=Machine(), seconds=SECONDS["machine"])
            note |= {"machine": "evaluated", "seconds": round(time.perf_counter() - start, 3),
                     "faults": [self.short(str(f)) for f in r.faults[:3]],
                     "races": [self.short(str(x)) for x in r.races[:3] if not x.same_value]}  # fmt: skip
        except BaseException as e:
            note["machine"] = self.reason(e)
            raise
        finally:
            self.log.write(**note)

    def also(self, domain: Any, fn: Any, grid: list[int], values: Callable[[dict[str, torch.Tensor]], dict[str, Any]],
             tensors: dict[str, torch.Tensor], key: tuple[str, str]) -> str:  # fmt: skip
        """What another domain says of the launch, on a copy of the memory; a function is asked of once."""
        place = (*key, domain.name)
        if place in self.done:
            return self.done[place]
        try:
            launch.run(fn, tuple(grid), (), values(copied(tensors)), domain=domain, seconds=SECONDS[domain.name])
            said = "evaluated"
        except Exception as e:
            said = self.reason(e)
        self.done[place] = said
        return said

    def lines(self, program: Any) -> list[str]:
        """``file:line`` of the packages' own lines that operations of a program come from, callers included."""
        found = {f for op in program.ops() for f in (op.loc, *op.frames)}
        return sorted(self.short(f) for f in found if f.startswith(self.site))

    def reason(self, e: BaseException) -> str:
        """An exception in a line."""
        kind = "unsupported" if isinstance(e, Unsupported) else "error"
        text = " ".join(str(e).split()) or type(e).__name__
        if not isinstance(e, TilewrightError):
            last = traceback.extract_tb(e.__traceback__)[-1]
            text = f"{type(e).__name__}: {text} ({Path(last.filename).name}:{last.lineno})"
        return f"{kind}: {self.short(text)}"[:400]

    def short(self, text: str) -> str:
        return text.replace(self.site, "")


def copied(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors on copies of their storages, shared where they are shared."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors.values()}
    copies = {at: s.clone() for at, s in storages.items()}
    return {n: torch.empty(0, dtype=t.dtype).set_(copies[t.untyped_storage().data_ptr()], t.storage_offset(), t.shape, t.stride())
            for n, t in tensors.items()}  # fmt: skip


class Case:
    """What a driver holds: makes inputs, calls, compares."""

    def __init__(self, log: Log, reason: Callable[[BaseException], str]):
        self.log, self.reason = log, reason

    def call(self, what: str, f: Callable[[], Any]) -> Any:
        """A call without a reference; returns its result, or None if it failed."""
        try:
            out = f()
            self.log.write(kind="call", what=what)
            return out
        except Exception as e:
            self.failed(what, e)
            return None

    def same(self, what: str, f: Callable[..., Any], reference: Callable[..., Any] | None, *inputs: Any, grad: bool = True,
             tolerance: float = TOLERANCE) -> None:  # fmt: skip
        """``f(*inputs)`` against ``reference(*inputs)``, and the gradients of all floating inputs for a random cotangent.
        Where ``reference`` is None only the calls are made."""
        try:
            got = outcome(f, inputs, grad)
        except Exception as e:
            self.failed(what, e)
            return
        if reference is None:
            self.log.write(kind="call", what=what)
            return
        try:
            want = outcome(reference, inputs, grad)
        except Exception as e:
            self.log.write(kind="call", what=what, note="the reference failed: " + self.reason(e))
            return
        self.compare(what, got, want, tolerance)

    def compare(self, what: str, got: list[Any], want: list[Any], tolerance: float = TOLERANCE) -> None:
        """Notes the largest difference, as a share of the largest value of what is wanted."""
        errors = [distance(g, w) for g, w in zip(got, want, strict=True) if w is not None]
        ok = all(e <= tolerance for e in errors)
        self.log.write(
            kind="compare", what=what, errors=[float(f"{e:.3g}") for e in errors], tolerance=tolerance, ok=ok
        )

    def failed(self, what: str, e: BaseException) -> None:
        frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(e.__traceback__)][-6:]
        self.log.write(kind="failed", what=what, why=self.reason(e), frames=frames)


def outcome(f: Callable[..., Any], inputs: tuple[Any, ...], grad: bool) -> list[Any]:
    """Outputs, then gradients by input (None where there is none)."""
    mine = [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    floats = [x for x in mine if isinstance(x, torch.Tensor) and x.is_floating_point()]
    for x in floats:
        x.requires_grad_(grad)
    out = f(*mine)
    outs = [o for o in (out if isinstance(out, tuple | list) else (out,)) if isinstance(o, torch.Tensor)]
    kept = [o.detach().clone() for o in outs]
    through = [o for o in outs if o.requires_grad]
    if grad and through:
        g = torch.Generator().manual_seed(1)
        torch.autograd.backward(through, [torch.randn(o.shape, generator=g).to(o.dtype) for o in through])
        kept += [x.grad for x in floats]
    return kept


def distance(got: Any, want: torch.Tensor) -> float:
    """Largest difference over the largest value wanted; infinite where shapes or special values differ."""
    if got is None or got.shape != want.shape:
        return float("inf")
    a, b = got.detach().double(), want.detach().double()
    same = (a == b) | (a.isnan() & b.isnan())
    if bool(same.all()):
        return 0.0
    if not bool(torch.isfinite(a[~same]).all() and torch.isfinite(b[~same]).all()):
        return float("inf")
    finite = b[torch.isfinite(b)].abs()
    return float((a - b)[~same].abs().max() / max(float(finite.max()), 1e-6))


def prepare(site: Path) -> None:
    """Façade up, the packages importable, before anything of them is imported."""
    import sys

    sys.path.insert(0, str(site))
    ops.load()
    _facade.install()


def case(site: Path, log: Log) -> Case:
    """Recorder up, seeds set."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    evaluator = InProcess(site, log)
    Recorder(evaluator, {}).install()
    return Case(log, evaluator.reason)
