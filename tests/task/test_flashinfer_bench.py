"""flashinfer-bench definitions, workloads, solutions."""

import json

import pytest
import torch

from tilewright.errors import KernelError, TaskError, Unsupported
from tilewright.kernel.solution import solution_to_kernel
from tilewright.task import Scalar, Workload
from tilewright.task.readers import read
from tilewright.task.readers.safetensors import read_tensor

DEFINITION = {
    "name": "scaled_gather", "op_type": "gather",
    "axes": {"N": {"type": "var"}, "H": {"type": "const", "value": 16}, "P": {"type": "var"}},
    "inputs": {"x": {"shape": ["N", "H"], "dtype": "float16"}, "index": {"shape": ["P"], "dtype": "int32"},
               "scale": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["P", "H"], "dtype": "float16"}},
    "constraints": ["P <= N"],
    "reference": "import torch\n\ndef run(x, index, scale):\n    return (x[index.long()].float() * scale).half()\n",
}  # fmt: skip


def tensors(path, values):
    header, blob = {}, b""
    for name, t in values.items():
        raw = t.numpy().tobytes()
        header[name] = {"dtype": "I32", "shape": list(t.shape), "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + blob)


@pytest.fixture
def trace_set(tmp_path):
    def make(definition=DEFINITION, big=False):
        for folder in ("definitions/gather", "workloads/gather", "blob"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        tensors(tmp_path / "blob" / "a.safetensors", {"index": torch.tensor([3, 0, 2], dtype=torch.int32)})
        stored = {"type": "safetensors", "path": "blob/a.safetensors", "tensor_key": "index"}
        lines = [{"definition": "scaled_gather", "workload": {"uuid": "u1", "axes": {"N": n, "P": 3}, "inputs": {
            "x": {"type": "random"}, "index": stored, "scale": {"type": "scalar", "value": 0.5}}}}
            for n in (5, 40, *((1 << 24,) if big else ()))]  # fmt: skip
        text = "\n".join(json.dumps(line) for line in lines)
        (tmp_path / "workloads/gather/scaled_gather.jsonl").write_text(text + "\n")
        path = tmp_path / "definitions/gather/scaled_gather.json"
        path.write_text(json.dumps(definition))
        return str(path)

    return make


def test_definition_and_workloads(trace_set):
    source = read(trace_set(big=True))
    sheet = source.sheet
    assert sheet.source == "flashinfer_bench"
    assert sheet.inputs["x"].shape == ("N", 16)
    assert sheet.inputs["scale"] == Scalar(0.5)
    assert sheet.inputs["index"].values.kind == "custom"
    assert sheet.outputs["y"].shape == ("P", 16)
    assert set(sheet.dims) == {"N", "P"}
    assert sheet.constraints == ("P <= N",)
    assert [w.dims["N"] for w in sheet.workloads] == [5, 40]
    assert any("1 of 3 workloads not run here: up to 536.9 MB" in n for n in sheet.notes)
    w = sheet.workloads[0]
    inputs = source.inputs(w, 1)
    assert inputs["index"].tolist() == [3, 0, 2]
    assert torch.equal(source.reference(inputs, w, None, dtype=None), inputs["x"][[3, 0, 2]] * 0.5)
    how, _ = source.calling(w, 1)
    assert how.style == "keywords"
    assert how.outputs == ({"name": "y", "shape": [3, 16], "dtype": "float16"},)


def test_errors(trace_set, tmp_path):
    for key in ("axes", "outputs"):
        with pytest.raises(TaskError, match=f"has no '{key}'|no problem that Tilewright can read"):
            read(trace_set({k: v for k, v in DEFINITION.items() if k != key}))
    broken = {**DEFINITION, "inputs": {"x": {"shape": ["N", "Q"], "dtype": "float16"}}}
    with pytest.raises(TaskError, match="tensor 'x' names axis 'Q'"):
        read(trace_set(broken))
    with pytest.raises(Unsupported, match="float4_e2m1"):
        read(trace_set({**DEFINITION, "inputs": {"x": {"shape": ["N"], "dtype": "float4_e2m1"}}}))
    raising = {**DEFINITION, "reference": "import torch\n\ndef run(x, index, scale):\n    return x.nothing\n"}
    source = read(trace_set(raising))
    w = source.sheet.workloads[0]
    with pytest.raises(TaskError, match=r"scaled_gather.reference.py:4: the reference raised AttributeError"):
        source.reference(source.inputs(w, 1), w, None, dtype=None)
    source = read(trace_set())
    with pytest.raises(TaskError, match="no stored values"):
        source.inputs(Workload(dims={"N": 5, "P": 3}), 1)


def test_safetensors_errors(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    tensors(good, {"a": torch.arange(6, dtype=torch.int32).reshape(2, 3)})
    assert torch.equal(read_tensor(good, "a"), torch.arange(6, dtype=torch.int32).reshape(2, 3))
    with pytest.raises(TaskError, match=r"(?s)no tensor 'b'.*it has: a"):
        read_tensor(good, "b")
    bad.write_bytes(good.read_bytes()[:-4])
    with pytest.raises(TaskError, match="does not fill its place"):
        read_tensor(bad, "a")
    bad.write_bytes(b"\xff" * 20)
    with pytest.raises(TaskError, match="header length out of range"):
        read_tensor(bad, "a")


def solution(path, **change):
    data = {"name": "s", "definition": "scaled_gather", "author": "a",
            "spec": {"language": "triton", "target_hardware": ["cuda"], "entry_point": "pkg/main.py::run"},
            "sources": [{"path": "pkg/main.py", "content": "import triton\n\ndef run(x, y):\n    return x\n"},
                        {"path": "pkg/more.py", "content": "A = 1\n"}]}  # fmt: skip
    data.update(change)
    path.write_text(json.dumps(data))
    return path


def test_solution_becomes_a_kernel(tmp_path):
    kernel, destination = solution_to_kernel(solution(tmp_path / "s.json"), tmp_path / "out")
    assert kernel.language == "triton"
    assert kernel.entry == "run"
    assert set(kernel.files) == {"pkg/main.py", "pkg/more.py"}
    assert destination
    assert (tmp_path / "out/pkg/more.py").read_text() == "A = 1\n"
    outside = [{"path": "../evil.py", "content": "x"}]
    with pytest.raises(KernelError, match="leads out of the solution"):
        solution_to_kernel(solution(tmp_path / "s.json", sources=outside), tmp_path / "out")
    assert not (tmp_path / "evil.py").exists()
    with pytest.raises(KernelError, match=r"entry file 'pkg/main\.py' is not among the sources"):
        solution_to_kernel(solution(tmp_path / "s.json", sources=[{"path": "a.py", "content": ""}]), tmp_path / "out")
    with pytest.raises(KernelError, match="not a solution: KeyError"):
        solution_to_kernel(solution(tmp_path / "s.json", spec={}), tmp_path / "out")
