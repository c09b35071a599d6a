"""The gate algebra: right kernels are equal, planted faults of 1e-6 are seen, limits are said, never passed over."""

import pytest
from trial import RIGHT, SOFTMAX, trial

from tilewright.errors import Unsupported
from tilewright.prove import witness
from tilewright.prove.child.algebra_session import AlgebraSession

LONG = SOFTMAX.replace('"N": Dim(1, 64)', '"N": Dim(1, 4096)')
EXACT = LONG.replace('batch_invariant=("M",)', 'algebra="exact"')
KERNEL = RIGHT.replace("def launch", "def kernel")


def algebra(folder, kernel, task=LONG, **options):
    return trial(folder, kernel, "algebra", task=task, **options)["algebra"]


def test_right_kernel_is_equal_in_the_field(tmp_path):
    report = algebra(tmp_path, KERNEL)
    assert (report.status, report.role) == ("pass", "advisory")
    (claim,) = report.claims
    assert claim.kind == "algebra"
    assert "3 draws" in claim.strength
    assert "exp: no proved bound" in claim.strength


def test_contract_decides_whether_algebra_does(tmp_path):
    assert algebra(tmp_path, KERNEL, EXACT).role == "deciding"


TINY = KERNEL.replace("e / tl.sum(e, axis=0)", "e / (tl.sum(e, axis=0) + {})")


def test_difference_within_the_tolerance_deviates(tmp_path):
    report = algebra(tmp_path, TINY.format("1e-10"))
    assert (report.status, report.role) == ("fail", "advisory")
    (finding,) = report.findings
    assert finding.cls == "deviates"
    assert finding.where == "candidate.py:13"
    assert 1e-11 < finding.largest_error < 1e-9
    assert "largest relative difference found in real arithmetic 1e-10" in finding.summary


def test_the_same_difference_rejects_where_the_contract_asks_for_exact_algebra(tmp_path):
    report = algebra(tmp_path, TINY.format("1e-10"), EXACT)
    assert (report.status, report.role) == ("fail", "deciding")
    assert report.findings[0].cls == "deviates"
    assert report.findings[0].replays


def test_epsilon_is_driven_to_a_witness(tmp_path):
    report = algebra(tmp_path, TINY.format("1e-5"))
    (finding,) = report.findings
    assert finding.cls in ("inaccurate", "wrong")
    assert finding.replays
    assert report.role == "deciding"
    assert "candidate.py:13" in finding.detail


MASK = KERNEL.replace("e = tl.exp(", "e = tl.where(cols <= n_cols, 1.0, 0.0) * tl.exp(").replace(
    'other=-float("inf")', "other=0.0")  # fmt: skip


def test_mask_off_by_one_is_found_at_a_ragged_size_and_replayed(tmp_path):
    """One padded lane counts as a score of 0: wrong by much where all scores are negative."""
    report = algebra(tmp_path, MASK)
    (finding,) = report.findings
    assert finding.cls == "wrong"
    assert finding.replays
    assert finding.largest_error > 100 * finding.budget


GELU = '''
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: torch.nn.functional.gelu(x), inputs={"x": TensorSpec("N")},
            outputs={"y": TensorSpec("N")}, dims={"N": Dim(1, 4096)}, workloads=[{"N": 100}], contract=Contract())
'''  # fmt: skip
GELU_KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, FORMULA, mask=offs < n)

def kernel(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    gelu[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""
ERF = "0.5 * x * (1 + tl.erf(x * CONSTANT))"


@pytest.mark.parametrize(
    ("formula", "status"),
    [
        (ERF.replace("CONSTANT", "0.7071067811865476"), "pass"),
        (ERF.replace("CONSTANT", "0.707"), "fail"),
        ("x * tl.sigmoid(1.5957691216 * (x + 0.044715 * x * x * x))", "fail"),
    ],
    ids=["erf", "constant cut to three digits", "tanh form"],
)
def test_gelu(tmp_path, formula, status):
    assert algebra(tmp_path, GELU_KERNEL.replace("FORMULA", formula), GELU).status == status


TORCH = "import torch\ndef kernel(x):\n    {}\n"


def test_kernels_in_torch_are_traced_too(tmp_path):
    right = "e = x.exp(); e.div_(e.sum(-1, keepdim=True)); return e"
    assert algebra(tmp_path, TORCH.format(right)).status == "pass"
    wrong = "e = x.exp(); e.div_(e.sum(-1, keepdim=True) + 1); return e"
    assert algebra(tmp_path, TORCH.format(wrong)).findings[0].cls == "wrong"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return torch.softmax(x - x.max().item(), -1)", "a float taken out of a tensor at candidate.py:3"),
        ("e = torch.from_numpy(__import__('numpy').exp(x.numpy())); return e / e.sum(-1, keepdim=True)",
         "a call that makes its data outside of what is traced"),
        ("return torch.tensor([[v for v in r] for r in x.exp().tolist()]).log().softmax(-1)",
         "a call that makes its data outside of what is traced"),
        ("return torch.softmax(x + 0 * torch.rand_like(x), -1)", "random numbers (aten.rand_like) at candidate.py:3"),
    ],
    ids=["item", "numpy", "python", "random"],
)  # fmt: skip
def test_limits_are_named(tmp_path, body, reason):
    report = algebra(tmp_path, TORCH.format(body))
    assert report.status == "inconclusive"
    assert reason.rpartition(" at ")[0] in report.reason or reason in report.reason


