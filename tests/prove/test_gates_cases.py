"""Gates shapes, written, strides, special values, accumulation, empty and the task audit: each sees planted faults and
leaves a right kernel alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial import rejects, trial

from tilewright.errors import TaskError
from tilewright.prove.verdict import GateReport

ROWS = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec, Values
TASK = Task(
    reference=lambda x: torch.softmax(x, -1),
    inputs={{"x": TensorSpec("M N", dtypes=("float32", "float16"))}}, outputs={{"y": TensorSpec("M N")}},
    dims={{"M": Dim({low}, 4096), "N": Dim(1, 4096)}}, workloads=[{{"M": 8, "N": 64}}], contract=Contract({contract}),
)
"""
SOFTMAX = ROWS.format(low=0, contract="")
PRODUCT = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda a, b: a @ b,
    inputs={"a": TensorSpec("M K", dtypes=("float32", "float16")),
            "b": TensorSpec("K N", dtypes=("float32", "float16"))},
    outputs={"c": TensorSpec("M N")}, dims={"M": Dim(1, 256), "N": Dim(1, 256), "K": Dim(1, 65536)},
    workloads=[{"M": 16, "N": 16, "K": 32}],
)
"""
RIGHT = "import torch\ndef kernel(x):\n    return torch.softmax(x.float(), -1).to(x.dtype)\n"
RIGHT_PRODUCT = "import torch\ndef kernel(a, b):\n    return (a.float() @ b.float()).to(a.dtype)\n"


def body(text: str) -> str:
    """A softmax kernel with ``text`` before its return; ``y`` is the right result."""
    lines = "".join(f"    {line}\n" for line in text.strip().splitlines())
    head = "import torch\nSEEN = {}\ndef kernel(x):\n    m, n = x.shape\n"
    head += "    y = torch.softmax(x.float(), -1).to(x.dtype)\n"
    return f"{head}{lines}    return y\n"


def report(folder: Path, kernel: str, gate: str, **options: str | bool) -> GateReport:
    return trial(folder, kernel, gate, **options)[gate]  # type: ignore[arg-type]


@pytest.mark.parametrize("gate", ["shapes", "written", "strides", "special values", "accumulation", "task audit"])
def test_a_right_kernel_passes(tmp_path: Path, gate: str) -> None:
    got = report(tmp_path, RIGHT, gate, task=SOFTMAX)
    assert got.status == "pass", got
    assert got.cases > 2, got


@pytest.mark.parametrize("gate", ["shapes", "written", "strides", "special values", "accumulation"])
def test_a_right_product_passes(tmp_path: Path, gate: str) -> None:
    got = report(tmp_path, RIGHT_PRODUCT, gate, task=PRODUCT)
    assert got.status == "pass", got
    assert got.cases > 2, got


# ------------------------------------------------------------------------------------------- shapes

SHAPE_FAULTS = {
    "the tail after whole tiles": "y[:, n // 32 * 32 :] = 0 if n > 32 else y[:, n // 32 * 32 :]",
    "one row": "if m == 1: y = y * 2",
    "one column": "if n == 1: y = y * 0",
    "only the given shape": "if (m, n) != (8, 64): y = y.flip(0) * 2",
    "more than 96 columns": "if n > 96: y[:, 96:] = 0",
    "a tail beside a tail": "if m % 16 and n % 16 and m > 16 and n > 16: y[-1, -1] = 0",
    "rows beyond a grid axis": "if m > 4000: y[4000:] = 0",
    "no rows": "if m == 0: y = torch.empty(1, n, dtype=x.dtype)",
    "all-negative rows off the tile": "if n % 32 and bool((x < 0).all(1).any()): y = y * 0.5",
}


@pytest.mark.parametrize("fault", SHAPE_FAULTS)
def test_shapes_sees(tmp_path: Path, fault: str) -> None:
    got = report(tmp_path, body(SHAPE_FAULTS[fault]), "shapes", task=SOFTMAX)
    assert rejects(got), (fault, got)
    assert got.role == "core", (fault, got)


def test_shapes_names_the_smallest_size(tmp_path: Path) -> None:
    got = report(tmp_path, body("if n > 32 and n % 32: y[:, -1] = 0"), "shapes", task=SOFTMAX)
    dims = got.findings[0].case.dims
    assert dims["M"] == 1
    assert 32 < dims["N"] < 64
    assert "out[0, " in got.findings[0].summary


def test_zero_rows_are_no_fault_where_the_range_starts_at_one(tmp_path: Path) -> None:
    kernel = body(SHAPE_FAULTS["no rows"])
    assert report(tmp_path, kernel, "shapes", task=ROWS.format(low=1, contract="")).status == "pass"


INFERRED = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
M, N = 8, 64
def get_inputs():
    return [torch.randn(M, N)]
def get_init_inputs():
    return []
"""
MODULE = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        {}
        return torch.softmax(x, -1)
