#!/usr/bin/env python3
"""Collect what a machine without a network needs to run Tilewright: its wheel, and the wheels that the machine lacks.

    python tools/offline_bundle.py --python 3.12 --lacks pydantic,sqlalchemy -o bundle
    (there)  python3 -m pip install --no-index --no-deps --target DIR bundle/*.whl; PYTHONPATH=DIR python3 -m tilewright …

Without ``--lacks`` every core dependency but torch, triton and numpy is collected, with what they need in turn. Wheels are
chosen for CPython of the given version on manylinux x86_64 (or ``--machine aarch64``).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BROUGHT = {"torch", "triton", "numpy"}
GLIBC = ("2_28", "2_27", "2_24", "2_17", "2_5", "2014")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def core() -> list[str]:
    """Names of the core dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.match(r"[A-Za-z0-9_.-]+", d).group() for d in project["dependencies"]]  # type: ignore[union-attr]
    return [n for n in names if canonical(n) not in BROUGHT]


def pins() -> dict[str, str]:
    """Version of each package in the constraints file."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {canonical(n): v for n, _, v in (x.partition("==") for x in lines) if v}


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    if subprocess.run(command).returncode:
        raise SystemExit(f"offline_bundle: failed: {' '.join(command)}")


def download(name: str, target: Path, python: str, machine: str) -> Path:
    """The wheel of one package, without what it needs."""
    before = set(target.glob("*.whl"))
    platforms = [f"--platform=manylinux{g if g == '2014' else '_' + g}_{machine}" for g in GLIBC]
    version = pins().get(canonical(name))
    pip("download", "--no-deps", "--only-binary=:all:", f"--python-version={python}", "--implementation=cp", *platforms,
        "-d", str(target), f"{name}=={version}" if version else name)  # fmt: skip
    new = set(target.glob("*.whl")) - before
    return (
        new.pop()
        if new
        else next(w for w in target.glob("*.whl") if canonical(w.name.split("-")[0]) == canonical(name))
    )


def needs(wheel: Path) -> list[str]:
    """Names that a wheel requires, without extras and without other Pythons' or systems'."""
    with zipfile.ZipFile(wheel) as z:
        meta = z.read(next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))).decode()
    found = []
    for line in meta.partition("\n\n")[0].splitlines():
        if line.startswith("Requires-Dist:"):
            requirement, _, marker = line.removeprefix("Requires-Dist:").partition(";")
            if not re.search(r"extra\s*==|python_(full_)?version\s*<|win32|Windows|darwin", marker):
                found.append(re.match(r"\s*([A-Za-z0-9_.-]+)", requirement).group(1))  # type: ignore[union-attr]
    return found


def main() -> None:
    """Build the wheel, download the others, say how to install them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="3.12", help="CPython version of the machine (default 3.12)")
    parser.add_argument("--machine", default="x86_64", choices=("x86_64", "aarch64"))
    parser.add_argument("--lacks", help="only these packages (comma-separated), exactly")
    parser.add_argument("-o", "--output", type=Path, default=Path("bundle"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(options.output), str(ROOT))
    queue = options.lacks.split(",") if options.lacks else core()
    done: set[str] = set()
    while queue:
        name = queue.pop(0).strip()
        if canonical(name) in done | BROUGHT or not name:
            continue
        done.add(canonical(name))
        wheel = download(name, options.output, options.python, options.machine)
        if not options.lacks:
            queue += needs(wheel)
    size = sum(w.stat().st_size for w in options.output.glob("*.whl"))
    print(f"{len(list(options.output.glob('*.whl')))} wheels, {size / 2**20:.1f} MiB in {options.output}")
    print(f"there: python3 -m pip install --no-index --no-deps --target DIR {options.output}/*.whl")


if __name__ == "__main__":
    main()
