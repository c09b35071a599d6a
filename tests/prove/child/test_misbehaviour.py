"""What a candidate does to its process is a finding about the candidate, said in a clear sentence."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import torch

from tilewright.kernel import read
from tilewright.prove.child.kernel_session import KernelSession
from tilewright.prove.child.session import Limits, Outcome
from tilewright.task.calling import Calling

HEAD = "import os, sys, time, ctypes, socket, signal, subprocess, torch\n\ndef kernel(x):\n"
SMALL = Limits(seconds=8.0, memory_bytes=768 << 20, file_bytes=16 << 20, processes=16)


def run(tmp_path: Path, body: str, **options: object) -> Outcome:
    path = tmp_path / "kernel.py"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))
    with KernelSession(read(str(path), language="torch"), limits=SMALL) as session:
        trouble = session.build(Calling(), {})
        return Outcome(trouble=trouble) if trouble else session.call({"x": torch.ones(4)}, **options)  # type: ignore[arg-type]


ENDS = {
    "exit": ("os._exit(0)", "exit", "exited with status 0 in the middle of a call"),
    "system exit": ("sys.exit(0)", "exit", "SystemExit(0)"),
    "segmentation fault": ("ctypes.string_at(8)", "crash", "SIGSEGV: it touched memory that is not its own"),
    "corrupt heap": (
        # Zeros: what a used block holds is read as a size, and may lead anywhere.
        "libc = ctypes.CDLL(None)\nlibc.calloc.restype = ctypes.c_void_p\np = libc.calloc(1, 64)\n"
        "libc.free(ctypes.c_void_p(p + 8))\nreturn x",
        "crash", "its heap or stack is corrupted (",
    ),
    "python memory": ("return bytearray(2 << 30)", "memory", ""),
    "torch memory": ("return torch.empty(2 << 30, dtype=torch.uint8)", "memory", "allocate memory"),
    "file outside": (f"open({os.getcwd()!r} + '/made-by-a-kernel', 'w')", "exception", "made-by-a-kernel"),
    "socket": ("socket.socket()", "exception", "not permitted"),
    "large file": ("open(os.environ['TMPDIR'] + '/f', 'wb').write(bytes(32 << 20))", "exception", "too large"),
    "processes": ("while os.fork():\n    pass\ntime.sleep(60)", "exception", "Resource temporarily unavailable"),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDS)
def test_it_is_told_what_went_wrong(what: str, tmp_path: Path) -> None:
    body, kind, said = ENDS[what]
    outcome = run(tmp_path, body)
    assert outcome.trouble is not None
    assert outcome.trouble.kind == kind, outcome.trouble
    assert said in outcome.trouble.message, outcome.trouble


def test_the_remedy_speaks_of_the_seal(tmp_path: Path) -> None:
    trouble = run(tmp_path, "socket.socket()").trouble
    assert trouble is not None
    assert trouble.remedy is not None
    assert "sealed children have no network" in trouble.remedy
    assert trouble.where.endswith("kernel.py:4")


def test_a_hang_ends_at_the_limit(tmp_path: Path) -> None:
    began = time.monotonic()
    trouble = run(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)", seconds=0.5).trouble
    assert trouble is not None
    assert (trouble.kind, trouble.message) == ("timeout", "no answer within 0.5 s")
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("body", [
    "print('accept'); print('x' * 100000, file=sys.stderr)\nreturn x + 1",
    "os.write(1, b'{\"verdict\": \"accept\"}')\nreturn x + 1",
    "if os.fork() == 0:\n    os._exit(3)\nos.wait()\nreturn x + 1",
    "subprocess.run(['true'], check=True)\nreturn x + 1",
    "open(os.environ['TMPDIR'] + '/f', 'w').write('kept')\nreturn x + 1",
    "import threading\nt = threading.Thread(target=lambda: None); t.start(); t.join()\nreturn x + 1",
])  # fmt: skip
def test_what_harms_nobody_is_let_be(body: str, tmp_path: Path) -> None:
    outcome = run(tmp_path, body)
    assert outcome.ok, outcome.trouble
    assert torch.equal(next(iter(outcome.outputs.values())), torch.full((4,), 2.0))


def test_a_native_kernel_compiles_in_its_seal(tmp_path: Path) -> None:
    path = tmp_path / "kernel.c"
    path.write_text("#include <stdint.h>\nvoid kernel(const float *x, float *y, int64_t n)"
                    "{ for (int64_t i = 0; i < n; i++) y[i] = x[i] + 1; }\n")  # fmt: skip
    how = Calling(outputs=({"name": "y", "shape": ("N",), "dtype": "main"},))
    with KernelSession(read(str(path)), limits=SMALL) as session:
        assert session.build(how, {}) is None
        outcome = session.call({"x": torch.ones(4), "dim.N": 4})
    assert outcome.ok, outcome.trouble
