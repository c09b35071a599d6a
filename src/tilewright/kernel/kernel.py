"""Kernel: candidate source with language and entry. Reading it runs none of it."""

from __future__ import annotations

import ast
import difflib
import hashlib
from pathlib import Path

from ..errors import KernelError
from ..task.syntax import parse, shown
from ..task.tensors import Model

CUDA_COMPILERS = ("load_inline", "cpp_extension", "_compile_kernel(", "RawKernel(", "RawModule(")
ENTRIES = ("ModelNew", "custom_kernel", "kernel", "run", "candidate", "forward")


class Kernel(Model):
    """``files`` maps each file (name relative to the entry file) to its sha256; ``path`` is the entry file.
    ``destination``: it takes its outputs as further arguments (flashinfer-bench)."""

    path: str
    language: str
    entry: str
    files: dict[str, str]
    text: str
    destination: bool = False

    @property
    def raw(self) -> bool:
        """Whether it takes contiguous buffers and plain numbers, as C does: no module, no gradients of its own."""
        return self.language == "native" or self.path.endswith((".cu", ".cuh"))

    def sha256(self) -> str:
        """Identity over all files, entry and language."""
        key = "\n".join(f"{n} {h}" for n, h in sorted(self.files.items())) + f"\n{self.language}::{self.entry}"
        return hashlib.sha256(key.encode()).hexdigest()


def read(spec: str, language: str | None = None) -> Kernel:
    """Kernel from ``file``, ``file::entry``, or a flashinfer-bench Solution (``.json``).

    Raises KernelError for a missing or unreadable file, a syntax error, or no entry point.
    """
    name, _, entry = spec.partition("::")
    path = Path(name)
    if path.is_dir():
        raise KernelError(f"kernel '{name}' is a folder", detail=_kernels_in(path),
                          remedy=f"name one file in it, or check them all: tilewright audit {name}")  # fmt: skip
    if not path.is_file():
        raise KernelError(
            f"kernel file '{name}' does not exist", remedy="check the path; a kernel is FILE or FILE::ENTRY"
        )
    if path.suffix == ".json":
        from .solution import read_solution

        return read_solution(path)
    raw = path.read_bytes()
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        raise KernelError(f"kernel file '{name}' is not UTF-8 text (byte {e.start})") from None
    language = language or detect(path, text)
    if path.suffix == ".py":
        entry = _named(path, text, entry) if entry else _python_entry(path, text)
    return Kernel(path=str(path), language=language, entry=entry or "kernel",
                  files={path.name: hashlib.sha256(raw).hexdigest()}, text=text)  # fmt: skip


def _kernels_in(folder: Path) -> str | None:
    """The files of a folder that may be kernels, for a message."""
    found = sorted(p.name for p in folder.iterdir() if p.suffix in (".py", ".c", ".cu", ".json"))
    return f"it holds {', '.join(found[:6])}{', …' if len(found) > 6 else ''}" if found else "it holds no kernel file"


def detect(path: Path, text: str) -> str:
    """Language of a source file: by suffix, then by what a Python file imports."""
    if path.suffix in (".c", ".h"):
        return "native"
    if path.suffix in (".cu", ".cuh"):
        return "cuda"
    if path.suffix != ".py":
        raise KernelError(f"{path.name}: no language for files ending in '{path.suffix}'", remedy="use .py, .c or .cu")
    imports = {a.name.split(".")[0] for n in ast.walk(_parse(path, text)) if isinstance(n, ast.Import) for a in n.names}
    imports |= {n.module.split(".")[0] for n in ast.walk(_parse(path, text))
                if isinstance(n, ast.ImportFrom) and n.module}  # fmt: skip
    if any(word in text for word in CUDA_COMPILERS):
        return "cuda"
    return "triton" if "triton" in imports else "torch"


def _parse(path: Path, text: str) -> ast.Module:
    try:
        return parse(text, filename=str(path))
    except SyntaxError as e:
        raise KernelError(f"syntax error: {e.msg}", where=f"{path}:{e.lineno}", detail=shown(e),
                          remedy="repair that line of the kernel file") from None  # fmt: skip
    except ValueError as e:  # a null byte
        raise KernelError(f"kernel file '{path}' is no Python source: {e}") from None


def _named(path: Path, text: str, entry: str) -> str:
    """``entry`` if the file may define it; a star import may bring any name."""
    names: set[str] = set()
    for node in ast.walk(_parse(path, text)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {a.asname or a.name for a in aliases}
    if entry in names or "*" in names:
        return entry
    near = difflib.get_close_matches(entry, names, 1)
    raise KernelError(
        f"{path.name} defines no '{entry}'",
        where=str(path),
        remedy=f"did you mean {path.name}::{near[0]}?" if near else f"check the name behind {path.name}::",
    )


def _python_entry(path: Path, text: str) -> str:
    """Name of the entry point: a well-known name, or the only public function that is no device function."""
    tree = _parse(path, text)
    defined = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    assigned = [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    names = [n.name for n in defined] + assigned
    for known in ENTRIES:
        if known in names:
            return known
    public = [
        n.name
        for n in defined
        if isinstance(n, ast.FunctionDef)
        and not n.name.startswith("_")
        and not any("jit" in ast.unparse(d) or "autotune" in ast.unparse(d) for d in n.decorator_list)
    ]
    if len(public) == 1:
        return public[0]
    raise KernelError(
        f"{path.name} has no entry point: none of {', '.join(ENTRIES)}"
        + (f", and {len(public)} public functions ({', '.join(public[:5])})" if public else ""),
        where=str(path), remedy=f"name one: {path.name}::FUNCTION",
    )  # fmt: skip
