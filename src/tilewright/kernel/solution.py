"""A flashinfer-bench Solution (JSON) as a kernel: its sources are written out, then read like any other kernel."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath

import platformdirs

from ..errors import KernelError
from .kernel import Kernel
from .kernel import read as read_kernel


def read_solution(path: Path) -> Kernel:
    """A Solution as a kernel; its sources are written below the user's cache folder, under the hash of the Solution."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    folder = Path(platformdirs.user_cache_dir("tilewright")) / "solutions" / digest
    kernel, destination = solution_to_kernel(path, folder)
    return kernel.model_copy(update={"destination": destination})


def solution_to_kernel(path: Path, folder: Path) -> tuple[Kernel, bool]:
    """A Solution's sources, written below ``folder``, as a kernel; and whether it takes its outputs as arguments.

    Raises KernelError for a solution that is not lawful or has paths that lead out of the folder.
    """
    try:
        data = json.loads(path.read_text())
        entry, sources, spec = data["spec"]["entry_point"], data["sources"], data["spec"]
        file, _, symbol = entry.partition("::")
    except (ValueError, KeyError, TypeError, OSError) as e:
        raise KernelError(f"not a solution: {type(e).__name__}: {e}", where=str(path)) from None
    files = {}
    for source in sources:
        relative = PurePosixPath(source["path"])
        if relative.is_absolute() or ".." in relative.parts:
            raise KernelError(f"source path '{relative}' leads out of the solution", where=str(path))
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source["content"])
        files[str(relative)] = hashlib.sha256(source["content"].encode()).hexdigest()
    if file not in files:
        raise KernelError(f"entry file '{file}' is not among the sources: {', '.join(files)}", where=str(path))
    language = {"triton": "triton", "cuda": "cuda", "cpp": "cuda"}.get(spec.get("language", ""))
    made = read_kernel(f"{folder / file}::{symbol}", language)
    destination = bool(spec.get("destination_passing_style", True))
    return made.model_copy(update={"files": files, "entry": symbol}), destination
