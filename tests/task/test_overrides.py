import pytest

from tilewright.errors import TaskError
from tilewright.task import INFERRED, Dim, Scalar, TaskSheet, TensorSpec, uniform
from tilewright.task.overrides import Overrides, beside, load

SHEET = TaskSheet(
    name="t", inputs={"x": TensorSpec("M N", values=uniform(0.5, 1)), "eps": Scalar(1e-5)},
    dims={"M": Dim(1, 64), "N": Dim(1, 128, multiple_of=8)}, contract=INFERRED,
)  # fmt: skip


def changed(tmp_path, text):
    path = tmp_path / "contract.toml"
    path.write_text(text)
    return load(path).apply(SHEET)


def test_every_kind_of_field_can_be_set(tmp_path):
    sheet = changed(tmp_path, """
        name = "mine"
        constraints = ["M <= N"]
        [contract]
        nan = "unspecified"
        batch_invariant = ["M"]
        [contract.tolerance]
        atol = 1e-3
        [dims.N]
        high = 4096
        [inputs.x]
        dtypes = ["float32", "float16"]
        mutated = true
        values = { kind = "normal", mean = 2 }
        [inputs.eps]
        values = [1e-5, 1e-3]
        [outputs.y]
        shape = "M N"
        [work]
        bytes = "2*M*N*itemsize"
        [[workloads]]
        dims = { M = 3, N = 16 }
        kind = "smoke"
    """)  # fmt: skip
    assert sheet.name == "mine"
    assert sheet.constraints == ("M <= N",)
    assert sheet.contract.nan == "unspecified"
    assert sheet.contract.inferred, "what is not named stays"
    assert sheet.contract.tolerance.atol == 1e-3
    assert sheet.contract.batch_invariant == ("M",)
    assert sheet.dims["N"] == Dim(1, 4096, multiple_of=8)
    assert sheet.inputs["x"].dtypes == ("float32", "float16")
    assert sheet.inputs["x"].mutated
    assert sheet.inputs["x"].shape == ("M", "N")
    assert sheet.inputs["x"].values.mean == 2
    assert sheet.inputs["x"].values.low == 0
    assert sheet.inputs["eps"].values == (1e-5, 1e-3)
    assert sheet.outputs["y"].shape == ("M", "N")
    assert sheet.work.bytes == "2*M*N*itemsize"
    assert sheet.workloads[0].kind == "smoke"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[contrac]\nnan='ignore'", r"unknown key 'contrac'\n.*did you mean 'contract'"),
        ("[contract]\ndeterminsm='none'", r"unknown field of 'contract' 'determinsm'\n.*did you mean 'determinism'"),
        ("[dims.K]\nhigh=3", r"unknown dim 'K'\n.*known: M, N"),
        ("[inputs.xx]\nmutated=true", r"unknown input 'xx'\n.*did you mean 'x'"),
        ("[inputs.x]\nvalues={kind='norml'}", r"'inputs.x.values.kind': Input should be .*got 'norml'"),
        ("[dims.M]\nlow=100", r"'dims.M': Value error, low 100 is above high 64"),
        ("[[workloads]]\ndims={Q=3}", r"unknown dim 'Q'"),
        ("[contract]\nnan = ignore", r"not TOML"),
    ],
)
def test_errors_name_the_key_and_a_near_one(tmp_path, text, message):
    with pytest.raises(TaskError) as e:
        changed(tmp_path, text)
    assert __import__("re").search(message, str(e.value)), str(e.value)
    assert "contract.toml" in str(e.value)


def test_a_python_file_says_the_same(tmp_path):
    path = tmp_path / "contract.py"
    path.write_text("from tilewright.task import Dim\nDIMS = {'N': Dim(2, 9)}\nCONTRACT = {'nan': 'ignore'}\n")
    sheet = load(path).apply(SHEET)
    assert sheet.dims["N"] == Dim(2, 9)
    assert sheet.contract.nan == "ignore"


def test_a_python_file_that_raises_is_told_with_its_line(tmp_path):
    path = tmp_path / "contract.py"
    path.write_text("A = 1\nB = A.nothing\n")
    with pytest.raises(TaskError, match=r"contract.py:2: the contract file raised AttributeError"):
        load(path)


def test_the_nearest_file_is_found(tmp_path):
    problem = tmp_path / "p.py"
    problem.write_text("")
    assert beside(problem) is None
    (tmp_path / "contract.toml").write_text("")
    assert beside(problem) == tmp_path / "contract.toml"
    (tmp_path / "p.contract.toml").write_text("")
    assert beside(problem) == tmp_path / "p.contract.toml"
    assert beside(tmp_path) == tmp_path / "contract.toml"


def test_no_override_changes_nothing():
    assert Overrides().apply(SHEET) == SHEET
