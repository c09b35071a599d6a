"""Every operator function, forward and backward, measured by ``tilewright bench`` against PyTorch and other packages.

    python benchmarks/h200/ops/run.py --list
    python benchmarks/h200/ops/run.py --check --jobs 4
    python benchmarks/h200/ops/run.py --minutes 25
    python benchmarks/h200/ops/run.py --workloads all --only softmax rms_norm.backward

One file of evidence for each (function, direction, workload); what is there is not measured again, so that a run may be
stopped at any time and goes on with the same command, and folders of several runs can be put together. ``--check`` examines
the kernels on the device beforehand, several at a time; a measurement takes an accepted verdict from the ledger of
``--work`` and otherwise examines first. Headline workloads have all kinds of baselines (eager, compile, max-autotune, graph,
other packages), the others eager, compile and other packages.

Packages that are compared with where they are installed: liger-kernel 0.8.5, fla-core 0.6.0, cut-cross-entropy 25.1.1,
conch-triton-kernels 1.3 (``pip install --no-deps``; fla-core also wants einops).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [p for p in (str(HERE), str(HERE / "peers")) if p not in sys.path]  # sealed children inherit it

import ops_plan as plan

from tilewright.errors import TilewrightError
from tilewright.measure import bench as room
from tilewright.measure import protocol
from tilewright.report import ops_evidence
from tilewright.task.task import Workload

ROOT = HERE.parents[2]
PACKAGES = ("liger-kernel", "fla-core", "cut-cross-entropy", "conch-triton-kernels")
MORE = ("eager", "compile", "vendor", "peers")
HEADLINE = (*MORE, "max-autotune", "graph")
CEILING = HERE.parent / "machine.json"


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 0 all is measured (or accepted, with ``--check``), 1 something is not, 2 an error."""
    a = options(arguments)
    a.work.mkdir(parents=True, exist_ok=True)
    try:
        chosen = plan.cases(a.only, a.tasks)
        if a.check:
            return check(chosen, a)
        points = plan.points(chosen, a.workloads, a.most)
        return listed(points, a) if a.list else measure(points, a)
    except TilewrightError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2


def options(arguments: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--list", action="store_true", help="print the plan with bytes and floor, and run nothing")
    p.add_argument("--check", action="store_true", help="examine the kernels only")
    p.add_argument("--only", nargs="*", default=(), metavar="NAME", help="functions, or function.direction")
    p.add_argument("--workloads", choices=("headline", "all"), default="headline")
    p.add_argument("--minutes", type=float, default=None, help="begin no measurement after this time")
    p.add_argument("--jobs", type=int, default=1, help="with --check: how many kernels at a time")
    p.add_argument("--again", action="store_true", help="measure again what was too noisy or refused")
    p.add_argument("--no-cold", dest="cold", action="store_false", help="leave out the figures with emptied caches")
    p.add_argument("--full", action="store_true", help="the whole protocol instead of the quick one")
    p.add_argument("--device", default="cuda", help="cuda, or host: no GPU, the references in the kernels' place, to try "
                   "the script itself (its numbers say nothing of a GPU)")  # fmt: skip
    p.add_argument("--most", type=int, default=None, metavar="SIZE", help="cut dims to this (to try the script)")
    p.add_argument("--out", type=Path, default=HERE, help="folder of the evidence")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "ops-h200", help="ledger, kernels with their adapters")
    p.add_argument("--tasks", type=Path, default=HERE / "tasks", help=argparse.SUPPRESS)
    p.add_argument("--gate-seconds", type=float, default=5.0)
    p.add_argument("--timeout", type=float, default=300.0)
    a = p.parse_args(arguments)
    if a.device == "host":
        a.out = a.work / "host" if a.out == HERE else a.out
        host()
    return a


def host() -> None:
    """Host memory in the device's place, for checks and for times."""
    from tilewright.measure import cuda
    from tilewright.prove.device import machine

    machine.named = lambda device: "cpu" if device == "host" else device
    machine.started = lambda kind, sandbox: machine.start("cpu", sandbox=sandbox)
    cuda.start = lambda sandbox="best": machine.Device("host", "host memory", (0, 0))


def listed(points: Sequence[plan.Point], a: argparse.Namespace) -> int:
    """The plan. The floor is at the copy bandwidth and the matrix rate that were measured on the card."""
    top = json.loads(CEILING.read_text())
    copied, rate = top["copy_"]["4294967296"], top["rates"]["bfloat16"]
    for p in points:
        moved, flops = p.work()
        floor = max(moved / copied, flops / rate if "linear" in p.case.function else 0.0)
        there = "measured" if (a.out / f"{p.name}.json").is_file() else ""
        print(f"{p.name:<62}{moved / 1e6:>10.1f} MB  floor {floor * 1e6:>9.1f} us  "
              f"{'headline' if p.headline else 'more':<9}{len(p.case.task.baselines)} of other packages  {there}")  # fmt: skip
    if not a.only and (rest := plan.untimed(p.case for p in points)):
        print(f"without a task: {', '.join(rest)}")
    print(f"{len(points)} measurements; floors at {copied / 1e12:.2f} TB/s, linear_* at {rate / 1e12:.0f} TFLOP/s")
    return 0


