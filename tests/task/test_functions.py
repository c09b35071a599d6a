"""Function pairs and task files."""

import pytest
import torch

from tilewright.errors import TaskError
from tilewright.task import Dim, Scalar, Workload
from tilewright.task.readers import read

FUNCTION = "def ref(x, y, alpha=2.0):\n    return alpha * x + y\n"


def test_inputs_from_get_inputs_are_inferred(write):
    text = FUNCTION + "\nM, N = 300, 40\ndef get_inputs():\n    return {'x': torch.randn(M, N), 'y': torch.rand(N)}\n"
    source = read(write("f.py", text) + "::ref")
    sheet = source.sheet
    assert sheet.source == "functions"
    assert sheet.name == "ref"
    assert sheet.inputs["x"].shape == ("M", "N")
    assert sheet.inputs["y"].values.kind == "uniform"
    assert sheet.outputs["out"].shape == ("M", "N")
    w = Workload(dims={"M": 2, "N": 3})
    inputs = source.inputs(w, 1)
    assert torch.equal(source.reference(inputs, w, None, dtype=None), 2.0 * inputs["x"] + inputs["y"])


def test_inputs_from_annotations(write):
    source = read(write("f.py", """
        def ref(x: "float16[M, N]", index: "int64[M]", alpha: float = 2.0):
            return x[index] * alpha
    """) + "::ref")  # fmt: skip
    sheet = source.sheet
    assert sheet.inputs["x"].dtypes == ("float16",)
    assert sheet.inputs["index"].dtypes == ("int64",)
    assert sheet.inputs["alpha"] == Scalar(2.0)
    assert sheet.workloads[0].dims == {"M": 64, "N": 64}
    assert sheet.contract.inferred
    w = sheet.workloads[0]
    exact = source.reference({k: v.double() if k == "x" else v for k, v in source.inputs(w, 1).items()}, w, None,
                             dtype=torch.float64)  # fmt: skip
    assert exact.dtype == torch.float64


def test_inputs_from_a_contract_file(write):
    path = write("f.py", FUNCTION)
    write("f.contract.toml", """
        [inputs.x]
        shape = "M N"
        dtypes = ["float32", "float16"]
        [inputs.y]
        shape = "N"
        [inputs.alpha]
        values = [2.0, 0.5]
        [dims.N]
        low = 8
        multiple_of = 8
        [[workloads]]
        dims = { M = 5, N = 16 }
    """)  # fmt: skip
    source = read(path, reference="ref")
    assert source.sheet.dims == {"N": Dim(8, multiple_of=8), "M": Dim()}
    inputs = source.inputs(Workload(dims={"M": 5, "N": 16}, dtype="float16", scalars={"alpha": 0.5}), 1)
    assert inputs["x"].dtype == torch.float16
    assert inputs["alpha"] == 0.5


def test_without_any_of_them_the_lines_to_write_are_shown(write):
    with pytest.raises(TaskError) as e:
        read(write("f.py", FUNCTION) + "::ref")
    text = str(e.value)
    assert "nothing says what the inputs of 'ref' are: x, y" in text
    assert "f.py:5" in text
    assert "write f.contract.toml beside it" in text
    assert '[inputs.x]\n    shape = "M N"' in text
    assert "def get_inputs():\n        return [torch.randn(128, 256), torch.randn(128, 256)]" in text


def test_a_missing_function_is_named_with_those_that_are_there(write):
    with pytest.raises(TaskError, match=r"(?s)defines no 'rf'.*functions: ref"):
        read(write("f.py", FUNCTION) + "::rf")


TASK = """
from tilewright.task import Task, TensorSpec, Dim, Values, Scalar, Contract

def reference(x, index, eps):
    return x[index] + eps

def law(run, inputs):
    return bool((run(**inputs) == run(**inputs)).all())

def evens(dims, seed):
    return torch.arange(0, dims["M"], 2)

TASK = Task(
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "bfloat16")),
            "index": TensorSpec("(M+1)//2", dtypes="int64", values=Values(kind="custom", generator="evens")),
            "eps": Scalar(1e-5, 1.0)},
    dims={"M": Dim(1, 99), "N": Dim(1, 99)}, workloads=[{"M": 5, "N": 3}], generators={"evens": evens},
    laws={"same": law},
)
"""


def test_task_file(write):
    source = read(write("softmax/problem.py", TASK))
    sheet = source.sheet
    assert sheet.name == "softmax"
    assert sheet.contract.laws == ("same",)
    assert not sheet.contract.inferred
    w = sheet.workloads[0]
    inputs = source.inputs(w, 1)
    assert inputs["index"].tolist() == [0, 2, 4]
    assert torch.equal(source.reference(inputs, w, None, dtype=None), inputs["x"][inputs["index"]] + 1e-5)
    assert source.law("same", lambda **i: i["x"], inputs)
    assert source.check(inputs, inputs["x"]) is None
    with pytest.raises(TaskError, match="no law 'other'"):
        source.law("other", None, inputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("TASK = Task(", "TASK = dict("), "TASK is a dict, not a Task"),
        (('generator="evens"', 'generator="odds"'), "names the generator 'odds', which the task lacks"),
        (('{"M": 5, "N": 3}', '{"Q": 5}'), "the task is not lawful: Value error, workload names dim 'Q'"),
        (("return torch.arange(0", "return torch.arange(1"), r"generator 'evens' gave \(2,\) for input 'index'"),
        (("x[index] + eps", "x[index] + torch.rand(1)"), "draws random numbers, which its contract does not say"),
        (("x[index] + eps", "x.add_(eps)"), "writes its input 'x', which its contract does not say"),
        (("x[index] + eps", "x.sum().item()"), "returns no tensor"),
        (("x[index] + eps", "x.nothing"), "the reference raised AttributeError"),
    ],
)
def test_what_is_wrong_with_a_task_file(write, change, message):
    assert change[0] in TASK
    with pytest.raises(TaskError, match=message) as e:
        read(write("problem.py", TASK.replace(*change)))
    assert "problem.py" in str(e.value)
