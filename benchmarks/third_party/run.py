"""Evaluate the Triton kernels of public packages: which are reached, which evaluated, which refused, and why.

    python benchmarks/third_party/run.py [--site FOLDER] [--work FOLDER] [--only PACKAGE ...] [--cases NAME ...] [--again]

The packages (`requirements.txt`) are installed without their dependencies into FOLDER, unmodified, and are no part of this
repository. `drivers/` calls their public functions on small inputs; each case runs in a process of its own with a limit on
its time. What each case did stays in the work folder, so a run goes on where it stopped; `--again` forgets it.

Writes `benchmarks/third_party.json` and `docs/evidence/third-party.md`.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import inventory
import summary

CASE_SECONDS = 420


def main() -> None:
    """Install, run what has not been run, write the evidence."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--site", type=Path, default=Path.home() / ".cache" / "tilewright-third-party" / "site")
    options.add_argument("--work", type=Path, default=Path.home() / ".cache" / "tilewright-third-party" / "work")
    options.add_argument(
        "--only",
        nargs="*",
        default=[*inventory.PACKAGES.values(), "fla_attention", "fla_modules"],
        help="drivers, by the names of their files",
    )
    options.add_argument("--cases", nargs="*", default=[])
    options.add_argument("--again", action="store_true")
    options.add_argument("--write-only", action="store_true", help="write the evidence from what the work folder holds")
    given = options.parse_args()
    site, work = given.site.resolve(), given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    install(site)
    for package in [] if given.write_only else given.only:
        names = open_cases(work, package, given.cases, given.again)
        if names:
            attempt(site, work, package, names)
    summary.write(site, work)


def install(site: Path) -> None:
    """The wheels, once; a folder that holds them already is taken as it is and checked against their own records."""
    if not site.is_dir():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site),
                        "-r", str(HERE / "requirements.txt")], check=True)  # fmt: skip
    changed = summary.modified(site)
    if changed:
        raise SystemExit(f"files of the packages differ from what their wheels recorded: {', '.join(changed[:5])}")


def cases(package: str) -> list[str]:
    """Names of a driver's cases, in the order of the file."""
    tree = ast.parse((HERE / "drivers" / f"{package}.py").read_text())
    return [
        n.name.removeprefix("case_") for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("case_")
    ]


def attempt(site: Path, work: Path, package: str, names: list[str]) -> None:
    """Cases of a package, one after another, in forks of one process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_CACHE_DIR": str(work / "triton")}
    subprocess.run([sys.executable, str(HERE / "child.py"), str(site), package, str(work), str(CASE_SECONDS), *names],
                   env=environment, stderr=subprocess.DEVNULL, check=False)  # fmt: skip


def open_cases(work: Path, package: str, wanted: list[str], again: bool) -> list[str]:
    """Cases that have not ended yet: those to run."""
    logs = {n: work / f"{package}.{n}.jsonl" for n in cases(package) if not wanted or n in wanted}
    return [n for n, log in logs.items() if again or not log.is_file() or '"kind": "case"' not in log.read_text()]


if __name__ == "__main__":
    main()
