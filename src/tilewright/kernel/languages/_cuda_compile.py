"""CUDA C++ to machine code for a target: by nvcc where there is one, else by NVRTC and ptxas.

NVRTC comes with torch's CUDA builds or as the wheel ``nvidia-cuda-nvrtc`` (extra ``cuda``); ptxas and the headers ship
with Triton. What a kernel needs (registers, spills, shared memory, stack) is ptxas's own account.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import EnvironmentProblem
from . import _cuda_prelude

TARGETS = ("sm_80", "sm_90", "sm_100")
STANDARD = "-std=c++17"
NVRTC_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
MESSAGE = re.compile(
    r"^(?P<file>[^\s(][^(]*)\((?P<line>\d+)\):\s+(?P<kind>error|warning|catastrophic error)[^:]*:\s*(?P<text>.*)$"
)
COMPILING = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<target>[^']+)'")
PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
STACK = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
USED = re.compile(r"Used (?P<registers>\d+) registers")
SHARED = re.compile(r"(?P<shared>\d+) bytes smem")


@dataclass
class Message:
    """A compiler's words about a line (counted in the source that it was given)."""

    line: int
    text: str
    kind: str = "error"
    file: str = ""


@dataclass
class Needs:
    """What one kernel needs: registers a thread, bytes of shared memory a block, of stack and of spills a thread."""

    registers: int = 0
    shared: int = 0
    stack: int = 0
    spills: int = 0


@dataclass
class Made:
    """What compiling gave. ``ok`` is False with at least one message."""

    ok: bool
    target: str
    compiler: str
    cubin: bytes = b""
    messages: list[Message] = field(default_factory=list)
    kernels: dict[str, Needs] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """As data, without the machine code."""
        return {"ok": self.ok, "target": self.target, "compiler": self.compiler,
                "messages": [vars(m) for m in self.messages],
                "kernels": {n: vars(k) for n, k in self.kernels.items()}}  # fmt: skip


def compile_source(text: str, name: str, target: str, flags: tuple[str, ...] = ()) -> Made:
    """Machine code of ``text`` (named ``name`` in messages). Raises EnvironmentProblem where there is no compiler."""
    if os.environ.get("TILEWRIGHT_NVRTC") != "1" and (nvcc := shutil.which("nvcc")):
        return _by_nvcc(nvcc, text, name, target, flags)
    return _by_nvrtc(text, name, target, flags)


def known_target(target: str) -> str:
    """``sm_90`` from a device's capability (9, 0) or from itself."""
    return target if target.startswith("sm_") else "sm_" + target.replace(".", "")


# ------------------------------------------------------------------------------------------------------------ nvcc


def _by_nvcc(nvcc: str, text: str, name: str, target: str, flags: tuple[str, ...]) -> Made:
    with tempfile.TemporaryDirectory(prefix="tw-cuda-") as folder:
        source, out = Path(folder, name if name.endswith(".cu") else f"{name}.cu"), Path(folder, "out.cubin")
        source.write_text(text)
        command = [nvcc, "-cubin", f"-arch={target}", STANDARD, "-Xptxas", "-v", *flags, source.name, "-o", out.name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        said = done.stdout + done.stderr
        made = Made(done.returncode == 0, target, "nvcc", messages=messages(said), kernels=needs(said))
        if made.ok:
            made.cubin = out.read_bytes()
        elif not any("error" in m.kind for m in made.messages):
            made.messages.append(Message(0, _told(said)))
        return made


def _told(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("ptxas info")]
    return " / ".join(lines[:3])[:500] or "the compiler failed without a word"


# ----------------------------------------------------------------------------------------------------------- NVRTC


@functools.cache
def nvrtc() -> Any:
    """The library. Raises EnvironmentProblem where there is none."""
    for path in (*_nvrtc_files(), *NVRTC_NAMES):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise EnvironmentProblem(
        "no compiler for CUDA C++ on this machine (neither nvcc nor NVRTC)",
        remedy="install the extra: pip install 'tilewright[cuda]'",
    )


def _nvrtc_files() -> list[str]:
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    return sorted(str(f) for r in roots for f in Path(r).glob("*/lib/libnvrtc.so*")) + sorted(
        str(f) for r in roots for f in Path(r).glob("*/lib/**/libnvrtc.so*"))  # fmt: skip


@functools.cache
def include_folders() -> tuple[str, ...]:
    """Folders of CUDA's headers: the toolkit's, the wheels', Triton's, each with its C++ library."""
    found = [Path(h) / "include" for h in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if h]
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        found += sorted(Path(root).glob("*/include"))
    if (triton := importlib.util.find_spec("triton")) and triton.origin:
        found.append(Path(triton.origin).parent / "backends" / "nvidia" / "include")
    return tuple(str(f) for base in found for f in (base, base / "cccl") if f.is_dir())


@functools.cache
def ptxas() -> str:
    """The assembler. Raises EnvironmentProblem where there is none."""
    spec = importlib.util.find_spec("triton")
    own = [Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"] if spec and spec.origin else []
    for path in (shutil.which("ptxas"), *map(str, own)):
        if path and os.access(path, os.X_OK):
            return path
    raise EnvironmentProblem("no ptxas on this machine", remedy="install triton, which ships it, or a CUDA toolkit")


def _by_nvrtc(text: str, name: str, target: str, flags: tuple[str, ...]) -> Made:
    """Source to PTX by NVRTC, PTX to machine code by ptxas, which tells what kernels need."""
    arch = target.replace("sm_", "compute_")
    options = [f"--gpu-architecture={arch}", STANDARD, "-default-device",
               *(f"-I{f}" for f in include_folders()), *flags]  # fmt: skip
    code, ptx, log = _translate(text, name, options)
    made = Made(code == 0, target, "nvrtc", messages=messages(log))
    if not made.ok:
        if not any("error" in m.kind for m in made.messages):
            made.messages.append(Message(0, _told(log)))
        return made
    return _assemble(made, ptx, flags)


def _translate(text: str, name: str, options: list[str]) -> tuple[int, bytes, str]:
    library = nvrtc()
    program = ctypes.c_void_p()
    extra = _cuda_prelude.headers()
    names, texts = ((ctypes.c_char_p * len(extra))(*(s.encode() for s in part)) for part in (extra, extra.values()))
    options = [f"--pre-include={_cuda_prelude.NAME}", *options]
    code = library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), len(extra), texts, names)
    _checked(code)
    try:
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        code = library.nvrtcCompileProgram(program, len(options), given)
        log = _text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
        ptx = _text(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program) if code == 0 else b""
        return code, ptx, log.decode(errors="replace").rstrip("\0")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _checked(code: int) -> None:
    if code:
        raise EnvironmentProblem(f"NVRTC failed with status {code}", remedy="see whether its version fits the driver")


