"""NVIDIA's compute-sanitizer around one call of a kernel, in a sealed child, and what its report says in our words."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..child.transport import Bundle
from . import alone, files

TOOLS = ("memcheck", "racecheck", "initcheck")
SECONDS = 150.0
PLACES = ("/usr/local/cuda/bin/compute-sanitizer", "/opt/cuda/bin/compute-sanitizer")
HEADS = re.compile(
    r"(Invalid|Misaligned|Uninitialized|Out-of-range|Race reported|Error: Race reported|Barrier error)[^\n]*"
)
AT = re.compile(r"\bat (?:(?P<place>[^\n]*?/)?(?P<file>[\w.+-]+):(?P<line>\d+):)?(?P<name>[^\n+]+?)\+0x[0-9a-f]+"
                r"(?: in (?P<path>[^\n]*?):(?P<at>\d+))?\s*$", re.M)  # fmt: skip
FOREIGN = ("at::native", "at_cuda", "cublas", "cutlass", "cudnn", "thrust::", "cub::", "gemm", "vectorized_elementwise")
FAILED = re.compile(r"========= (?:Internal|Fatal|Error: (?!Race)|Target application terminated|Device not supported)[^\n]*"
                    r"|========= Warning: Unable[^\n]*")  # fmt: skip
PATHS = tuple(sys.path)  # as it was before a candidate ran


@dataclass
class Seen:
    """One thing that the tool found: its words, the kernel, and the place in a source file."""

    words: str
    kernel: str
    where: str


def tool() -> str | None:
    """The program, or None."""
    return shutil.which("compute-sanitizer") or next((p for p in PLACES if os.access(p, os.X_OK)), None)


def run(head: dict[str, Any], bundles: list[Bundle]) -> dict[str, Any]:
    """In the child: write the job, run the tool over it, give back its report."""
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / "job"
    if len(bundles) > 2:
        files.restore(bundles[2])
    alone.write(folder, head, bundles[:2])
    log = folder / "report.txt"
    begin = f"import sys; sys.path[:] = {list(PATHS)!r}"
    code = f"{begin}; from tilewright.prove.device.alone import main; main({str(folder)!r})"
    command = [head["program"], "--tool", head["tool"], "--log-file", str(log), "--print-limit", "20",
               sys.executable, "-c", code]  # fmt: skip
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "CUDA_MODULE_LOADING": "LAZY"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
        said, status = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        said, status = f"no end within {SECONDS:g} s", -1
    report = log.read_text(errors="replace") if log.is_file() else ""
    return {"report": report[-200_000:], "said": said[-4000:], "status": status}


def parse(report: str) -> list[Seen]:
    """What a report says of kernels that are not torch's or a vendor library's."""
    found = []
    for block in re.split(r"^========= ?$", report, flags=re.M):
        text = "\n".join(line.removeprefix("=========").strip() for line in block.splitlines())
        first = HEADS.search(text)
        if first is None:
            continue
        at = AT.search(text)
        name = (at["name"].strip() if at else "").removeprefix("void ").partition("(")[0]
        if any(f in text for f in FOREIGN):
            continue
        place = f"{Path(at['path']).name}:{at['at']}" if at and at["path"] else (
            f"{at['file']}:{at['line']}" if at and at["file"] else "")  # fmt: skip
        found.append(Seen(words(first[0]), name, place))
    return found


def words(line: str) -> str:
    """A report's line as the middle of a sentence."""
    line = re.sub(r"\s+at\s.*$", "", line.strip().removeprefix("Error: "))
    return line[:1].lower() + line[1:]


def broken(answer: dict[str, Any]) -> str:
    """Why the tool said nothing of worth; empty if it did its work."""
    if "ERROR SUMMARY" in answer["report"] or "SUMMARY:" in answer["report"]:
        if "called" in answer["said"] or parse(answer["report"]):
            return ""
        last = [line for line in answer["said"].splitlines() if line.strip()]
        return f"the call ended without a result: {last[-1] if last else 'no word'}"
    found = FAILED.search(answer["report"] + answer["said"])
    last = [line for line in (answer["report"] + answer["said"]).splitlines() if line.strip()]
    return (found[0] if found else last[-1] if last else f"status {answer['status']}").removeprefix("=========").strip()
