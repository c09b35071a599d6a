"""How a ``.cu`` file says that its kernels are launched: TOML in a comment that begins with ``tilewright``.

    /* tilewright
    [[launch]]
    kernel = "row_sum"                      # extern "C" __global__; {dtype} stands for float32, float16, …
    grid = ["(M + 3) // 4"]                 # integer expressions over the task's dims
    block = [128]
    shared = "4 * 128"                      # bytes of dynamic shared memory; 0 if left out
    arguments = ["x", "y", "int M", "int N"]

    [buffers]                               # scratch between launches, if any: fresh and not zeroed
    partial = { shape = ["M"], dtype = "float32" }
    */

``arguments`` are names of the task's inputs and outputs, buffers, dims and scalars, in the kernel's order; a number may have
its C type before it (``int``, ``unsigned``, ``long long``, ``float``, ``double``). Left out: all inputs, all outputs, all
scalars (``double`` or ``long long``), all dims (``long long``). Launches run in the order in which they stand.
"""

from __future__ import annotations

import ctypes
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from ...errors import KernelError

COMMENT = re.compile(r"/\*\s*tilewright\b(.*?)\*/", re.S)
GLOBAL = re.compile(r"extern\s+\"C\"\s+(?:static\s+)?__global__[^;{(]*?\b(\w+)\s*\(")
TYPES: dict[str, Any] = {
    "int": ctypes.c_int32, "unsigned": ctypes.c_uint32, "unsigned int": ctypes.c_uint32, "long": ctypes.c_int64,
    "long long": ctypes.c_int64, "int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "size_t": ctypes.c_uint64,
    "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip
KEYS = {"kernel", "grid", "block", "shared", "arguments"}


@dataclass(frozen=True)
class Launch:
    """One launch. ``arguments``: (C type or "", name); None: the convention's."""

    kernel: str
    grid: tuple[str | int, ...]
    block: tuple[str | int, ...]
    shared: str | int = 0
    arguments: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class Plan:
    """All launches of a call, and the scratch buffers between them (name to shape and dtype)."""

    launches: tuple[Launch, ...]
    buffers: dict[str, dict[str, Any]] = field(default_factory=dict)


def plan(text: str, path: str) -> Plan:
    """The plan of a ``.cu`` file. Raises KernelError with the line of the comment."""
    found = COMMENT.search(text)
    if found is None:
        raise KernelError(
            "the file does not say how its kernel is launched", where=f"{path}:1",
            remedy="begin it with a comment: /* tilewright [[launch]] kernel = \"name\" grid = [\"M\"] block = [256] */ "
            "(docs/cuda.md)",
        )  # fmt: skip
    line = text.count("\n", 0, found.start()) + 1
    try:
        given = tomllib.loads(found[1])
    except tomllib.TOMLDecodeError as e:
        raise KernelError(f"the launch comment is no TOML: {e}", where=f"{path}:{line}") from None
    launches = given.get("launch", [])
    if not isinstance(launches, list) or not launches:
        raise KernelError("the launch comment has no [[launch]]", where=f"{path}:{line}")
    names = GLOBAL.findall(text)
    return Plan(tuple(_launch(x, names, f"{path}:{line}") for x in launches), dict(given.get("buffers", {})))


def _launch(given: dict[str, Any], names: list[str], where: str) -> Launch:
    if unknown := set(given) - KEYS:
        raise KernelError(f"[[launch]] has an unknown key '{sorted(unknown)[0]}'", where=where,
                          remedy=f"known: {', '.join(sorted(KEYS))}")  # fmt: skip
    kernel = str(given.get("kernel", names[0] if len(names) == 1 else ""))
    if not kernel:
        raise KernelError(f"[[launch]] names no kernel, and the file has {len(names)} of them", where=where,
                          remedy='kernel = "NAME" of an extern "C" __global__ function')  # fmt: skip
    if "{dtype}" not in kernel and kernel not in names:
        raise KernelError(f"the file defines no extern \"C\" __global__ function '{kernel}'", where=where,
                          remedy=f"it defines {', '.join(names) or 'none'}")  # fmt: skip
    arguments = tuple(_argument(str(a), where) for a in given["arguments"]) if "arguments" in given else None
    grid, block = _sizes(given, "grid", where), _sizes(given, "block", where)
    return Launch(kernel, grid, block, given.get("shared", 0), arguments)


def _sizes(given: dict[str, Any], key: str, where: str) -> tuple[str | int, ...]:
    value = given.get(key)
    if not isinstance(value, list) or not 1 <= len(value) <= 3:
        raise KernelError(f"[[launch]] needs {key} = [x, y, z] with one to three sizes", where=where)
    return tuple(value)


def _argument(word: str, where: str) -> tuple[str, str]:
    kind, _, name = word.rpartition(" ")
    if kind and kind not in TYPES:
        raise KernelError(f"argument '{word}' has the unknown type '{kind}'", where=where,
                          remedy=f"known: {', '.join(TYPES)}")  # fmt: skip
    return kind, name
