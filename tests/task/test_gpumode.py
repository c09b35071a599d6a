"""GPU MODE-like problem folders."""

import builtins
import sys

import pytest
import torch

from tilewright.errors import EnvironmentProblem, TaskError
from tilewright.task import Workload
from tilewright.task import tree as wire
from tilewright.task.readers import Budget, read
from tilewright.task.readers.taskyml import parse_flat

REFERENCE = """
from utils import make_match_reference
from task import input_t

def generate_input(rows: int, cols: int, masked: bool, seed: int) -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn(rows, cols, device="cuda", dtype=torch.float16, generator=gen)
    mask = torch.ones(rows, dtype=torch.bool, device="cuda")
    if masked:
        mask = torch.rand(rows, device="cuda", generator=gen) < 0.5
    return x, {"mask": mask, "scale": 0.5}, torch.empty_like(x)

def ref_kernel(data: input_t):
    x, config, out = data
    out[...] = (x.float() * config["scale"] * config["mask"][:, None]).to(torch.float16)
    return out

check_implementation = make_match_reference(ref_kernel)
"""
UTILS = """
def make_match_reference(ref):
    def check(data, output):
        want = ref(data)
        return "" if torch.allclose(output, want) else "mismatch found!"
    return check
"""
YML = """
# a comment
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "utils.py", "source": "../utils.py"}
lang: "py"
description: |
  tests: not this
  - nor this
tests:
  - {"rows": 16, "cols": 128, "masked": False, "seed": 1}
  - {"rows": 48, "cols": 384, "masked": True, "seed": 2}
benchmarks:
  - {"rows": 65536, "cols": 4096, "masked": False, "seed": 3}
ranking_by: "geom"
"""


@pytest.fixture
def folder(write):
    def make(reference=REFERENCE, yml=YML):
        write("set/utils.py", UTILS)
        write("set/one/task.py", "input_t = tuple\n")
        if yml:
            write("set/one/task.yml", yml)
        return write("set/one/reference.py", reference).removesuffix("/reference.py")

    return make


def test_sizes_come_from_tests_and_benchmarks(folder):
    sheet = read(folder()).sheet
    assert sheet.source == "gpumode"
    assert sheet.name == "one"
    assert {n: (d.low, d.high, d.multiple_of) for n, d in sheet.dims.items()} == {
        "rows": (16, 65536, 16), "cols": (128, 4096, 128)}  # fmt: skip
    assert sheet.inputs["data.0"].shape == ("rows", "cols")
    assert sheet.inputs["data.0"].dtypes == ("float16",)
    assert sheet.given == {"rows": 65536, "cols": 4096}
    assert [w.dims["rows"] for w in sheet.workloads] == [16, 48]
    assert sheet.workloads[1].scalars == {"masked": True}
    assert any("1 of the listed sizes not run here: up to 1.6 GB" in n for n in sheet.notes)
    assert sheet.contract.postcondition == "equal"
    assert {"reference.py", "utils.py", "task.py", "task.yml"} <= set(sheet.files)


def test_values_that_depend_on_other_arguments_are_custom(folder):
    inputs = read(folder()).sheet.inputs
    assert inputs["data.0"].values.kind == "normal"
    assert inputs["data.1.mask"].values.kind == "custom"
    assert inputs["data.2"].mutated


def test_calls(folder):
    source = read(folder())
    w = Workload(dims={"rows": 16, "cols": 128}, scalars={"masked": True})
    inputs = source.inputs(w, 5)
    assert list(inputs) == ["data.0", "data.1.mask", "data.1.scale", "data.2"]
    assert not inputs["data.1.mask"].all()
    how, _ = source.calling(w, 5)
    assert how.style == "data"
    ((x, config, out),) = wire.unflatten(how.structure, inputs)
    assert config["scale"] == 0.5
    assert out.shape == x.shape

    want = source.reference(dict(inputs), w, None, dtype=None)
    assert torch.equal(x * config["scale"] * config["mask"][:, None], want)
    exact = source.reference({k: v.double() if k in ("data.0", "data.2") else v for k, v in inputs.items()}, w, None,
                             dtype=torch.float64)  # fmt: skip
    assert exact.dtype == torch.float64


def test_a_checker_that_tests_a_property_is_the_postcondition(folder):
    own = REFERENCE.replace(
        "check_implementation = make_match_reference(ref_kernel)",
        "def check_implementation(data, output):\n    return bool((output >= 0).all()), 'negative'",
    )
    source = read(folder(own))
    assert source.sheet.contract.postcondition == "checker"
    w = source.sheet.workloads[0]
    inputs = source.inputs(w, 1)
    assert source.check(inputs, torch.ones(2)) == (True, "negative")
    assert source.check(inputs, -torch.ones(2)) == (False, "negative")
    assert read(folder()).check(inputs, torch.ones(2)) is None, "it only compares: the contract does not ask for it"


def test_the_flat_form_needs_no_yaml(folder, monkeypatch):
    path = folder()
    patient = Budget(seconds=300, run_seconds=300)  # nothing may be left out because the machine is busy
    with_yaml = read(path, budget=patient).sheet
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "yaml", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    assert read(path, budget=patient).sheet == with_yaml


def test_flat_values_and_what_needs_yaml(tmp_path):
    data = parse_flat('tests:\n  - {"a": 1, b: [1, 2], "c": true, "d": "x, y: z", e: 1.5}  # note\n', tmp_path)
    assert data["tests"] == [{"a": 1, "b": [1, 2], "c": True, "d": "x, y: z", "e": 1.5}]
    with pytest.raises(EnvironmentProblem, match=r":2: this task.yml needs PyYAML"):
        parse_flat("tests:\n  - a: 1\n    b: 2\n", tmp_path)


def test_errors(folder, write):
    with pytest.raises(TaskError, match="lists no tests and no benchmarks"):
        read(folder(yml="lang: py\n"))
    with pytest.raises(TaskError, match="defines no 'ref_kernel'"):
        read(folder(REFERENCE.replace("ref_kernel", "other")))
    bare = REFERENCE.replace("from utils import make_match_reference", "").replace(
        "from task import input_t", "input_t = tuple"
    )
    write("bare/reference.py", bare.replace("check_implementation = make_match_reference(ref_kernel)", ""))
    with pytest.raises(TaskError, match=r'(?s)which sizes generate_input gets: rows, cols, masked.*"rows": 128'):
        read(write("x", "").removesuffix("x") + "bare")
