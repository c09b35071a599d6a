"""A finding as a short Python file that shows the failure with torch and the kernel alone, to be put in a bug report.

The file holds the failing inputs as formulas or bytes (``script_tensors.py``), loads kernel and reference from where
they lie (or from copies at its end), compares them, and exits 1 while the kernel is wrong, 0 once it is right, 2 where
it can't tell. It judges by the error budget that Tilewright found at the failing element; its fixed parts stand in
``script_parts.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import Unsupported
from ..kernel.kernel import Kernel
from ..task.task import TaskSheet
from ..task.tensors import FLOATS, TensorSpec, evaluate
from . import compare, script_tensors
from . import script_parts as parts
from .finding import Finding, TensorRecord
from .script_native import NATIVE

LoadBlob = Callable[[str], bytes]
SOURCES = ("tilewright", "kernelbench", "functions")
CHECKS = {
    **dict.fromkeys(("forward", "backward", "interface", "values", "shapes", "strides", "special values",
                     "accumulation", "gradients", "empty", "written"), parts.CHECK_VALUES),
    **dict.fromkeys(("repeat", "determinism"), parts.CHECK_REPEATS),
    "purity": parts.CHECK_KEPT,
}  # fmt: skip
"""How a finding is checked, by the mode of its case."""
HELD = "an output that the caller still holds"
"""How purity's summary of an overwritten output begins."""
_CASTS = re.compile(r"\.float\(\)|\.half\(\)|\.bfloat16\(\)|\.to\(")
_FLAG = re.compile(r"^(?P<line>.*?)  #\? (?P<unless>!?)(?P<flag>\w+)$")
_WHERE = re.compile(r"^(?P<output>.*?)\[(?P<index>[\d, ]*)\]$")
IMPORTS = """import atexit
import base64
import ctypes
import functools
import hashlib
import importlib.util
import mmap
import os
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
import zlib

import torch
"""


def render(finding: Finding, kernel: Kernel, sheet: TaskSheet, load_blob: LoadBlob) -> str:
    """The script's text. ``load_blob(sha256) -> bytes`` reads the ledger.

    Raises Unsupported for findings that no call of the kernel alone can show (honesty, IR gates), for task sources
    other than task files, KernelBench and functions, and where the tensors were not kept.
    """
    _check(finding, sheet, kernel.language)
    if kernel.language == "cuda":
        raise Unsupported("no stand-alone script for CUDA C++", remedy=f"use `tilewright replay {finding.id}` on a machine "
                          "with a GPU")  # fmt: skip
    files = {"kernel": _texts(kernel.files, load_blob, {Path(kernel.path).name: kernel.text}),
             "problem": _texts(sheet.files, load_blob, {})}  # fmt: skip
    flags = _flags(finding, sheet, kernel.language, files["problem"])
    reference, *helpers = _reference(finding, sheet, flags)
    chosen = [
        _settings(finding, kernel, sheet, flags), _inputs(finding, load_blob), _select(parts.MAIN, flags),
        _select(parts.CHECK_HELD if HELD in finding.summary else CHECKS[finding.case.mode], flags), reference,
        NATIVE if kernel.language == "native" else _kernel(finding, sheet), *helpers, _select(parts.CALL, flags),
        parts.WIDENED if "casts" in flags else "", _select(parts.JUDGE, flags), parts.LOADING,
        _copies(files), 'if __name__ == "__main__":\n    sys.exit(main())',
    ]  # fmt: skip
    if " = unpack(" in chosen[1]:
        chosen.insert(-2, parts.UNPACK)
    body = "\n\n\n".join(p.strip("\n") for p in chosen if p)
    return f"{_title(finding, kernel, sheet)}\n{_used(IMPORTS, body, chosen[1])}\n{body}\n"


