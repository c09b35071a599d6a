"""A launch compiled down to the target's machine code: what only that tells. No GPU is needed: ptxas comes with Triton.

Registers and spills are read from the cubin (``cuobjdump --dump-resource-usage``), shared memory and warps from
Triton's metadata, widths of memory instructions and tensor core instructions from the PTX, by source line.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from ...errors import TilewrightError
from ...ir import index
from ...ir.arguments import Arg
from ...ir.compile import Compiled, binary
from ...ir.index import Filled

TOOL_SECONDS = 20.0
SECTORS_S = 2.0
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:.*)$')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_ACCESS = re.compile(r"\b(ld|st|red|atom)\.(?:[\w:]+\.)*?global((?:[.:]+\w+)*)")
_TENSOR = re.compile(r"\b(wgmma\.mma_async|mma\.sync|tcgen05\.mma)\b")
_COPY = re.compile(r"\bcp\.async(?:\.bulk)?[\w.:]*\s*(?:\[[^\]]*\]\s*,\s*\[[^\]]*\]\s*,\s*(0x[0-9a-f]+|\d+))?")


def describe(compiled: Compiled) -> dict[str, Any]:
    """``registers`` a thread, ``spills`` in bytes a thread (local memory), ``shared`` in bytes a program, ``warps``,
    ``stages``, ``instructions``: [file:line, kind, bytes a thread] with how often, ``tensor``: tensor core instructions
    by kind."""
    made = binary(compiled)
    usage = _usage(made.asm["cubin"])
    instructions, tensor = _ptx(made.asm["ptx"])
    meta = made.metadata
    return {
        "registers": usage.get("REG", 0),
        "spills": usage.get("LOCAL", 0) + usage.get("STACK", 0),
        "shared": int(meta.shared),
        "warps": int(meta.num_warps),
        "stages": int(meta.num_stages),
        "ctas": int(getattr(meta, "num_ctas", 1)),
        "instructions": [[*key, n] for key, n in instructions.items()],
        "tensor": dict(tensor),
        "target": "sm_" + str(compiled.target[1]),
    }


def _usage(cubin: bytes) -> dict[str, int]:
    """REG, STACK, SHARED, LOCAL of the kernel."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        f.write(cubin)
        f.flush()
        done = subprocess.run(
            [str(tool), "--dump-resource-usage", f.name],
            capture_output=True,
            text=True,
            timeout=TOOL_SECONDS,
            check=True,
        )
    return {k: int(v) for k, v in re.findall(r"\b(REG|STACK|SHARED|LOCAL):(\d+)", done.stdout)}


def _ptx(text: str) -> tuple[Counter[tuple[str, str, int]], Counter[str]]:
    """Global memory instructions by source line, and tensor core instructions."""
    files, at = {}, ""
    found: Counter[tuple[str, str, int]] = Counter()
    tensor: Counter[str] = Counter()
    for line in text.splitlines():
        if m := _FILE.match(line):
            files[m[1]] = Path(m[2]).name
    asm = False  # within inline assembly each line of the text is counted as a line of the source
    for line in text.splitlines():
        if "inline asm" in line:
            asm = "begin" in line
        elif m := None if asm else _LOC.match(line):
            at = f"{files.get(m[1], '?')}:{m[2]}"
        elif m := _ACCESS.search(line):
            kind = {"ld": "load", "st": "store"}.get(m[1], "atomic")
            found[at, kind, _width(m[2])] += 1
        elif m := _TENSOR.search(line):
            tensor[m[1]] += 1
        elif "cp.async" in line and "global" in line and (m := _COPY.search(line)):
            found[at, "copy", int(m[1], 0) if m[1] else 0] += 1
    return found, tensor


def _width(suffixes: str) -> int:
    """Bytes that a thread moves: ``.v4.b32`` → 16."""
    count = re.search(r"\.v(\d+)", suffixes)
    bits = re.search(r"\.[bfsu](?:f)?(\d+)", suffixes)
    return (int(count[1]) if count else 1) * (int(bits[1]) if bits else 0) // 8


def sectors(fn: Any, grid: list[int], arguments: dict[str, Any]) -> list[list[Any]]:
    """[line, kind, 32-byte sectors, bytes used of them, step] of what one program touches; empty if unknown."""
    flat = {
        n: Arg(Filled(v.untyped_storage().nbytes() // v.element_size(), v.dtype), int(v.storage_offset()), v.dtype)
        if isinstance(v, torch.Tensor)
        else v
        for n, v in arguments.items()
    }
    x, y, z = (int(g) for g in (*grid, 1, 1)[:3])
    try:
        found = index.sectors(fn, (x, y, z), flat, SECTORS_S)
    except TilewrightError:
        return []
    return [[*key, *totals] for key, totals in found.items()]