"""


def inferred(folder: Path, line: str, gate: str, *, strict: bool = False) -> GateReport:
    text = MODULE.format(line) + "kernel = ModelNew\n"
    return report(folder, text, gate, task=INFERRED, strict=strict)


def test_empty_is_advisory_of_an_inferred_contract_and_decides_in_strict_mode(tmp_path: Path) -> None:
    line = "if x.numel() == 0: return torch.zeros(1, 1)"
    got = inferred(tmp_path, line, "empty")
    assert got.role == "advisory"
    assert got.status == "fail"
    assert got.findings[0].cls == "policy"
    assert rejects(inferred(tmp_path, line, "shapes", strict=True))
    loud = inferred(tmp_path, "if x.numel() == 0: raise ValueError('x is empty')", "empty")
    assert loud.status == "pass"
    assert "x is empty" in loud.reason


# ------------------------------------------------------------------------------------------- written

WRITTEN_FAULTS = {
    "a tail": ("z = torch.empty_like(y)\nz[:, : n - n % 8] = y[:, : n - n % 8]\ny = z", "never written"),
    "a sum begun in fresh memory": ("z = torch.empty(m, n, dtype=x.dtype)\ny = torch.where(z > 1e4, y * 2, y)",
                                    "depend on memory that nobody wrote"),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRITTEN_FAULTS)
def test_written_sees(tmp_path: Path, fault: str) -> None:
    text, words = WRITTEN_FAULTS[fault]
    got = report(tmp_path, body(text), "written", task=SOFTMAX)
    assert rejects(got), got
    assert got.findings[0].cls == "wrong", got
    assert words in got.reason, got


def test_written_lets_fresh_memory_be_that_is_overwritten(tmp_path: Path) -> None:
    assert (
        report(tmp_path, body("z = torch.empty_like(y)\nz.copy_(y)\ny = z"), "written", task=SOFTMAX).status == "pass"
    )


RELU = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=torch.relu, inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("N")},
            dims={"N": Dim(1, 4096)}, workloads=[{"N": 128}])
"""
C = """
#include <stdint.h>
void kernel(const float *x, float *y, int64_t n) {{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : (x[i] != x[i] ? x[i] : 0);
    {}
}}
"""
C_FAULTS = {
    "reads": ("volatile float z = x[n]; (void)z;", "reads past the end of 'x'"),
    "reads before": ("volatile float z = x[-1]; (void)z;", "reads before the start of 'x'"),
    "writes": ("for (int64_t i = n; i % 16; i++) y[i] = 0;", "past the end of 'y'"),
    "writes before": ("y[-1] = 0;", "writes before the start of 'y'"),
}


@pytest.mark.parametrize("fault", C_FAULTS)
def test_fences_name_the_buffer(tmp_path: Path, fault: str) -> None:
    text, words = C_FAULTS[fault]
    got = report(tmp_path, C.format(text), "written", task=RELU, suffix=".c")
    assert rejects(got), got
    assert words in got.reason, got


def test_fences_leave_right_kernels_in_c_alone(tmp_path: Path) -> None:
    assert report(tmp_path, C.format(""), "written", task=RELU, suffix=".c").status == "pass"
    assert report(tmp_path, C.format(""), "strides", task=RELU, suffix=".c").status == "not applicable"