def _text(size: Any, get: Any, program: Any) -> bytes:
    n = ctypes.c_size_t()
    size(program, ctypes.byref(n))
    buffer = ctypes.create_string_buffer(max(n.value, 1))
    get(program, buffer)
    return buffer.raw[: n.value]


def _assemble(made: Made, ptx: bytes, flags: tuple[str, ...]) -> Made:
    with tempfile.TemporaryDirectory(prefix="tw-cuda-") as folder:
        source, out = Path(folder, "in.ptx"), Path(folder, "out.cubin")
        source.write_bytes(lowered(ptx).rstrip(b"\0"))
        command = [
            ptxas(),
            "-v",
            *(f for f in flags if f == "-lineinfo"),
            f"-arch={made.target}",
            str(source),
            "-o",
            str(out),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.stdout + done.stderr
        made.kernels, made.ok = needs(said), done.returncode == 0
        if made.ok:
            made.cubin = out.read_bytes()
        else:
            made.messages.append(Message(0, _told(said).replace(str(source), "PTX")))
        return made


@functools.cache
def _ptx_version() -> tuple[int, int] | None:
    """The newest PTX that our ptxas reads, by its release: 12.8 reads 8.7, 13.0 reads 9.0, and so on."""
    said = subprocess.run([ptxas(), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"release (\d+)\.(\d+)", said)
    if not found:
        return None
    major, minor = int(found[1]), int(found[2])
    return (9, minor) if major == 13 else (8, minor if minor < 9 else minor - 1) if major == 12 else None


def lowered(ptx: bytes) -> bytes:
    """PTX that says of itself no newer version than our ptxas reads; an instruction that is newer is then refused."""
    newest, found = _ptx_version(), re.search(rb"\.version (\d+)\.(\d+)", ptx)
    if newest is None or found is None or (int(found[1]), int(found[2])) <= newest:
        return ptx
    return ptx.replace(found[0], b".version %d.%d" % newest, 1)


# ----------------------------------------------------------------------------------------------- what compilers say


def messages(said: str) -> list[Message]:
    """Errors and warnings with their lines."""
    found = [m for line in said.splitlines() if (m := MESSAGE.match(line.strip()))]
    return [Message(int(m["line"]), m["text"].strip(), m["kind"], Path(m["file"]).name) for m in found]


def needs(said: str) -> dict[str, Needs]:
    """By kernel, from ``ptxas -v``."""
    found: dict[str, Needs] = {}
    current: Needs | None = None
    entry = False
    for line in said.splitlines():
        if m := COMPILING.search(line):
            current, entry = found.setdefault(readable(m["name"]), Needs()), True
        elif (m := PROPERTIES.search(line)) and readable(m["name"]) not in found:
            entry = False  # a function that a kernel calls
        elif current is not None and entry and (m := STACK.search(line)):
            current.stack, current.spills = int(m["stack"]), int(m["stores"]) + int(m["loads"])
        elif current is not None and (m := USED.search(line)):
            current.registers = int(m["registers"])
            current.shared = int(s["shared"]) if (s := SHARED.search(line)) else 0
    return found


def readable(name: str) -> str:
    """A kernel's name without C++ decoration, as far as it is a plain one."""
    if not name.startswith("_Z"):
        return name
    rest, last = name[2:].lstrip("N").lstrip("L"), name
    while m := re.match(r"\d+", rest):  # namespaces before the name itself
        size = int(m[0])
        last, rest = rest[m.end() : m.end() + size], rest[m.end() + size :]
        if not name.startswith("_ZN"):
            break
    return last