def test_path_is_part_of_the_claim(tmp_path):
    body = "return torch.softmax(x, -1) if bool((x < 1e30).all()) else x"
    report = algebra(tmp_path, TORCH.format(body))
    assert report.status == "pass"
    assert "on the path taken at candidate.py:3" in report.claims[0].domain


NATIVE = "void kernel(const float *x, float *y, long M, long N) { for (long i = 0; i < M * N; i++) y[i] = x[i]; }"


def test_native_kernels_have_no_trace(tmp_path):
    report = algebra(tmp_path, NATIVE, suffix=".c")
    assert report.status == "not applicable"
    assert "native" in report.reason


LOGS = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: torch.sin(torch.log(1 + x * x)), inputs={"x": TensorSpec("N")},
            outputs={"y": TensorSpec("N")}, dims={"N": Dim(1, 512)}, workloads=[{"N": 20}], contract=Contract())
"""
LOGS_KERNEL = TORCH.format("return torch.sin(torch.log(x * x + 1))")


def test_where_the_field_does_not_reach_real_arithmetic_claims_less(tmp_path):
    report = algebra(tmp_path, LOGS_KERNEL, LOGS)
    assert report.status == "pass"
    assert {c.kind for c in report.claims} == {"real"}
    assert "200 starts" in report.claims[0].strength
    assert "logarithm" in report.claims[0].strength


BACKWARD = SOFTMAX.replace('batch_invariant=("M",)', 'gradients="promised"')
FUNCTION = """
import torch

class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)EXTRA)

def kernel(x):
    return Softmax.apply(x)
"""


def test_gradients_are_part_of_the_formula(tmp_path):
    right = algebra(tmp_path, FUNCTION.replace("EXTRA", ""), BACKWARD)
    assert right.status == "pass"
    wrong = algebra(tmp_path, FUNCTION.replace("EXTRA", " * 1.000001"), BACKWARD)
    assert wrong.status == "fail"
    assert "grad of x" in wrong.findings[0].summary + wrong.findings[0].detail


MODULE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(4, 24)]

def get_init_inputs():
    return [24]
"""


@pytest.mark.parametrize(("eps", "status"), [("1e-5", "pass"), ("1.1e-5", "fail")])
def test_parameters_of_a_module_are_symbols(tmp_path, eps, status):
    kernel = MODULE.replace("class Model(", "class kernel(").replace("LayerNorm(n)", f"LayerNorm(n, eps={eps})")
    assert algebra(tmp_path, kernel, MODULE).status == status


RARE = KERNEL.replace("e / tl.sum(e, axis=0)", "tl.where(CONDITION, 0.5, e / tl.sum(e, axis=0))")


def test_an_order_that_hardly_ever_holds_is_driven_to_a_witness(tmp_path):
    (finding,) = algebra(tmp_path, RARE.replace("CONDITION", "tl.max(x, axis=0) > 700.0")).findings
    assert finding.cls == "wrong"
    assert finding.replays


def test_an_equality_that_hardly_ever_holds_is_driven_to_a_witness(tmp_path):
    report = algebra(tmp_path, RARE.replace("CONDITION", "x == 3.25"))
    (finding,) = report.findings
    assert finding.cls == "wrong"
    assert finding.replays
    assert "the comparison at candidate.py:13 comes out the other way" in finding.detail


def test_a_harmless_branch_is_no_fault(tmp_path):
    assert algebra(tmp_path, RARE.replace("CONDITION, 0.5", "x == 3.25, e / tl.sum(e, axis=0)")).status == "pass"


CANCELS = '''
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: (torch.logsumexp(x, -1) - x[:, 0]).square(), inputs={"x": TensorSpec("M N")},
            outputs={"y": TensorSpec("M")}, dims={"M": Dim(1, 4096), "N": Dim(1, 64)}, workloads=[{"M": 9, "N": 12}],
            contract=Contract())
'''  # fmt: skip
CANCELS_KERNEL = """
import torch
def kernel(x):
    m = x.amax(-1, keepdim=True)
    z = x - m
    r = torch.log(torch.exp(z).sum(-1)) - z[:, 0]
    return r * r
"""


