"""Device sources of a kernel file: the file itself, or what a Python file hands to torch's and CuPy's compilers.

A Python file is run with the compiling functions replaced by ones that note their arguments and give back a stand-in that
refuses to be called. So strings that the file puts together are seen as they are.
"""

from __future__ import annotations

import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._python import run_file

HOST = re.compile(
    r"\b(torch|at|c10|PYBIND11_MODULE|TORCH_LIBRARY\w*|py)\b(::|\()|<<<|#\s*include\s*[<\"](torch|ATen|c10|pybind11)"
)
DEVICE = re.compile(r"\b(__global__|__device__|__constant__|__shared__)\b")


@dataclass
class Source:
    """Device code. ``line``: of the file, where ``text`` begins (1-based; 0: put together at run time)."""

    text: str
    line: int
    how: str
    flags: tuple[str, ...] = ()


class NeedsDevice(RuntimeError):
    """A compiled kernel is called where nothing can run it."""

    tilewright_kind = "unsupported"


def of_file(path: Path, text: str) -> list[Source]:
    """All device sources of a file."""
    if path.suffix != ".py":
        return [Source(text, 1, "file")]
    found: list[Source] = []
    note(found, text)
    run_file(str(path), text)
    return found


def note(found: list[Source], text: str) -> None:
    """Replace the compiling functions of this process by ones that note what they are given."""
    from torch.utils import cpp_extension

    def load_inline(name: str, cpp_sources: Any = "", cuda_sources: Any = None, *args: Any, **kwargs: Any) -> Any:
        for source in [cuda_sources] if isinstance(cuda_sources, str) else cuda_sources or []:
            found.append(Source(device_part(source), begins(source, text), "load_inline"))
        return StandIn(name)

    def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> Any:
        for file in [sources] if isinstance(sources, str | Path) else sources:
            if Path(file).suffix in (".cu", ".cuh"):
                found.append(Source(device_part(Path(file).read_text()), 0, "load"))
        return StandIn(name)

    def plain(source: str, *args: Any, **kwargs: Any) -> Any:
        found.append(Source(source, begins(source, text), "nvrtc"))
        return StandIn("kernel")

    cpp_extension.load_inline, cpp_extension.load = load_inline, load  # type: ignore[assignment]
    import torch

    torch.cuda._compile_kernel = plain  # type: ignore[attr-defined,assignment,unused-ignore]
    sys.modules["cupy"] = types.ModuleType("cupy")
    sys.modules["cupy"].RawKernel = sys.modules["cupy"].RawModule = plain  # type: ignore[attr-defined]


class StandIn:
    """In place of a compiled module or kernel."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NeedsDevice(f"'{self._name}' is CUDA C++, which needs a GPU to run")

    def __getitem__(self, item: Any) -> Any:
        return self


def begins(source: str, text: str) -> int:
    """Line of the file on which a source string begins; 0 where it stands nowhere as it is."""
    at = text.find(source.strip("\n")) if source.strip() else -1
    lead = len(source) - len(source.lstrip("\n"))
    return text.count("\n", 0, at) + 1 - lead if at >= 0 else 0


def device_part(source: str) -> str:
    """The source with host code blanked out, line by line: declarations that speak of torch or launch kernels."""
    return "".join(piece if _keeps(piece) else re.sub(r"[^\n]", " ", piece) for piece in pieces(source))


def _keeps(piece: str) -> bool:
    return bool(DEVICE.search(piece) and "<<<" not in piece) or not HOST.search(_bare(piece))


def _bare(piece: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", piece, flags=re.S)


def pieces(source: str) -> list[str]:
    """Top-level pieces of a translation unit: preprocessor lines, and declarations up to their ``;`` or ``}``."""
    out, start, at, depth = [], 0, 0, 0
    while at < len(source):
        skipped = _skip(source, at)
        if skipped > at:
            at = skipped
            continue
        c = source[at]
        if c == "#" and depth == 0 and not source[start:at].strip():
            at = _line_end(source, at)
            out.append(source[start:at])
            start = at
            continue
        depth += (c in "{(") - (c in "})")
        at += 1
        if depth == 0 and (c == ";" or (c == "}" and not _goes_on(source, at))):
            out.append(source[start:at])
            start = at
    return [*out, source[start:]]


def _skip(source: str, at: int) -> int:
    """Past a comment or a literal that begins here."""
    for begin, end in (("//", "\n"), ("/*", "*/")):
        if source.startswith(begin, at):
            stop = source.find(end, at + 2)
            return len(source) if stop < 0 else stop + (len(end) if end == "*/" else 0)
    if source[at] in "\"'" and not (source[at] == "'" and at and source[at - 1].isdigit()):
        m = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.S).match(source, at)
        return m.end() if m else at
    return at


def _line_end(source: str, at: int) -> int:
    """Past a preprocessor line, its continuations included."""
    while True:
        stop = source.find("\n", at)
        if stop < 0:
            return len(source)
        if source[stop - 1] != "\\":
            return stop
        at = stop + 1


def _goes_on(source: str, at: int) -> bool:
    """Whether a ``;`` follows a closing brace (a struct, an initialiser)."""
    return source[at:].lstrip().startswith(";")
