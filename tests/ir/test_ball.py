"""Enclosures: laws that hold to 80 bits, values against torch, steps and near-ties that are decided or said not to be."""

import math

import ir_kernels as K
import pytest
import torch

from tilewright.errors import Unsupported
from tilewright.ir import launch
from tilewright.ir.domains import ball
from tilewright.ir.domains.ball import Ball, Undecided
from tilewright.ir.domains.machine import FUNCTIONS as IN_FLOAT64
from tilewright.ir.program import Type

pytest.importorskip("flint")
F32 = Type("f32")


class Calculator:
    """Formulas over one tensor of numbers: ``c.exp(x)`` applies the domain's function of that name."""

    def __init__(self):
        self.d = Ball()

    def __getattr__(self, name):
        return lambda *args: self.d.apply(name, F32, args, "test")

    def x(self, *values):
        return self.d.input("x", torch.tensor(values, dtype=torch.float64))

    def number(self, v, elem="f32"):
        return self.d.constant(v, Type(elem), "test")


ONE, TWO = 1.0, 2.0
LAWS = {
    "add": lambda c, x, y, z: (c.add(c.add(x, y), z), c.add(x, c.add(y, z))),
    "sub": lambda c, x, y, z: (c.sub(c.add(x, y), y), x),
    "neg": lambda c, x, y, z: (c.neg(x), c.sub(c.number(0.0), x)),
    "mul": lambda c, x, y, z: (c.mul(x, c.add(y, z)), c.add(c.mul(x, y), c.mul(x, z))),
    "div": lambda c, x, y, z: (c.div(c.mul(x, y), y), x),
    "rcp": lambda c, x, y, z: (c.mul(c.rcp(x), x), c.number(ONE)),
    "fma": lambda c, x, y, z: (c.fma(x, y, z), c.add(c.mul(x, y), z)),
    "abs": lambda c, x, y, z: (c.abs(c.neg(x)), c.maxnum(x, c.neg(x))),
    "exp": lambda c, x, y, z: (c.exp(c.add(x, y)), c.mul(c.exp(x), c.exp(y))),
    "exp2": lambda c, x, y, z: (c.exp2(c.mul(x, c.number(math.log2(math.e)))), c.exp(x)),
    "exp10": lambda c, x, y, z: (c.exp10(c.mul(x, c.number(math.log10(math.e)))), c.exp(x)),
    "expm1": lambda c, x, y, z: (c.add(c.expm1(x), c.number(ONE)), c.exp(x)),
    "log": lambda c, x, y, z: (c.log(c.mul(x, y)), c.add(c.log(x), c.log(y))),
    "log2": lambda c, x, y, z: (c.mul(c.log2(x), c.number(math.log(2.0))), c.log(x)),
    "log10": lambda c, x, y, z: (c.mul(c.log10(x), c.number(math.log(10.0))), c.log(x)),
    "log1p": lambda c, x, y, z: (c.exp(c.log1p(x)), c.add(x, c.number(ONE))),
    "sigmoid": lambda c, x, y, z: (c.sigmoid(x), c.div(c.exp(x), c.add(c.exp(x), c.number(ONE)))),
    "tanh": lambda c, x, y, z: (c.tanh(x), c.div(c.sinh(x), c.cosh(x))),
    "sinh": lambda c, x, y, z: (c.mul(c.sinh(x), c.number(TWO)), c.sub(c.exp(x), c.exp(c.neg(x)))),
    "cosh": lambda c, x, y, z: (c.cosh(x), c.cosh(c.neg(x))),
    "sqrt": lambda c, x, y, z: (c.sqrt(c.mul(x, y)), c.mul(c.sqrt(x), c.sqrt(y))),
    "rsqrt": lambda c, x, y, z: (c.mul(c.rsqrt(x), c.sqrt(x)), c.number(ONE)),
    "hypot": lambda c, x, y, z: (c.hypot(x, y), c.sqrt(c.add(c.mul(x, x), c.mul(y, y)))),
    "pow": lambda c, x, y, z: (c.pow(x, c.number(3.0)), c.mul(x, c.mul(x, x))),
    "sin": lambda c, x, y, z: (c.sin(c.add(x, x)), c.mul(c.number(TWO), c.mul(c.sin(x), c.cos(x)))),
    "cos": lambda c, x, y, z: (c.add(c.mul(c.sin(x), c.sin(x)), c.mul(c.cos(x), c.cos(x))), c.number(ONE)),
    "tan": lambda c, x, y, z: (c.tan(x), c.div(c.sin(x), c.cos(x))),
    "sinpi": lambda c, x, y, z: (c.sinpi(x), c.sin(c.mul(x, c.number(math.pi)))),
    "cospi": lambda c, x, y, z: (c.cospi(x), c.cos(c.mul(x, c.number(math.pi)))),
    "atan": lambda c, x, y, z: (c.tan(c.atan(x)), x),
    "atan2": lambda c, x, y, z: (c.atan2(x, y), c.atan(c.div(x, y))),
    "asin": lambda c, x, y, z: (c.sin(c.asin(c.sigmoid(x))), c.sigmoid(x)),
    "acos": lambda c, x, y, z: (c.cos(c.acos(c.sigmoid(x))), c.sigmoid(x)),
    "asinh": lambda c, x, y, z: (c.asinh(c.sinh(x)), x),
    "acosh": lambda c, x, y, z: (c.acosh(c.cosh(x)), x),
    "atanh": lambda c, x, y, z: (c.atanh(c.tanh(x)), x),
    "erf": lambda c, x, y, z: (c.add(c.erf(x), c.erfc(x)), c.number(ONE)),
    "erfc": lambda c, x, y, z: (c.add(c.erfc(x), c.erfc(c.neg(x))), c.number(TWO)),
    "erfinv": lambda c, x, y, z: (c.erf(c.erfinv(c.sigmoid(x))), c.sigmoid(x)),
    "normcdf": lambda c, x, y, z: (c.add(c.normcdf(x), c.normcdf(c.neg(x))), c.number(ONE)),
    "lgamma": lambda c, x, y, z: (c.lgamma(c.add(x, c.number(ONE))), c.add(c.lgamma(x), c.log(x))),
    "maxnum": lambda c, x, y, z: (c.neg(c.maxnum(x, y)), c.minnum(c.neg(x), c.neg(y))),
    "maximum": lambda c, x, y, z: (c.add(c.maximum(x, y), c.minimum(x, y)), c.add(x, y)),
    "minnum": lambda c, x, y, z: (c.minnum(x, c.minnum(y, z)), c.minnum(c.minnum(z, y), x)),
    "minimum": lambda c, x, y, z: (c.minimum(x, y), c.minimum(y, x)),
    "clamp": lambda c, x, y, z: (c.clamp(x, y, z), c.minnum(c.maxnum(x, y), z)),
    "clamp_nan": lambda c, x, y, z: (c.clamp_nan(x, y, z), c.minimum(c.maximum(x, y), z)),
    "fdim": lambda c, x, y, z: (c.sub(c.fdim(x, y), c.fdim(y, x)), c.sub(x, y)),
    "copysign": lambda c, x, y, z: (c.copysign(x, c.neg(y)), c.neg(x)),
    "floor": lambda c, x, y, z: (c.floor(c.neg(x)), c.neg(c.ceil(x))),
    "ceil": lambda c, x, y, z: (c.ceil(x), c.add(c.floor(x), c.number(ONE))),
    "trunc": lambda c, x, y, z: (c.trunc(c.neg(x)), c.neg(c.floor(x))),
    "rint": lambda c, x, y, z: (c.rint(x), c.floor(c.add(x, c.number(0.5)))),
}  # fmt: skip
MUTANTS = {
    "exp2": lambda arb, x: x.exp(), "exp10": lambda arb, x: x.exp(),
    "expm1": lambda arb, x: x.exp(), "log": lambda arb, x: x.log1p(), "log2": lambda arb, x: x.log(),
    "log10": lambda arb, x: x.log(), "log1p": lambda arb, x: x.log(), "abs": lambda arb, x: x, "pow": lambda arb, x, y: x,
    "neg": lambda arb, x: x, "rcp": lambda arb, x: x, "sub": lambda arb, x, y: x, "add": lambda arb, x, y: x - y,
    "mul": lambda arb, x, y: x / y, "div": lambda arb, x, y: x * y, "fma": lambda arb, x, y, z: x * y,
    "minnum": lambda arb, x, y: x, "minimum": lambda arb, x, y: x, "maxnum": lambda arb, x, y: x,
    "maximum": lambda arb, x, y: x, "clamp": lambda arb, x, y, z: x, "clamp_nan": lambda arb, x, y, z: x,
    "fdim": lambda arb, x, y: x - y, "copysign": lambda arb, x, y: x,
}  # fmt: skip


