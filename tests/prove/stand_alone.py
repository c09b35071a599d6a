"""Shared by the tests of stand-alone scripts: files, blobs and a script made from them; running it alone."""

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import torch

from tilewright.kernel.kernel import read
from tilewright.ledger import tensors
from tilewright.prove import script
from tilewright.prove.finding import CaseRecord, Finding
from tilewright.task import TaskSheet


class Blobs(dict):
    def put(self, data: bytes) -> str:
        self[sha := hashlib.sha256(data).hexdigest()] = data
        return sha

    def keep(self, values: dict) -> dict:
        return {n: tensors.save(v, self.put) if isinstance(v, torch.Tensor) else v for n, v in values.items()}


class Bench:
    """Files, blobs and a script made from them."""

    def __init__(self, folder: Path):
        self.folder, self.blobs = folder, Blobs()

    def file(self, name: str, text: str) -> Path:
        (self.folder / name).write_text(textwrap.dedent(text))
        return self.folder / name

    def script(self, problem: Path, kernel: Path, inputs: dict, *, mode="values", sheet=None, state=None,
               cotangents=None, options=None, dims=None, **finding) -> Path:  # fmt: skip
        files = {problem.name: self.blobs.put(problem.read_bytes())}
        sheet = TaskSheet(**({"name": "task", "path": str(problem), "files": files} | (sheet or {})))
        parts = {"inputs": inputs, "state": state or {}, "cotangents": cotangents or {}}
        kept = {part: self.blobs.keep(values) for part, values in parts.items()}
        case = CaseRecord(**kept, mode=mode, dims=dims or {}, options=options or {})
        made = Finding(**({"cls": "wrong", "summary": "it is wrong", "gate": mode, "case": case, "id": "0123456789ab"}
                          | finding))  # fmt: skip
        text = script.render(made, read(str(kernel)), sheet, self.blobs.__getitem__)
        (self.folder / "show.py").write_text(text)
        return self.folder / "show.py"


HIDE = """
import runpy, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "tilewright":
            raise AssertionError("the script needs Tilewright")

sys.meta_path.insert(0, Refuse())
sys.argv = sys.argv[1:]
import torch
torch.set_num_threads(1)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(path: Path, *arguments) -> tuple[int, str]:
    """Exit status and output of a script, in a process that can't import Tilewright."""
    command = [sys.executable, "-c", HIDE, str(path), *map(str, arguments)]
    scratch = path.parent / "temporary"
    scratch.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(scratch)}
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment)
    assert [p.name for p in scratch.iterdir() if not p.name.startswith("torchinductor")] == [], "nothing is left behind"
    return done.returncode, done.stdout + done.stderr
