"""Stand-alone scripts: they show the failure without Tilewright, and stop showing it once the kernel is right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from stand_alone import Bench, Blobs, run

from tilewright.errors import Unsupported
from tilewright.ledger import tensors
from tilewright.prove import script_tensors
from tilewright.task import Contract, Dim, TensorSpec

EXAMPLE = Path(__file__).parents[2] / "examples" / "01_softmax"


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


FUNCTION = "import torch\n\n\ndef reference(x, scale):\n    return torch.exp(x.float()) * scale\n"
RIGHT = "import torch\n\n\ndef kernel(x, scale):\n    return torch.exp(x) * scale\n"
WRONG = RIGHT.replace("torch.exp(x)", "torch.exp2(x)")
PAIR = {"source": "functions", "entry": "reference"}


def pair(bench, source, x, **more):
    return bench.script(bench.file("problem.py", FUNCTION), bench.file("kernel.py", source), {"x": x, "scale": 2.0},
                        sheet=PAIR, **more)  # fmt: skip


def test_triton_task_file_by_plain_python(bench):
    sheet = {"inputs": {"x": TensorSpec("M N")}, "dims": {"M": Dim(), "N": Dim()}}
    inputs = {"x": torch.full((1, 5), -100.0)}
    path = bench.script(EXAMPLE / "problem.py", EXAMPLE / "wrong.py", inputs, mode="shapes", sheet=sheet,
                        dims={"M": 1, "N": 5}, where="out[0, 3]", budget=1e-6)  # fmt: skip
    text = path.read_text()
    assert "x = torch.full((1, 5), -100.0, dtype=torch.float32)" in text
    (bench.folder / "tilewright.py").write_text("raise AssertionError('the script needs Tilewright')")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(bench.folder), "HOME": str(bench.folder)}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
    assert done.stdout == "out[0, 3]: got 1.26116862e-44, expected 0.2\nSTILL FAILS\n", done.stderr
    assert done.returncode == 1
    code, out = run(path, EXAMPLE / "right.py")
    assert code == 0
    assert out.startswith("the kernel is right on this input\nnote: run by Triton's interpreter")


def test_function_pair_and_what_its_files_become(bench):
    path = pair(bench, WRONG, torch.tensor([1.0, 2.0]), where="out[1]", budget=1e-6)
    code, out = run(path)
    assert (code, out.splitlines()[0]) == (1, "out[1]: got 8, expected 14.7781122")
    bench.file("kernel.py", RIGHT)
    code, out = run(path)
    assert code == 0
    assert "kernel.py has changed since the failure was found; using it as it is now" in out
    (bench.folder / "kernel.py").unlink()
    (bench.folder / "problem.py").unlink()
    code, out = run(path)
    assert code == 1
    assert "kernel.py is not here; using the copy in this script" in out
    code, out = run(path, "/nowhere/else.py")
    assert code == 2, "there is no copy of that"
    assert out.endswith("can't tell: there is no file /nowhere/else.py\n")


def test_the_budget_decides(bench):
    nearly = RIGHT.replace("* scale", "* scale * (1 + 3e-6)")
    x = torch.tensor([0.5, 1.0])
    assert run(pair(bench, nearly, x, where="out[0]", budget=5e-7))[0] == 1
    assert run(pair(bench, nearly, x, where="out[0]", budget=5e-5))[0] == 0
    assert run(pair(bench, nearly, x))[0] == 1, "without one: six ulps and the reference's own error"
    assert run(pair(bench, RIGHT, x))[0] == 0


def test_casts_in_the_reference_do_not_round_the_truth(bench):
    """``reference`` casts to float32: with a budget of 1e-12 a float64 kernel is right only against a float64 truth."""
    x = torch.linspace(0.1, 0.9, 5, dtype=torch.float64)
    code, out = run(pair(bench, RIGHT, x, where="out[0]", budget=1e-12))
    assert "torch.float64 (5,), expected torch.float32" in out, "the dtype is still the reference's own"
    code, out = run(
        pair(bench, RIGHT.replace("exp(x) * scale", "exp(x).float() * scale"), x, where="out[0]", budget=1e-12)
    )
    assert code == 1
    assert "e-0" not in out


def test_special_values_and_raising(bench):
    x = torch.tensor([float("nan"), float("inf"), 1.0])
    assert run(pair(bench, RIGHT, x))[0] == 0
    code, out = run(pair(bench, RIGHT.replace("exp(x)", "exp(x).nan_to_num()"), x))
    assert (code, out.splitlines()[0]) == (1, "out[0]: got 0, expected nan")
    code, out = run(pair(bench, "def kernel(x, scale):\n    raise ValueError('no')\n", x))
    assert code == 1
    assert "the kernel raises ValueError: no\nSTILL FAILS" in out
    code, out = run(pair(bench, "import nothing_like_it\n\n\ndef kernel(x, scale):\n    pass\n", x))
    assert "the kernel raises ModuleNotFoundError" in out
    code, out = run(
        pair(bench, "import torch\n\n\ndef kernel(x, scale):\n    return torch.zeros(1, device='cuda')\n", x)
    )
    assert code == (1 if torch.cuda.is_available() else 2)


def test_a_reference_that_fails_proves_nothing(bench):
    problem = bench.file("problem.py", "def reference(x):\n    raise RuntimeError('broken')\n")
    path = bench.script(
        problem, bench.file("kernel.py", "def kernel(x):\n    return x\n"), {"x": torch.ones(2)}, sheet=PAIR
    )
    code, out = run(path)
    assert code == 2
    assert "can't tell: the reference fails on this input" in out


def test_form_integers_tuples_and_structure(bench):
    problem = bench.file("problem.py", "def reference(xs, k):\n    return {'s': xs[0] + xs[1]}, (xs[0] > k).int()\n")
    kernel = "def kernel(xs, k):\n    return {'s': xs[0] + xs[1]}, (xs[0] %s k).int()\n"
    inputs = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3.0, 4.0]), "k": 1.0}
    structure = {"list": [{"list": [{"$": "a"}, {"$": "b"}]}, {"$": "k"}]}
    more = {"sheet": PAIR, "options": {"calling": {"structure": structure}}}
    code, out = run(bench.script(problem, bench.file("kernel.py", kernel % ">="), inputs, **more))
    assert (code, out.splitlines()[0]) == (1, "out.1[0]: got 1, expected 0")
    assert run(bench.script(problem, bench.file("kernel.py", kernel % ">"), inputs, **more))[0] == 0
    code, out = run(
        bench.script(problem, bench.file("kernel.py", "def kernel(xs, k):\n    return {}\n"), inputs, **more)
    )
    assert "out.0.s: the kernel gives none\nout.1: the kernel gives none" in out


def test_the_kernel_gets_the_layout(bench):
    base = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
    problem = bench.file("problem.py", "def reference(x):\n    return x * 2\n")
    source = """
        import torch

        def kernel(x):
            assert (x.stride(), x.storage_offset(), x.data_ptr() % 64) == ((2, 8), 3, 12), x.stride()
            return torch.as_strided(x, x.shape, (1, x.shape[0])) * 2
    """
    view = base.as_strided((3, 4), (2, 8), 3)
    code, out = run(bench.script(problem, bench.file("kernel.py", source), {"x": view}, mode="strides", sheet=PAIR))
    assert code == 1
    assert "AssertionError" not in out
    assert out.startswith("out[")


GRADS = """
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return FACTOR * x * w * g, x * x * g

    def kernel(x, w):
        return Square.apply(x, w)