def largest(name, law):
    """The largest gap of a law's two sides, relative, over numbers of either sign where the law allows."""
    c = Calculator()
    x, y, z = c.x(0.375, 1.1, 2.7), c.x(1.9, 0.2, 0.7), c.x(0.3, 1.7, 0.01)
    left, right = law(c, x, y, z)
    right = right.map(lambda t: t.expand(left.shape))
    gaps = [c.d.gap(a, b) for a, b in zip(left.ids.tolist(), right.ids.tolist(), strict=True)]
    return max(float(g.abs_upper()) for g in gaps)


@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    assert largest(name, LAWS[name]) < 1e-20


def test_every_function_has_a_law():
    assert set(LAWS) == set(ball.FUNCTIONS)


def cube(arb, *args):
    return args[0] * args[0] * args[0] + arb(1) / 3


@pytest.mark.parametrize("name", LAWS)
def test_mutant_of_a_function_is_seen(name, monkeypatch):
    monkeypatch.setitem(ball.FUNCTIONS, name, MUTANTS.get(name, cube))
    assert largest(name, LAWS[name]) > 1e-3


TWO_SIDED = ("add", "sub", "mul", "div", "pow", "atan2", "hypot", "copysign", "fdim", "maxnum", "minnum", "maximum",
             "minimum")  # fmt: skip