def test_what_float64_itself_loses_is_no_difference(tmp_path):
    """The reference subtracts two numbers of 1e17 that differ by log 2: float64 gives 0, the kernel is right."""
    pytest.importorskip("flint")
    report = algebra(tmp_path, CANCELS_KERNEL, CANCELS)
    assert report.status == "pass", report.reason
    (claim,) = report.claims
    assert claim.kind == "real"
    assert "elements of hostile starts enclosed: equal to" in claim.strength


def test_a_true_difference_among_those_is_told_term_by_term(tmp_path):
    pytest.importorskip("flint")
    report = algebra(tmp_path, CANCELS_KERNEL.replace(".sum(-1))", ".sum(-1) + 1e-12)"), CANCELS)
    (finding,) = report.findings
    assert finding.cls == "deviates"
    assert "the kernel adds 1e-12 to sum_{k<3} exp(x[" in finding.summary
    assert "the reference does not (candidate.py:6)" in finding.summary
    assert "(enclosed: it is no rounding)" in finding.summary
    assert finding.largest_error < 1e-6


def test_an_epsilon_is_told_with_its_line(tmp_path):
    finding = algebra(tmp_path, TINY.format("1e-10")).findings[0]
    assert "the kernel adds 1e-10 to sum_{k<" in finding.summary
    assert "the reference does not (candidate.py:13)" in finding.summary


def test_how_much_is_looked_at_does_not_depend_on_the_clock(tmp_path, monkeypatch):
    """A slow machine looks at as many sizes; where the backstop ends it nonetheless, the claim says so."""
    import time

    from tilewright.prove.gates import algebra as gate

    (quick,) = algebra(tmp_path, KERNEL).claims
    real = time.monotonic
    monkeypatch.setattr(gate.time, "monotonic", lambda: 8 * real())
    (slow,) = algebra(tmp_path, KERNEL).claims
    assert slow.domain == quick.domain
    monkeypatch.setattr(gate, "SECONDS", 0.0)
    (ended,) = algebra(tmp_path, KERNEL).claims
    assert "stopped by the clock after 1 of the sizes" in ended.domain


ROUNDED = '''
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: torch.round(x * 16).clamp(-128, 127).to(torch.int8), inputs={"x": TensorSpec("N")},
            outputs={"q": TensorSpec("N", dtypes=("int8",))}, dims={"N": Dim(1, 4096)}, workloads=[{"N": 100}],
            contract=Contract())
'''  # fmt: skip


@pytest.mark.parametrize(
    ("rounding", "found"), [("((x + 12582912.0) - 12582912.0)", "pass"), ("tl.floor(x + 0.5)", "fail")]
)
def test_ties_are_among_the_starts(tmp_path, rounding, found):
    """Half to even by a magic number is the reference's rounding; half up is another, seen at ties alone."""
    formula = f"(tl.minimum(tl.maximum({rounding}, -128.0), 127.0)).to(tl.int8)"
    kernel = GELU_KERNEL.replace("FORMULA", formula).replace(
        "torch.empty_like(x)", "torch.empty_like(x, dtype=torch.int8)"
    )
    kernel = kernel.replace("mask=offs < n)\n    tl.store", "mask=offs < n) * 16.0\n    tl.store")
    report = algebra(tmp_path, kernel, ROUNDED)
    assert report.status == found, report.reason
    assert [c.kind for c in report.claims] == (["real"] if found == "pass" else [])


def test_enclosures_that_take_too_long_are_left_out(tmp_path, monkeypatch):
    """What was compared in real arithmetic stays."""
    pytest.importorskip("flint")
    monkeypatch.setattr(AlgebraSession.enclose, "__defaults__", (0.0, (), 0.0))
    (claim,) = algebra(tmp_path, LOGS_KERNEL, LOGS).claims
    assert "not enclosed: terms that take longer than 0 s to enclose" in claim.strength


def test_a_child_lost_while_enclosing_takes_nothing_from_what_was_compared(tmp_path, monkeypatch):
    def enclose(self, *_, **__):
        self.close()
        raise Unsupported("the replay ended: timeout")

    monkeypatch.setattr(AlgebraSession, "enclose", enclose)
    (claim,) = algebra(tmp_path, LOGS_KERNEL, LOGS).claims
    assert claim.kind == "real"
    assert "not enclosed: the replay ended: timeout" in claim.strength


def test_what_time_alone_leaves_open_is_said(tmp_path, monkeypatch):
    pytest.importorskip("flint")
    monkeypatch.setattr(witness, "CONFIRM_S", 0.0)
    report = algebra(tmp_path, TINY.format("1e-10"))
    assert report.status == "inconclusive", report
    assert "take longer than 0 s to enclose, where float64 sees a difference of" in report.reason
