"""What a child compiled, handed to later children of the same kernel, so that each need not compile again.

Files travel as bytes through the parent, never through a shared folder. They come from the candidate's process and go to
the candidate's processes alone. What a candidate could leave there for itself are results of earlier calls; each
case has other values, so that gains it nothing in a check.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy
import torch

from ..child.transport import Bundle

MOST_BYTES = 192 << 20
SKIPPED = (".lock", ".tmp")


def folder() -> Path:
    """The scratch folder of this child."""
    return Path(os.environ.get("TRITON_CACHE_DIR", os.environ.get("TMPDIR", "/nonexistent")))


def collect() -> Bundle:
    """All files below the scratch folder, by relative path."""
    found: dict[str, torch.Tensor] = {}
    total = 0
    for path in sorted(folder().rglob("*")) if folder().is_dir() else ():
        if not path.is_file() or path.is_symlink() or not wanted(path.relative_to(folder())):
            continue
        data = path.read_bytes()
        total += len(data)
        if data and total <= MOST_BYTES:
            found[str(path.relative_to(folder()))] = torch.from_numpy(numpy.frombuffer(data, dtype=numpy.uint8).copy())
    return Bundle.pack(found)


def wanted(path: Path) -> bool:
    """Whether a file is worth keeping: no lock, nothing half written, no object file of a build."""
    return not (path.name.endswith(SKIPPED) or "tmp." in path.name or {"build", "job"} & set(path.parts))


def restore(bundle: Bundle) -> None:
    """Write the files again, executable, below this child's scratch folder."""
    for name, t in bundle.tensors(copy=True).items():
        path = folder() / name
        if ".." in Path(name).parts or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(t.numpy().tobytes())
        path.chmod(0o755)