"""


@pytest.mark.parametrize(("factor", "code"), [("2", 0), ("1", 1)])
def test_gradients(bench, factor, code):
    problem = bench.file("problem.py", "def reference(x, w):\n    return x * x * w\n")
    kernel = bench.file("kernel.py", GRADS.replace("FACTOR", factor))
    inputs = {"x": torch.tensor([1.0, 3.0]), "w": torch.tensor([5.0, 7.0])}
    path = bench.script(problem, kernel, inputs, mode="gradients", cotangents={"out": torch.tensor([1.0, 0.5])},
                        options={"wanted": ["x"]}, sheet=PAIR, where="grad of x[1]", budget=1e-5)  # fmt: skip
    got, out = run(path)
    assert got == code
    assert ("grad of x[1]: got 10.5, expected 21" in out) == (code == 1)


KERNELBENCH = """
    import torch
    import torch.nn as nn

    WIDTH = 64

    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = nn.Linear(width, 2)

        def forward(self, x):
            return self.linear(x) / WIDTH

    def get_inputs():
        return [torch.rand(8, WIDTH)]

    def get_init_inputs():
        return [WIDTH]
"""


@pytest.mark.parametrize(("bias", "code"), [("self.linear.bias", 0), ("0", 1)])
def test_kernelbench(bench, bias, code):
    """The case is at another width than the file's, with the reference's own weights."""
    problem = bench.file("problem.py", KERNELBENCH)
    kernel = bench.file("kernel.py", f"""
        import torch.nn as nn

        class ModelNew(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.linear = nn.Linear(width, 2)
                self.width = width

            def forward(self, x):
                return (x @ self.linear.weight.t() + {bias}) / self.width
    """)  # fmt: skip
    state = {
        "linear.weight": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "linear.bias": torch.tensor([1.0, -1.0]),
    }
    calling = {"style": "module", "init": {"list": [{"=": 3}]}, "structure": {"list": [{"$": "x"}]}, "seed": 5}
    sheet = {"source": "kernelbench", "entry": "Model", "given": {"W": 64}, "extra": {"bindings": {"W": ["WIDTH"]}}}
    path = bench.script(problem, kernel, {"x": torch.ones(1, 3)}, state=state, options={"calling": calling},
                        sheet=sheet, dims={"W": 3}, where="out[0, 1]", budget=1e-6)  # fmt: skip
    got, out = run(path)
    assert got == code, out
    assert ("out[0, 1]: got 5, expected 4.66666667" in out) == (code == 1)


def test_purity_mutation_written_and_determinism(bench):
    problem = bench.file("problem.py", "def reference(x):\n    return x + 1\n")

    def verdict(body: str, mode: str, where="out[0]", cls="wrong", summary="it is wrong", **more) -> tuple[int, str]:
        kernel = bench.file("kernel.py", f"import torch\n\n\ndef kernel(x):\n    {body}\n")
        return run(bench.script(problem, kernel, {"x": torch.tensor([1.0, 2.0])}, mode=mode, where=where, cls=cls,
                                summary=summary, sheet=PAIR | more))  # fmt: skip

    code, out = verdict("x += 1; return x.clone()", "purity")
    assert (code, out.splitlines()[0]) == (1, "the first call changes its input 'x'")
    assert verdict("return x + 1", "purity")[0] == 0
    assert "out shares memory with the input 'x'\n" in verdict("return x.view(-1)", "purity", cls="policy")[1]
    held = "an output that the caller still holds is overwritten by a later call"
    keeps = "KEPT.copy_(x + 1); return KEPT\n\n\nKEPT = torch.zeros(2)"
    assert "out of call 0 is overwritten by call 1\n" in verdict(keeps, "purity", summary=held)[1]
    assert verdict("return x + 1", "purity", summary=held)[0] == 0
    code, out = verdict("y = torch.empty_like(x); y[0] = x[0] + 1; return y", "written")
    assert (code, out.splitlines()[0]) == (1, "out[1]: got nan, expected 3")
    assert verdict("y = torch.empty_like(x); y.copy_(x + 1); return y", "written")[0] == 0
    code, out = verdict("return x + 1 + torch.rand(1) * 1e-3", "determinism")
    assert "out: call 1 gives other bits than call 0 on the same input" in out
    assert verdict("return x + 1", "determinism")[0] == 0

    problem = bench.file("problem.py", "def reference(x):\n    x += 1\n")
    mutated = {"inputs": {"x": TensorSpec("N", mutated=True)}, "contract": Contract(aliasing="allowed")}
    assert verdict("x += 1", "values", **mutated)[0] == 0
    code, out = verdict("x += 2", "values", **mutated)
    assert (code, out.splitlines()[0]) == (1, "x[0]: got 3, expected 2")


def test_what_a_script_can_not_show(bench):
    x = torch.ones(2)
    with pytest.raises(Unsupported, match="no stand-alone script for a finding of the gate 'honesty'") as e:
        pair(bench, RIGHT, x, mode="honesty")
    assert "Try: use `tilewright replay 0123456789ab`" in str(e.value)
    with pytest.raises(Unsupported, match="the gate 'purity': one call of the kernel alone can't show it"):
        pair(bench, RIGHT, x, mode="purity", options={"extra": {"episode": "orders"}})
    with pytest.raises(Unsupported, match="the gate 'written'"):
        pair(bench, RIGHT, x, mode="written", where="y", summary="writes 8 bytes past the end of 'y'")
    with pytest.raises(Unsupported, match="no stand-alone script for a task from gpumode"):
        bench.script(bench.file("p.py", FUNCTION), bench.file("k.py", RIGHT), {"x": x}, sheet={"source": "gpumode"})
    bench.blobs.put = lambda data: "" if len(data) == 8 else Blobs.put(bench.blobs, data)
    with pytest.raises(Unsupported, match="the values of 'x' were not kept"):
        pair(bench, RIGHT, x)


TENSORS = {
    "zeros": (torch.zeros(3, 4), "torch.full((3, 4), 0.0, dtype=torch.float32)"),
    "one hot": (torch.eye(5)[2].clone(), "x[2] = 1.0"),
    "one hot of many": (torch.eye(50)[2], "x[2] = 1.0"),
    "two hot": (
        torch.zeros(4, 4).index_put((torch.tensor([0, 1]), torch.tensor([1, 3])), torch.tensor(7.0)),
        "x[1, 3]",
    ),
    "arange": (torch.arange(100).reshape(10, 10), "torch.arange(0, 100, 1).to(torch.int64).reshape((10, 10))"),
    "countdown": (torch.arange(50, 0, -2.0), "torch.arange(50, 0, -2).to(torch.float32)"),
    "few": (torch.tensor([[0.1, -0.2], [1e-45, 3e38]]), "torch.tensor([["),
    "random": (torch.randn(40, 3), "unpack("),
    "NaN with a payload": (torch.tensor([0x7F800001, 0, 5], dtype=torch.int32).view(torch.float32), "unpack("),
    "NaN": (torch.full((2,), float("nan")), "torch.full((2,), nan"),
    "negative zero": (torch.tensor([-0.0, -0.0, 0.0]), "-0.0"),
    "bool": (torch.tensor([True, False, True]), "torch.tensor([True, False, True]"),
    "bfloat16": (torch.randn(3, 3).bfloat16(), "dtype=torch.bfloat16"),
    "float8 with an offset": (torch.arange(20.0).to(torch.float8_e5m2)[7:], "as_strided((13,), (1,), 7)"),
    "float8": (torch.randn(9).to(torch.float8_e4m3fn), "torch.float8_e4m3fn"),
    "complex": (torch.tensor([1 + 2j, 3 - 1j]), "torch.tensor([(1+2j), (3-1j)]"),
    "scalar": (torch.tensor(3), "torch.full((), 3"),
    "empty": (torch.empty(0, 3), "torch.empty((0,)"),
    "transposed": (torch.arange(6.0).reshape(2, 3).t(), "as_strided((3, 2), (1, 3), 0)"),
    "expanded": (torch.ones(1).expand(4, 5), "as_strided((4, 5), (0, 0), 0)"),
    "offset": (torch.arange(9.0)[1:], "as_strided((8,), (1,), 1)"),
    "big integers": (torch.tensor([2**62 + 1, 2**62 + 2, 2**62 + 3]), "torch.tensor([4611686018427387905"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_as_formulas(name):
    tensor, sign = TENSORS[name]
    blobs = Blobs()
    lines = script_tensors.lines("x", tensors.save(tensor, blobs.put), blobs.__getitem__)
    text = "\n".join(lines)
    assert sign in text
    scope = {"torch": torch, "nan": float("nan"), "inf": float("inf"), "unpack": unpack}
    exec(text, scope)
    made = scope["x"]
    assert (made.dtype, made.shape, made.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
    assert made.storage_offset() == tensor.storage_offset() % (64 // tensor.itemsize)
    assert tensors.save(made, blobs.put).blob == tensors.save(tensor, blobs.put).blob


def unpack(text, shape, dtype):
    from tilewright.prove import script_parts

    scope: dict = {"torch": torch}
    exec("import base64, zlib\n" + script_parts.UNPACK, scope)
    return scope["unpack"](text, shape, dtype)