# --- checks ---------------------------------------------------------------------------------------------------------


def entry(case: plan.Case, a: argparse.Namespace) -> str:
    return plan.stand_in(case, a.work) if a.device == "host" else plan.kernel(case, a.work)


def bench_options(a: argparse.Namespace, **more: Any) -> room.Options:
    return room.Options(device=a.device, timeout=a.timeout, gate_seconds=a.gate_seconds, **more)


def check(chosen: Sequence[plan.Case], a: argparse.Namespace) -> int:
    """Examine each kernel; with several jobs each in a process of its own."""
    if a.jobs <= 1:
        accepted = [checked(c, a) for c in chosen]
        return int(not all(accepted))
    with ThreadPoolExecutor(a.jobs) as pool:
        return int(any(list(pool.map(lambda c: apart(c, a), chosen))))


def checked(case: plan.Case, a: argparse.Namespace) -> bool:
    """Whether the kernel is accepted; a verdict that the ledger has is not made again."""
    began = time.monotonic()
    try:
        verdict = examined(case, a)
    except TilewrightError as e:
        print(f"{case.name}: error: {e}", flush=True)
        return False
    print(f"{case.name}: {verdict.verdict} {verdict.reason} ({time.monotonic() - began:.0f} s)", flush=True)
    return bool(verdict.accepted)


def examined(case: plan.Case, a: argparse.Namespace) -> Any:
    from tilewright.api import open_ledger
    from tilewright.kernel import read

    ledger = str(a.work / "ledger.db")
    return room.licensed(open_ledger(ledger), ledger, case.problem, read(entry(case, a)), bench_options(a))


def apart(case: plan.Case, a: argparse.Namespace) -> int:
    told = ["--check", "--only", case.name, "--device", a.device, "--work", str(a.work), "--tasks", str(a.tasks),
            "--gate-seconds", str(a.gate_seconds), "--timeout", str(a.timeout)]  # fmt: skip
    done = subprocess.run([sys.executable, str(HERE / "run.py"), *told], capture_output=True, text=True, check=False)
    print((done.stdout + done.stderr).strip(), flush=True)
    return done.returncode


# --- measurements ---------------------------------------------------------------------------------------------------


def measure(points: Sequence[plan.Point], a: argparse.Namespace) -> int:
    """Measure what has no evidence yet, in the order of the plan."""
    began, failed = time.monotonic(), 0
    todo = [p for p in points if not there(p, a)]
    print(f"{len(points) - len(todo)} of {len(points)} are there", flush=True)
    for i, p in enumerate(todo):
        if a.minutes is not None and time.monotonic() - began > 60 * a.minutes:
            print(f"time is over: {len(todo) - i} left; the same command goes on", flush=True)
            return 1
        failed += not one(p, a)
    return int(failed > 0)


def there(p: plan.Point, a: argparse.Namespace) -> bool:
    path = a.out / f"{p.name}.json"
    if not path.is_file():
        return False
    return not (a.again and json.loads(path.read_text())["answer"] in ("too noisy", "refused"))


def one(p: plan.Point, a: argparse.Namespace) -> bool:
    """Measure one point and write its evidence; what fails is told and the next one begins."""
    began = time.monotonic()
    try:
        workload = Workload(dims=p.dims, dtype="bfloat16")
        found = room.bench(
            p.case.problem, entry(p.case, a), ledger=str(a.work / "ledger.db"),
            protocol=protocol.PROTOCOL if a.full else protocol.quick(),
            options=bench_options(a, kinds=kinds(p), workloads=(workload,), cold=a.cold),
        )  # fmt: skip
    except TilewrightError as e:
        print(f"{p.name}: error: {e}", flush=True)
        return False
    except Exception:
        traceback.print_exc()
        print(f"{p.name}: failed", flush=True)
        return False
    if found.measurement is None:
        print(f"{p.name}: the kernel is not accepted: {found.verdict.reason}", flush=True)
        return False
    e = ops_evidence.of(found.measurement, p.case.function, p.case.direction, headline=p.headline,
                        operator_sha256=plan.sha256(p.case), versions=packages())  # fmt: skip
    ops_evidence.write(a.out, e)
    print(f"{p.name}: {told(e)} ({time.monotonic() - began:.0f} s)", flush=True)
    return True


def kinds(p: plan.Point) -> tuple[str, ...]:
    named = any(b.startswith("vendor=") for b in p.case.task.baselines)
    return tuple(k for k in (HEADLINE if p.headline else MORE) if named or k != "vendor")


def told(e: ops_evidence.Evidence) -> str:
    first = e.figures[0] if e.figures else None
    ratio = first.ratio() if first else None
    against = f", {ratio.interval.median:.3g}x {ratio.baseline}" if ratio else ""
    reached = f", {e.floor.fraction:.0%} of the floor" if e.floor and e.floor.fraction else ""
    lost = [f"{b.name} {b.status}: {b.reason}" for b in e.baselines if b.status != "right"]
    return f"{e.answer}{against}{reached}" + "".join(f"\n    {x}" for x in lost)


def packages() -> dict[str, str]:
    """Versions of the packages that are compared with, where they are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