def test_loads_that_need_alignment_are_no_fault(tmp_path: Path) -> None:
    vector = """
#include <stdint.h>
#include <xmmintrin.h>
void kernel(const float *x, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) _mm_store_ps(y + i, _mm_max_ps(_mm_load_ps(x + i), _mm_setzero_ps()));
    for (; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}
"""
    assert report(tmp_path, vector, "written", task=RELU, suffix=".c").status == "pass"


# ------------------------------------------------------------------------------------------- strides

STRIDE_FAULTS = {
    "reads rows as if contiguous": "s, o = x.stride(0), x.storage_offset()\n"
    "if s > n: y = torch.softmax(torch.as_strided(x, (m, n), (n, 1), o), -1)",
    "ignores the column stride": "s, o = x.stride(0), x.storage_offset()\n"
    "if x.stride(1) == 2: y = torch.softmax(torch.as_strided(x, (m, n), (s, 1), o), -1)",
    "keeps what was aligned": "a = SEEN.setdefault((m, n), x.data_ptr() % 16 == 0)\n"
    "if a and x.data_ptr() % 16: y = y * 2",
    "expanded rows": "if x.stride(0) == 0: y = y * 2",
    "transposed": "if x.stride(0) == 1 and m > 1: y = y.flip(0)",
}  # fmt: skip


@pytest.mark.parametrize("fault", STRIDE_FAULTS)
def test_strides_sees(tmp_path: Path, fault: str) -> None:
    got = report(tmp_path, body(STRIDE_FAULTS[fault]), "strides", task=SOFTMAX)
    assert rejects(got), got
    assert got.role == "deciding", got
    assert "strides" in got.findings[0].summary, got


def test_a_refusal_breaks_a_promise_and_is_clear_where_nothing_was_promised(tmp_path: Path) -> None:
    line = "if not x.is_contiguous(): raise ValueError('x must be contiguous')"
    assert rejects(report(tmp_path, body(line), "strides", task=SOFTMAX))
    got = inferred(tmp_path, line, "strides")
    assert got.status == "pass"
    assert got.role == "advisory"
    assert "x must be contiguous" in got.reason
    silent = inferred(tmp_path, "x = x if x.is_contiguous() else x * 2", "strides")
    assert silent.status == "fail"
    assert silent.findings[0].cls == "policy"
    excluded = ROWS.format(low=1, contract="layouts='excluded'")
    assert report(tmp_path, body(line), "strides", task=excluded).status == "not applicable"


# ------------------------------------------------------------------------------------------- special values

SPECIAL_FAULTS = {
    "swallows NaN": "y = torch.nan_to_num(y)",
    "a row of -inf gives zeros": "y = torch.where((x == float('-inf')).all(1, keepdim=True), torch.zeros_like(y), y)",
    "overflows": "e = torch.exp(x.float())\ny = (e / e.sum(1, keepdim=True)).to(x.dtype)",
    "a masked prefix": "y = torch.where((x == float('-inf')).any(1, keepdim=True) & (n > 1), y * 0.5, y)",
}


@pytest.mark.parametrize("fault", SPECIAL_FAULTS)
def test_special_values_sees(tmp_path: Path, fault: str) -> None:
    got = report(tmp_path, body(SPECIAL_FAULTS[fault]), "special values", task=SOFTMAX)
    assert rejects(got), got
    assert got.role == "deciding", got


def test_the_policy_on_nan_is_followed(tmp_path: Path) -> None:
    swallow = body(SPECIAL_FAULTS["swallows NaN"])
    for contract in ("nan='unspecified'", "nan='ignore'"):
        got = report(tmp_path, swallow, "special values", task=ROWS.format(low=1, contract=contract))
        assert got.status == "pass", got
        assert got.cases > 5, got
    excluded = report(
        tmp_path, swallow, "special values", task=ROWS.format(low=1, contract="special_values='excluded'")
    )
    assert excluded.status == "not applicable"
    assert excluded.reason


