"""What is read back from the ledger."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ..kernel.kernel import Kernel
from ..prove.finding import Finding
from ..prove.verdict import Verdict
from ..task.contract import strict
from ..task.task import TaskSheet


@dataclass(frozen=True)
class VerdictRecord:
    """A verdict with what it is about; ``kernel.text`` and the files' bytes are as they were then."""

    id: str
    verdict: Verdict
    kernel: Kernel
    sheet: TaskSheet
    contract: str
    device_class: str
    machine: dict[str, Any]
    created: str


@dataclass(frozen=True)
class FindingRecord:
    """A finding in the newest verdict that has it; ``seen_in`` names all of them, newest first."""

    id: str
    finding: Finding
    verdict: VerdictRecord
    seen_in: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What an id names. ``kind``: verdict, finding, kernel, task, audit, measurement, attempt, search or blob; ``record``
    is a VerdictRecord or a FindingRecord, for other kinds a dict."""

    kind: str
    id: str
    record: Any


def contract_hash(sheet: TaskSheet, mode: str) -> str:
    """Hash of the contract as it was judged: in strict mode every policy is promised."""
    contract = strict(sheet.contract) if mode == "strict" else sheet.contract
    return hashlib.sha256(canonical(contract).encode()).hexdigest()


def dumps(value: Any) -> str:
    """JSON text; NaN and infinities stay what they are, and so does the order of keys (inputs are called in order)."""
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, ensure_ascii=False)


def canonical(value: Any) -> str:
    """JSON text to be hashed: keys sorted."""
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, ensure_ascii=False, sort_keys=True)


@functools.cache
def this_machine() -> str:
    """This machine as JSON, as far as a CPU verdict depends on it."""
    return canonical({"host": platform.node(), "system": platform.system(), "release": platform.release(),
                  "machine": platform.machine(), "cpu": _cpu(), "cores": os.cpu_count() or 0,
                  "python": platform.python_version()})  # fmt: skip


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
