"""Terms in words: formulas as a person writes them, and the first term in which two formulas differ."""

import math

import ir_kernels as K
import pytest
import torch

from tilewright.errors import Unsupported
from tilewright.ir import launch
from tilewright.ir.domains import ball
from tilewright.ir.domains.ball import Ball
from tilewright.ir.domains.symbolic import Symbolic
from tilewright.ir.domains.symbolic_text import LONGEST, TOO_LARGE, Reading, fold, plain
from tilewright.ir.domains.symbolic_words import Comparison
from tilewright.ir.program import Type
from tilewright.ir.torch_ops.calls import Calls
from tilewright.ir.torch_ops.context import Expected, Value

F32 = Type("f32")
N = 37


def part(v, low, high):
    return v.map(lambda t: t[low:high])


class Formulas:
    """``f.exp(x)`` applies the domain's function of that name; x and y are inputs of 37 elements."""

    def __init__(self, domain=None):
        self.d = domain or Ball()
        g = torch.Generator().manual_seed(3)
        self.x, self.y = (self.d.input(n, torch.randn(N, generator=g).abs() + 0.1) for n in "xy")

    def __getattr__(self, name):
        return lambda *args: self.d.apply(name, F32, tuple(map(self.lift, args)), "kernel.py:7")

    def lift(self, v):
        return self.d.constant(v, F32, "kernel.py:7") if isinstance(v, float) else v

    def sum(self, v, op="add"):
        while (n := v.shape[0]) > 1:
            left, right, rest = (part(v, a, b) for a, b in ((0, n // 2), (n // 2, 2 * (n // 2)), (2 * (n // 2), n)))
            both = self.d.apply(op, F32, (left, right), "kernel.py:5")
            v = type(v).combine(lambda ts: torch.cat([*ts]), [both, rest])
        return v

    def text(self, v, at=0):
        root = int(v.ids.reshape(-1)[at])
        return Reading(self.d.needed(root)).text(root)

    def words(self, kernel, reference, at=0):
        roots = [int(v.ids.expand(N)[at]) for v in (kernel, reference)]
        return Comparison(self.d, *roots).words()


TEXTS = {
    "an element": (lambda f: f.x, "x[0]"),
    "a sum": (lambda f: f.add(f.x, f.sub(f.y, 2.0)), "x[0] + y[0] - 2"),
    "a product": (lambda f: f.mul(f.div(f.x, f.y), 0.5), "0.5*x[0]/y[0]"),
    "a power": (lambda f: f.pow(f.add(f.x, 1.0), 2.0), "(x[0] + 1)^2"),
    "a named constant": (lambda f: f.mul(f.x, math.log2(math.e)), "log2(e)*x[0]"),
    "a root of a size": (lambda f: f.mul(f.x, 1 / math.sqrt(37)), "1/sqrt(37)*x[0]"),
    "a function": (lambda f: f.exp(f.neg(f.x)), "exp(-x[0])"),
    "a folded sum": (lambda f: f.sum(f.mul(f.x, f.y)), "sum_{j<37} x[j]*y[j]"),
    "a mean": (lambda f: f.div(f.sum(f.x), 37.0), "(sum_{j<37} x[j])/37"),
    "a maximum": (lambda f: f.sum(f.x, "maxnum"), "max_{j<37} x[j]"),
    "fma": (lambda f: f.fma(f.x, f.y, 1.0), "x[0]*y[0] + 1"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
    make, expected = TEXTS[name]
    f = Formulas()
    assert f.text(make(f)) == expected


def softmax(f, epsilon=None):
    e = f.exp(f.sub(f.x, f.sum(f.x, "maxnum")))
    total = f.sum(e)
    return f.div(e, total if epsilon is None else f.add(total, epsilon))


DIFFERENCES = {
    "an epsilon": (lambda f: softmax(f, 1e-6), softmax,
                   "the kernel adds 1e-06 to sum_{k<37} exp(x[k] - max_{j<37} x[j]); the reference does not"),
    "a term left out": (lambda f: f.add(f.x, 0.0), lambda f: f.add(f.x, f.y), "the kernel leaves out y[0] of x[0] + y[0]"),
    "a constant": (lambda f: f.erf(f.mul(f.x, 0.707)), lambda f: f.erf(f.mul(f.x, math.sqrt(0.5))),
                   "the kernel has 0.707 where the reference has 1/sqrt(2)"),
    "a factor": (lambda f: f.mul(f.exp(f.x), 0.5), lambda f: f.exp(f.x),
                 "the kernel multiplies by 0.5, the reference does not"),
    "a factor left out": (lambda f: f.exp(f.x), lambda f: f.mul(f.exp(f.x), f.y),
                          "the kernel leaves out the factor y[0]"),
    "a sign": (lambda f: f.neg(f.exp(f.x)), lambda f: f.exp(f.x),
               "the kernel has the opposite sign of the reference"),
    "another divisor": (lambda f: f.div(f.sum(f.x), 36.0), lambda f: f.div(f.sum(f.x), 37.0),
                        "the kernel has 36 where the reference has 37"),
    "a maximum of more": (lambda f: f.maxnum(f.sum(f.x, "maxnum"), 9.0), lambda f: f.sum(f.x, "maxnum"),
                          "the kernel's max includes 9, the reference's does not"),
    "a square": (lambda f: f.mul(f.add(f.x, 1.0), f.add(f.x, 1.0)), lambda f: f.pow(f.x, 2.0),
                 "the kernel adds 1 to x[0]; the reference does not"),
    "inside two functions": (lambda f: f.log(f.exp(f.add(f.x, 1e-9))), lambda f: f.log(f.exp(f.x)),
                             "the kernel adds 1e-09 to x[0]; the reference does not"),
    "another function": (lambda f: f.sin(f.x), lambda f: f.cos(f.x),
                         "the kernel has sin(x[0]) where the reference has cos(x[0])"),
    "multiplied out": (lambda f: f.add(f.add(f.mul(f.x, f.y), f.x), 1.0), lambda f: f.mul(f.x, f.add(f.y, 1.0)),
                       "the kernel adds 1 to x[0]*(y[0] + 1); the reference does not"),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_first_difference(name):
    kernel, reference, expected = DIFFERENCES[name]
    f = Formulas()
    found = f.words(kernel(f), reference(f))
    assert found.text == expected
    assert found.where == "kernel.py:7"


@pytest.mark.parametrize("name", DIFFERENCES)
def test_first_difference_without_enclosures(name, monkeypatch):
    """In float64 a term of 1e-9 is still seen, one of 1e-20 is not."""

    def absent():
        from tilewright.errors import EnvironmentProblem

        raise EnvironmentProblem("enclosures need python-flint")

    monkeypatch.setattr(ball, "flint", absent)
    kernel, reference, expected = DIFFERENCES[name]
    f = Formulas()
    assert f.words(kernel(f), reference(f)).text == expected


EQUAL = {
    "another order": lambda f: (f.sum(f.mul(f.x, f.y)), f.sum(f.mul(f.y, f.x).map(lambda t: t.flip(0)))),
    "another base": lambda f: (f.exp2(f.mul(f.x, math.log2(math.e))), f.exp(f.x)),
    "distributed": lambda f: (f.mul(f.x, f.add(f.y, 1.0)), f.add(f.mul(f.x, f.y), f.x)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_formulas_have_no_difference(name):
    pytest.importorskip("flint")
    f = Formulas()
    with pytest.raises(Unsupported, match="same value"):
        f.words(*EQUAL[name](f))


def test_an_epsilon_that_float64_loses():
    pytest.importorskip("flint")
    f = Formulas()
    assert f.words(softmax(f, 1e-20), softmax(f)).text.startswith("the kernel adds 1e-20 to sum_")


def attention(extra):
    torch.manual_seed(0)
    n, d = 100, 64
    domain = Ball()
    inputs = [domain.input(name, torch.randn(n, d)) for name in "qkv"]
    flat = [launch.Arg(t.map(lambda v: v.reshape(-1)), 0, torch.float16) for t in inputs]
    out = launch.Arg(torch.zeros(n * d), 0, torch.float16)
    got = launch.run(K.attention, (2, 1), (*flat, out, n, 0.125, d, 64, 64, False, extra), domain=domain).outputs["o"]
    whole = [Value(t.map(lambda v: v.reshape(1, 1, n, d)), torch.float16) for t in inputs]
    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    expected = (Expected((1, 1, n, d), torch.float16), Expected((1, 1, n), torch.float32))
    ours = Calls(domain).call(op, [*whole, 0.0, False], {}, expected)[0].data
    return Comparison(domain, int(got.ids[70 * d + 3]), int(ours.ids[0, 0, 70, 3]))


def test_online_attention_is_the_reference_and_its_mask_off_by_one_is_told():
    pytest.importorskip("flint")
    with pytest.raises(Unsupported, match="same value"):
        attention(0).words()
    found = attention(1).words()
    assert found.text.startswith("the kernel adds exp2(-max(")
    assert "to sum_{m<100} exp(0.125*(sum_{j<64} q[70,j]*k[m,j]) - max_{l<100}" in found.text
    assert found.text.endswith("the reference does not")
    assert "ir_kernels.py" in found.where


def test_what_is_too_large_is_said():
    f = Formulas()
    v = f.x
    for i in range(30):
        v = f.sin(f.add(f.mul(v, f.exp(v)), float(i)))
    assert TOO_LARGE in f.text(v)
    assert len(f.text(v)) <= LONGEST
    assert f.words(f.add(v, 1.0), v).text == f"the kernel adds 1 to {f.text(v)}; the reference does not"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["x[0]", "x[1]"], ["x[0]", "x[1]"]),
        (["x[2]", "x[3]", "x[4]"], ["sum_{j=2..4} x[j]"]),
        (["x[0,1]*y[1]", "x[0,2]*y[2]", "x[0,0]*y[0]"], ["sum_{j<3} x[0,j]*y[j]"]),
        (["x[0]*y[1]", "x[1]*y[2]", "x[2]*y[3]"], ["sum_{j<3} x[j]*y[j+1]"]),
        (["x[0]", "x[2]", "x[4]"], ["sum_{3 j in 0..4} x[j]"]),
        (["x[0,1]", "x[1,0]", "x[2,2]", "x[3,1]"], ["x[0,1]", "(… 3 more like it)"]),
        (["1", "1", "1"], ["3*1"]),
    ],
)
def test_folding(texts, expected):
    from tilewright.ir.domains.symbolic_text import fold_all

    assert fold_all("sum", texts) == expected
    assert fold("max", ["x[0]", "y[0]"]) == "max(x[0], y[0])"


def test_numbers():
    assert [plain(v) for v in (0.125, 1 / 3, -math.pi, 1e-6, math.inf)] == ["0.125", "1/3", "-pi", "1e-06", "inf"]


def test_order_of_stores_and_old_values_do_not_leak():
    """What is read before a store keeps its term."""
    d = Symbolic()
    held = d.input("x", torch.arange(4.0))
    view = held.map(lambda t: t[:2])
    d.put(held, torch.tensor([0]), d.input("y", torch.tensor([9.0])))
    assert d.node(int(view.ids[0])).name == "x"
    assert d.node(int(held.ids[0])).name == "y"


def test_a_value_of_data_in_integers_is_noted():
    d = Symbolic()
    x = d.input("x", torch.tensor([1.5, 2.5]))
    assert d.to_int(x, F32, Type("i32"), True, "kernel.py:2").tolist() == [1, 2]
    assert d.compare("olt", x, d.constant(2.0, F32, ""), "kernel.py:3").tolist() == [True, False]
    assert [(c.kind, c.where) for c in d.choices] == [("integer", "kernel.py:2"), ("olt", "kernel.py:3")]