def sides(name):
    return 3 if name in ("fma", "clamp", "clamp_nan") else 2 if name in TWO_SIDED else 1


@pytest.mark.parametrize("name", sorted(set(ball.FUNCTIONS) & set(IN_FLOAT64)))
def test_value_is_that_of_float64(name):
    c = Calculator()
    args = [c.x(0.375), c.x(0.7), c.x(0.9)][: sides(name)]
    args = [c.x(1.5)] if name == "acosh" else args
    out = getattr(c, name)(*args)
    expected = float(IN_FLOAT64[name](*[a.near for a in args]))
    got = c.d.enclose(int(out.ids))
    assert float(got.rad()) < 1e-20
    assert float(got) == pytest.approx(expected, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize(
    "value", [1 / 3, math.pi, -math.sqrt(2 / math.pi), 1e-6, math.sqrt(0.5), 3.0, 1 / math.sqrt(37)]
)
def test_literals_are_the_numbers_they_stand_for(value):
    c = Calculator()
    for elem in ("f32", "f64"):
        rounded = float(torch.tensor(value, dtype=torch.float32 if elem == "f32" else torch.float64))
        got = c.d.enclose(int(c.number(rounded, elem).ids))
        assert abs(float(got) - value) < 1e-16 * max(1.0, abs(value))
        assert float(got.rad()) < 1e-20


def test_a_difference_below_float64_is_told_from_none():
    """log(1 + t) and t differ by t²/2, which float64 loses for t = 1e-20."""
    c = Calculator()
    t = c.x(1e-20)
    near = c.d.gap(int(c.log1p(t).ids), int(t.ids))
    assert near < 0
    assert float(near) == pytest.approx(-0.5e-40)
    same = c.d.gap(int(c.log(c.add(t, c.number(ONE))).ids), int(c.log1p(t).ids))
    assert same.contains(0)


@pytest.mark.parametrize("step", ["floor", "ceil", "rint", "trunc"])
def test_a_number_at_a_step_is_undecided(step):
    c = Calculator()
    x = c.x(2.0)
    one = c.mul(c.sqrt(x), c.sqrt(x))  # exactly 2, which no ball shows
    one = c.add(one, c.number(0.5)) if step == "rint" else one
    with pytest.raises(Undecided, match="too close to a step"):
        c.d.enclose(int(getattr(c, step)(one).ids))


def test_doubtful_comparisons_are_told():
    c = Calculator()
    x = c.x(2.0, 5.0)
    two = c.mul(c.sqrt(x), c.sqrt(x))
    c.d.compare("olt", c.x(1.0, 1.0), x, "kernel.py:3")
    assert c.d.doubtful() == ""
    c.d.compare("olt", two, c.add(x, c.number(1e-12)), "kernel.py:4")  # near, and decided
    assert c.d.doubtful() == ""
    c.d.compare("olt", two, x, "kernel.py:5")
    assert c.d.doubtful() == "a comparison of nearly equal numbers at kernel.py:5"


def test_a_comparison_that_float64_decides_wrongly_is_doubtful():
    c = Calculator()
    t = c.x(1e-20)
    c.d.compare("ogt", c.add(t, c.number(ONE)), c.number(ONE), "kernel.py:5")  # true, but not in float64
    assert "kernel.py:5" in c.d.doubtful()


def test_a_function_without_enclosure_is_unsupported():
    c = Calculator()
    with pytest.raises(Unsupported, match="rem in the ball domain"):
        c.d.enclose(int(c.rem(c.x(5.0), c.x(3.0)).ids))


def softmax_element(kernel, x):
    d = Ball()
    n = x.shape[1]
    out = launch.run(kernel, (len(x),), (launch.Arg(d.input("x", x.reshape(-1)), 0, torch.float32), torch.zeros(x.numel()),
                                         n, n, 128), domain=d).outputs["y"]  # fmt: skip
    return d, int(out.ids[n + 3])


def test_one_element_of_a_kernel():
    x = torch.randn(3, 100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    d, root = softmax_element(K.softmax, x)
    got = d.enclose(root)
    assert float(got.rad()) < 1e-24
    assert float(got) == pytest.approx(float(x.softmax(-1)[1, 3]), rel=1e-14)
    assert {n.index[0] for n in d.needed(root).values() if n.op == "input"} == set(range(100, 200))  # its row alone


def test_dot_product_and_atomics():
    torch.manual_seed(0)
    a, b = torch.randn(16, 32, dtype=torch.float64), torch.randn(32, 16, dtype=torch.float64)
    d = Ball()
    t = Type("f32")
    out = d.dot(d.input("a", a), d.input("b", b), d.exact(torch.zeros(16, 16)), t, t, t, "ieee", "here")
    assert float(d.enclose(int(out.ids[3, 5]))) == pytest.approx(float((a @ b)[3, 5]), rel=1e-13)
    index = torch.tensor([0, 1, 0, 0])
    added = d.add_at(d.exact(torch.zeros(2)), index, d.input("v", torch.tensor([1.0, 2.0, 3.0, 4.0])), t)
    assert [float(d.enclose(int(i))) for i in added.ids] == [8.0, 2.0]


def test_a_slice_too_large_is_unsupported():
    d = Ball()
    x = d.input("x", torch.ones(4, 4000))
    t = Type("f32")
    out = d.dot(x, x.map(lambda v: v.T), d.exact(torch.zeros(4, 4)), t, t, t, "ieee", "here")
    with pytest.raises(Unsupported, match="depends on more than 1000 terms"):
        d.needed(int(out.ids[0, 0]), most=1000)


def test_a_term_of_no_dims():
    c = Calculator()
    x = c.d.input("x", torch.tensor(0.3, dtype=torch.float64))
    out = c.exp(x)
    assert out.shape == ()
    assert float(c.d.enclose(int(out.ids))) == pytest.approx(1.3498588075760032)
    assert [(n.op, n.index) for n in c.d.needed(int(out.ids)).values()] == [("input", ()), ("exp", ())]


def test_several_roots_share_what_they_need():
    c = Calculator()
    shared = c.exp(c.x(0.3))
    roots = [int(c.sin(shared).ids), int(c.cos(shared).ids)]
    needed = c.d.needed(*roots)
    assert list(needed) == sorted(needed), "arguments before what uses them"
    assert sorted(n.op for n in needed.values()) == ["cos", "exp", "input", "sin"]


def test_enclosures_end_when_their_time_is_up():
    d = Ball(seconds=0.0)
    x = d.input("x", torch.tensor([0.3]))
    with pytest.raises(Undecided, match="take longer than 0 s to enclose"):
        d.enclose(int(x.ids))