def _flags(finding: Finding, sheet: TaskSheet, language: str, problem: dict[str, tuple[str, str]]) -> set[str]:
    """What the case needs beyond the plain script."""
    case = finding.case
    tensors = [v for v in (*case.inputs.values(), *case.state.values()) if isinstance(v, TensorRecord)]
    unwritten = "nan" in finding.got and "nan" not in finding.expected
    there = {
        "grads": bool(case.cotangents), "state": bool(case.state), "budget": finding.budget is not None,
        "changed": any(isinstance(s, TensorSpec) and s.mutated for s in sheet.inputs.values()),
        "complex": any(t.dtype.startswith("complex") for t in tensors),
        "zeros": "-0" in (finding.got, finding.expected), "written": case.mode == "written" or unwritten,
        "aligned": case.mode == "strides", "triton": language == "triton", "native": language == "native",
        "sharing": case.mode == "purity" and finding.cls == "policy",
        "casts": any(_CASTS.search(text) for _, text in problem.values()),
    }  # fmt: skip
    return {flag for flag, needed in there.items() if needed}


def _select(text: str, flags: set[str]) -> str:
    """``text`` without the lines whose flag is not wanted."""
    kept = []
    for line in text.split("\n"):
        match = _FLAG.match(line)
        if match is None:
            kept.append(line)
        elif (match["flag"] in flags) != bool(match["unless"]):
            kept.append(match["line"])
    return "\n".join(kept)


def _check(finding: Finding, sheet: TaskSheet, language: str) -> None:
    remedy = f"use `tilewright replay {finding.id}`"
    if sheet.source not in SOURCES:
        raise Unsupported(f"no stand-alone script for a task from {sheet.source}", remedy=remedy)
    case = finding.case
    episode = case.options.get("extra", {}).get("episode", "inputs")
    sequence = case.mode == "purity" and episode != "inputs" and HELD not in finding.summary
    outside = language != "native" and case.mode == "written" and (
        not _WHERE.match(finding.where) or "beyond an input" in finding.summary)  # fmt: skip
    if case.mode not in CHECKS or finding.cls == "cheat" or sequence or outside:
        raise Unsupported(f"no stand-alone script for a finding of the gate '{finding.gate or case.mode}': "
                          "one call of the kernel alone can't show it", remedy=remedy)  # fmt: skip


def _used(imports: str, body: str, inputs: str) -> str:
    """The imports that ``body`` needs, and the numbers that ``inputs`` name."""
    kept = []
    for line in imports.split("\n"):
        name = line.split()[-1].split(".")[0] if line.startswith("import") else ""
        if not name or name == "torch" or re.search(rf"\b{name}\.", body):
            kept.append(line)
    numbers = [n for n in ("inf", "nan") if re.search(rf"(?<![\w.\"-]){n}\b(?!\w)", inputs)]
    if numbers:
        kept.insert(-2, f"from math import {', '.join(numbers)}")
    return "\n".join(kept)


def _title(finding: Finding, kernel: Kernel, sheet: TaskSheet) -> str:
    def plain(text: str) -> str:
        return text.replace("\\", "/").replace('"""', "'''")

    needs = "torch and triton" if kernel.language == "triton" else "torch"
    needs += " and a C compiler" if kernel.language == "native" else ""
    return f'''"""{plain(f"{Path(kernel.path).name} ({sheet.name}): {finding.summary}")}

Needs {needs}. Exit status: 1 while the kernel is wrong, 0 once it is right, 2 if this machine can't tell.

    python THIS_FILE [KERNEL_FILE [PROBLEM_FILE]]

Written by Tilewright for finding {finding.id or "(no id)"} of its gate '{plain(finding.gate or finding.case.mode)}'.
"""
'''