def test_flushing_subnormals_and_the_sign_of_zero_are_notes(tmp_path: Path) -> None:
    task = SOFTMAX.replace("torch.softmax(x, -1)", "-x")
    small = "x.abs() < torch.finfo(x.dtype).smallest_normal"
    flush = f"import torch\ndef kernel(x):\n    return torch.where({small}, torch.zeros_like(x), -x)\n"
    got = report(tmp_path, flush, "special values", task=task)
    assert got.status == "pass", got
    assert "flushed" in got.meaning, got
    assert "sign of a zero" in got.meaning, got


# ------------------------------------------------------------------------------------------- accumulation

TILES = "c = sum((a[:, k:k+64].float() @ b[k:k+64].float()).{}() for k in range(0, a.shape[1], 64)).to(a.dtype)"
PRODUCTS = {
    "float16 between tiles": TILES.format("half"),
    "bfloat16 between tiles": TILES.format("bfloat16"),
}  # fmt: skip


@pytest.mark.parametrize("fault", PRODUCTS)
def test_accumulation_sees(tmp_path: Path, fault: str) -> None:
    got = report(
        tmp_path,
        f"import torch\ndef kernel(a, b):\n    {PRODUCTS[fault]}\n    return c\n",
        "accumulation",
        task=PRODUCT,
    )
    assert rejects(got), got
    assert got.role == "deciding", got
    assert "along K=" in got.reason, got


def test_a_plain_loop_is_honest(tmp_path: Path) -> None:
    one_by_one = "(a.float().unsqueeze(2) * b.float()).cumsum(1)[:, -1]"
    loop = f"import torch\ndef kernel(a, b):\n    return {one_by_one}.to(a.dtype)\n"
    assert report(tmp_path, loop, "accumulation", task=PRODUCT).status == "pass"


def test_a_variance_as_a_difference_of_squares_is_seen(tmp_path: Path) -> None:
    task = SOFTMAX.replace("torch.softmax(x, -1)", "x.var(-1, correction=0)")
    task = task.replace('TensorSpec("M N")}, dims', 'TensorSpec("M")}, dims')
    kernel = "import torch\ndef kernel(x):\n    f = x.float()\n    return ({}).to(x.dtype)\n"
    assert rejects(report(tmp_path, kernel.format("(f * f).mean(-1) - f.mean(-1) ** 2"), "accumulation", task=task))
    right = kernel.format("((f - f.mean(-1, keepdim=True)) ** 2).mean(-1)")
    assert report(tmp_path, right, "accumulation", task=task).status == "pass"


# ------------------------------------------------------------------------------------------- task audit

WEAK = """
import torch
from tilewright.task import Dim, Task, TensorSpec, Values, uniform
TASK = Task(
    reference=lambda x, bias: torch.relu(x) + bias,
    inputs={"x": TensorSpec("M N", values=uniform(0, 1)), "bias": TensorSpec("N", values=Values(kind="constant"))},
    outputs={"y": TensorSpec("M N")}, dims={"M": Dim(), "N": Dim()}, workloads=[{"M": 8, "N": 16}],
)
"""


def test_the_audit_names_what_would_pass(tmp_path: Path) -> None:
    got = report(tmp_path, "def kernel(x, bias):\n    return x\n", "task audit", task=WEAK)
    assert got.status == "fail"
    assert got.role == "advisory"
    assert "input 'x' handed back" in got.reason
    assert "input 'bias' taken for all zeros" in got.reason


def test_the_audit_shows_what_the_usual_check_lets_pass(tmp_path: Path) -> None:
    task = SOFTMAX.replace('"N": 64', '"N": 4096').replace(
        '"float16")', '"float16"), values=Values(kind="normal", std=0.5)'
    )
    got = report(tmp_path, RIGHT, "task audit", task=task)
    assert got.status == "pass"
    assert "allclose at 1e-2 would pass all zeros" in got.meaning


def test_a_reference_that_draws_without_saying_so_is_an_error_of_the_task(tmp_path: Path) -> None:
    task = SOFTMAX.replace("torch.softmax(x, -1)", "x + torch.rand_like(x)")
    with pytest.raises(TaskError, match=r"draws random numbers.*\n.*random=True"):
        report(tmp_path, RIGHT, "task audit", task=task)
