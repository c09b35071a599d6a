"""Small suites of each format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MODEL = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
"""
GPUMODE = """import torch


def generate_input(size: int, seed: int):
    return torch.randn(size)


def ref_kernel(data):
    return data * 2


def check_implementation(data, output):
    return torch.allclose(ref_kernel(data), output)
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def kernelbench(tmp_path: Path) -> Path:
    root = tmp_path / "bench"
    write(root / "KernelBench/level1/1_Relu.py", MODEL.format(body="torch.relu(x)"))
    write(root / "KernelBench/level1/10_Twice.py", MODEL.format(body="x * 2"))
    write(root / "KernelBench/level2/1_Relu.py", MODEL.format(body="torch.relu(x) + 1"))
    write(root / "KernelBench/level1/notes.py", "text = 1\n")
    return root


@pytest.fixture
def flashinfer(tmp_path: Path) -> Path:
    root = tmp_path / "traces"
    definition = {
        "name": "twice_n16", "op_type": "elementwise", "axes": {"m": {"type": "var"}, "n": {"type": "const", "value": 16}},
        "inputs": {"x": {"shape": ["m", "n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["m", "n"], "dtype": "float32"}}, "reference": "def run(x):\n    return x * 2\n",
    }  # fmt: skip
    write(root / "definitions/elementwise/twice_n16.json", json.dumps(definition))
    workload = {
        "definition": "twice_n16",
        "workload": {"uuid": "w1", "axes": {"m": 8}, "inputs": {"x": {"type": "random"}}},
    }
    write(root / "workloads/elementwise/twice_n16.jsonl", json.dumps(workload) + "\n")
    write(root / "solutions/ada/twice.json", solution("twice_n16", "ada"))
    write(root / "solutions/bob/twice.json", solution("absent", "bob"))
    return root


def solution(definition: str, author: str) -> str:
    text = "def run(x):\n    return x + x\n"
    return json.dumps({"name": "s", "definition": definition, "author": author, "spec": {
        "language": "python", "entry_point": "main.py::run", "destination_passing_style": False},
        "sources": [{"path": "main.py", "content": text}]})  # fmt: skip


@pytest.fixture
def gpumode(tmp_path: Path) -> Path:
    root = tmp_path / "problems"
    for name in ("pmpp/vectoradd_py", "bioml/trimul"):
        write(root / name / "reference.py", GPUMODE)
        write(root / name / "task.yml", 'tests:\n  - {"size": 64, "seed": 1}\n  - {"size": 128, "seed": 2}\n')
    write(root / "pmpp/eval.py", "")
    return root