def _settings(finding: Finding, kernel: Kernel, sheet: TaskSheet, flags: set[str]) -> str:
    tolerance = sheet.contract.tolerance
    where = _WHERE.match(finding.where)
    output, index = (where["output"], where["index"]) if where else ("", "")
    k = compare.K if tolerance.k is None else tolerance.k
    floor = compare.FLOOR_ULPS if tolerance.floor_ulps is None else tolerance.floor_ulps
    changed = [n for n, s in sheet.inputs.items() if isinstance(s, TensorSpec) and s.mutated]
    wanted = list(finding.case.options.get("wanted", ())) if finding.case.cotangents else []
    numbers = tuple(int(i) for i in index.split(",") if i.strip())
    kept = finding.case.mode == "purity" or "changed" in flags
    lines = [
        f"KERNEL = sys.argv[1] if len(sys.argv) > 1 else {str(Path(kernel.path).absolute())!r}",
        f"PROBLEM = sys.argv[2] if len(sys.argv) > 2 else {str(Path(sheet.path).absolute())!r}",
        f"ENTRY = {kernel.entry!r}",
        'DEVICE = "cuda" if torch.cuda.is_available() else "cpu"' if kernel.language in ("triton", "cuda")
        else 'DEVICE = "cpu"',
        'if DEVICE == "cpu":\n    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported'
        if kernel.language == "triton" else "",
        f"WANTED = {wanted!r}  # inputs whose gradients are compared" if "grads" in flags else "",
        f"CHANGED_INPUTS = {changed!r}  # written in place by contract" if kept else "",
        f"OUTPUT, INDEX = {output!r}, {numbers!r}  # where it was seen",
        f"BUDGET = {finding.budget!r}  # error that rounding explains there" if "budget" in flags else "",
        f"K, FLOOR, ATOL, RTOL = {k!r}, {floor!r}, {tolerance.atol or 0.0!r}, {tolerance.rtol or 0.0!r}  # elsewhere: "
        "K times the reference's own error and FLOOR ulps",
        _native_settings(finding, sheet) if kernel.language == "native" else "",
    ]  # fmt: skip
    return "\n".join(line for line in lines if line)


def _native_settings(finding: Finding, sheet: TaskSheet) -> str:
    dims = finding.case.dims
    outputs = ", ".join(
        f"{name!r}: ({tuple(evaluate(s, dims) for s in spec.shape)!r}, "
        + ("None)" if spec.dtype_group == "main" and spec.dtypes[0] in FLOATS else f"torch.{spec.dtypes[0]})")
        for name, spec in (sheet.outputs or {}).items()
    )
    return f"OUTPUTS = {{{outputs}}}  # shape and dtype; None: the inputs'\nDIMS = {[dims[d] for d in sheet.dims]!r}"


def _inputs(finding: Finding, load_blob: LoadBlob) -> str:
    case = finding.case
    where = ", ".join([*(f"{k}={v}" for k, v in case.dims.items()), *([case.dtype] if case.dtype else [])])
    makers = (
        ("inputs", case.inputs, f"The failing inputs ({where or 'the given shape'}), in call order."),
        ("state", case.state, "Parameters, buffers and constructor arguments of the reference."),
        ("cotangents", case.cotangents, "What is multiplied into the gradients, by output."),
    )
    return "\n\n\n".join(_maker(name, values, load_blob, about) for name, values, about in makers
                         if values or name == "inputs")  # fmt: skip


def _maker(function: str, values: dict[str, Any], load_blob: LoadBlob, about: str) -> str:
    lines = [f"def {function}():", f'    """{about}"""']
    names = {}
    for i, (name, value) in enumerate(values.items()):
        if not isinstance(value, TensorRecord):
            names[name] = repr(value)
            continue
        names[name] = name if name.isidentifier() and name not in ("torch", "nan", "inf", "unpack") else f"t{i}"
        lines += ["    " + line for line in script_tensors.lines(names[name], value, load_blob)]
    return "\n".join([*lines, "    return {" + ", ".join(f"{n!r}: {v}" for n, v in names.items()) + "}"])


def _reference(finding: Finding, sheet: TaskSheet, flags: set[str]) -> list[str]:
    """The reference as a function of the named inputs, with what it needs."""
    calling = finding.case.options.get("calling", {})
    arguments = _arguments(finding)
    if sheet.source != "kernelbench":
        target = "load(PROBLEM, 'problem')." + ("TASK.reference" if sheet.source == "tilewright" else sheet.entry)
        by_name = parts.BY_NAME.replace("TARGET", target)
        made = f"def reference(given):\n    return {target}(*{arguments})" if calling.get("structure") else by_name
        return [made, parts.STAND_IN if sheet.source == "tilewright" else ""]
    init = _expression(calling["init"], "state()") if calling.get("init") else "[]"
    constants = _constants(finding, sheet)
    setting = (f"    for name, there, here in {constants!r}:  # constant, value in the file, value here\n"
               "        if getattr(problem, name, None) == there:\n"
               "            setattr(problem, name, here)\n") if constants else ""  # fmt: skip
    return [
        "def reference(given):\n    problem = load(PROBLEM, 'problem')\n" + setting
        + f"    module = build(problem.{sheet.entry})\n"
        "    wide = any(isinstance(v, torch.Tensor) and v.dtype == torch.float64 for v in given.values())\n"
        f"    return (module.double() if wide else module)(*{arguments})",
        f"SEED = {calling.get('seed', 0)!r}\n\n\ndef init():\n    return {init}", _select(parts.MODULE, flags),
    ]  # fmt: skip


def _constants(finding: Finding, sheet: TaskSheet) -> list[tuple[str, int, int]]:
    """Module-level constants of a KernelBench file that this case changes."""
    bindings = sheet.extra.get("bindings", {})
    return [(knob, sheet.given[dim], size) for dim, size in finding.case.dims.items() for knob in bindings.get(dim, ())
            if dim in sheet.given and sheet.given[dim] != size and str(knob).isidentifier()]  # fmt: skip


def _kernel(finding: Finding, sheet: TaskSheet) -> str:
    entry = "getattr(load(KERNEL, 'kernel'), ENTRY)"
    made = f"build({entry}).to(DEVICE)" if sheet.source == "kernelbench" else entry
    return f"def kernel(given):\n    return {made}(*{_arguments(finding)})"


def _arguments(finding: Finding) -> str:
    structure = finding.case.options.get("calling", {}).get("structure")
    return _expression(structure, "given") if structure else "given.values()"


def _expression(tree: dict[str, Any], source: str) -> str:
    """Python for a nested value (``task/tree.py``) whose tensors and inputs are looked up in ``source``."""
    ((kind, body),) = tree.items()
    if kind == "$":
        return f"{source}[{body!r}]"
    if kind == "list":
        return "[" + ", ".join(_expression(x, source) for x in body) + "]"
    if kind == "tuple":
        return "(" + "".join(_expression(x, source) + ", " for x in body) + ")"
    if kind == "dict":
        return "{" + ", ".join(f"{k!r}: {_expression(x, source)}" for k, x in body.items()) + "}"
    if kind == "float":
        return f"float({body!r})"
    if kind in ("dtype", "device"):
        return f"torch.{body}" if kind == "dtype" else f"torch.device({body!r})"
    if kind == "=":
        return repr(body)
    raise Unsupported(f"no stand-alone script: an argument is a {body}")


def _texts(files: dict[str, str], load_blob: LoadBlob, known: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Name → (sha256, text) of source files."""
    return {name: (sha, known[name] if name in known else load_blob(sha).decode()) for name, sha in files.items()}


def _copies(files: dict[str, dict[str, tuple[str, str]]]) -> str:
    """The sources as they were, to fall back on where the files are not at hand."""
    lines = ["# The files as they were when the failure was found: name, sha256, text.", "COPIES = {"]
    for role, texts in files.items():
        entries = ", ".join(f"{name!r}: ({sha!r}, {_quoted(text)})" for name, (sha, text) in texts.items())
        lines.append(f"{role!r}: {{{entries}}},")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    """A raw string that reads like the file, where that is exact; else ``repr``."""
    if "'''" in text or "\r" in text or "\x00" in text or text.endswith(("'", "\\")):
        return repr(text)
    return f"r'''{text}'''"
