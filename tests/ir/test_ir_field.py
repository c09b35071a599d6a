"""The field domain: laws that must hold, formulas that must differ, kernels and their mutants."""

import math

import ir_kernels as K
import pytest
import torch

from tilewright.errors import Unsupported
from tilewright.ir import launch
from tilewright.ir.domains import field_functions, residues
from tilewright.ir.domains.field import Field
from tilewright.ir.domains.field_value import FieldValue
from tilewright.ir.launch import Arg
from tilewright.ir.program import Type

F32 = Type("f32")


class Calculator:
    """Formulas over one draw: ``c.exp(x)`` applies the domain's function of that name."""

    def __init__(self, seed=0):
        self.f = Field(seed)

    def __getattr__(self, name):
        return lambda *args: self.f.apply(name, F32, args, "test")

    def x(self, n=200):
        return self.f.random((n,))

    def number(self, v, elem="f32"):
        return self.f.constant(v, Type(elem), "test")


def law_table():
    one, two = 1.0, 2.0
    return {
        "add commutes": ("add", lambda c, x, y, z: (c.add(x, y), c.add(y, x))),
        "add associates": ("add", lambda c, x, y, z: (c.add(c.add(x, y), z), c.add(x, c.add(y, z)))),
        "sub undoes add": ("sub", lambda c, x, y, z: (c.sub(c.add(x, y), y), x)),
        "neg is sub from zero": ("neg", lambda c, x, y, z: (c.add(c.neg(x), x), c.sub(x, x))),
        "mul commutes": ("mul", lambda c, x, y, z: (c.mul(x, y), c.mul(y, x))),
        "mul distributes": ("mul", lambda c, x, y, z: (c.mul(x, c.add(y, z)), c.add(c.mul(x, y), c.mul(x, z)))),
        "div undoes mul": ("div", lambda c, x, y, z: (c.div(c.mul(x, y), y), x)),
        "rcp": ("rcp", lambda c, x, y, z: (c.mul(c.rcp(x), x), c.number(one))),
        "fma": ("fma", lambda c, x, y, z: (c.fma(x, y, z), c.add(c.mul(x, y), z))),
        "exp of a sum": ("exp", lambda c, x, y, z: (c.exp(c.add(x, y)), c.mul(c.exp(x), c.exp(y)))),
        "exp2 with log2 e is exp": ("exp2", lambda c, x, y, z: (
            c.exp2(c.mul(x, c.number(math.log2(math.e)))), c.exp(x))),
        "exp10 with log10 e": ("exp10", lambda c, x, y, z: (c.exp10(c.mul(x, c.number(math.log10(math.e)))), c.exp(x))),
        "expm1": ("expm1", lambda c, x, y, z: (c.add(c.expm1(x), c.number(one)), c.exp(x))),
        "log of a product": ("log", lambda c, x, y, z: (c.log(c.mul(x, y)), c.add(c.log(x), c.log(y)))),
        "exp undoes log": ("log", lambda c, x, y, z: (c.exp(c.log(x)), x)),
        "log2 with ln 2 is log": ("log2", lambda c, x, y, z: (c.mul(c.log2(x), c.number(math.log(2))), c.log(x))),
        "log times a decimal": ("mul", lambda c, x, y, z: (
            c.add(c.mul(c.number(0.9), c.log(x)), c.mul(c.number(0.1), c.log(x))), c.mul(c.number(1.0), c.log(x)))),
        "log times data": ("log", lambda c, x, y, z: (
            c.mul(y, c.log(c.mul(x, z))), c.add(c.mul(y, c.log(x)), c.mul(c.log(z), y)))),
        "log times a quotient": ("div", lambda c, x, y, z: (
            c.div(c.mul(c.log(x), y), c.mul(z, y)), c.div(c.log(x), z))),
        "log1p": ("log1p", lambda c, x, y, z: (c.exp(c.log1p(x)), c.add(x, c.number(one)))),
        "softplus of a shifted sum": ("exp", lambda c, x, y, z: (
            c.add(z, c.log(c.add(c.exp(c.sub(x, z)), c.exp(c.sub(y, z))))), c.log(c.add(c.exp(x), c.exp(y))))),
        "sigmoid": ("sigmoid", lambda c, x, y, z: (c.sigmoid(x), c.div(c.exp(x), c.add(c.exp(x), c.number(one))))),
        "tanh by sigmoid": ("tanh", lambda c, x, y, z: (
            c.tanh(x), c.sub(c.mul(c.number(two), c.sigmoid(c.add(x, x))), c.number(one)))),
        "tanh is sinh by cosh": ("sinh", lambda c, x, y, z: (c.tanh(x), c.div(c.sinh(x), c.cosh(x)))),
        "cosh is even": ("cosh", lambda c, x, y, z: (c.cosh(x), c.cosh(c.neg(x)))),
        "sqrt of a product": ("sqrt", lambda c, x, y, z: (c.sqrt(c.mul(x, y)), c.mul(c.sqrt(x), c.sqrt(y)))),
        "rsqrt": ("rsqrt", lambda c, x, y, z: (c.mul(c.rsqrt(x), c.sqrt(x)), c.number(one))),
        "max commutes": ("maxnum", lambda c, x, y, z: (c.maxnum(x, y), c.maxnum(y, x))),
        "max associates": ("maxnum", lambda c, x, y, z: (c.maxnum(x, c.maxnum(y, z)), c.maxnum(c.maxnum(z, y), x))),
        "max and min": ("minnum", lambda c, x, y, z: (c.neg(c.maxnum(x, y)), c.minnum(c.neg(x), c.neg(y)))),
        "max or min": ("minimum", lambda c, x, y, z: (c.add(c.maximum(x, y), c.minimum(x, y)), c.add(x, y))),
        "max takes one": ("maximum", lambda c, x, y, z: (
            c.maximum(x, y), c.f.select(c.f.compare("oge", x, y, ""), x, y))),
        "clamp": ("clamp", lambda c, x, y, z: (c.clamp(x, y, z), c.minnum(c.maxnum(x, y), z))),
        "abs is even": ("abs", lambda c, x, y, z: (c.abs(c.neg(x)), c.abs(x))),
        "abs is max": ("abs", lambda c, x, y, z: (c.abs(x), c.maxnum(x, c.neg(x)))),
        "pow": ("pow", lambda c, x, y, z: (c.pow(x, c.number(3.0)), c.mul(x, c.mul(x, x)))),
        "pow of a half": ("pow", lambda c, x, y, z: (c.pow(x, c.number(-0.5)), c.rsqrt(x))),
        "erf is odd": ("erf", lambda c, x, y, z: (c.erf(c.neg(x)), c.neg(c.erf(x)))),
        "cos is even": ("cos", lambda c, x, y, z: (c.cos(c.neg(x)), c.cos(x))),
        "equal arguments": ("sin", lambda c, x, y, z: (c.sin(c.sub(c.add(x, y), y)), c.sin(x))),
        "sqrt(2/pi)": ("sqrt", lambda c, x, y, z: (
            c.number(math.sqrt(2 / math.pi)), c.sqrt(c.div(c.number(two), c.number(math.pi))))),
        "1/sqrt(d)": ("rsqrt", lambda c, x, y, z: (c.number(72.0**-0.5), c.rsqrt(c.number(72.0)))),
    }  # fmt: skip


LAWS = law_table()


def agree(c, pair):
    assert not any(bool(c.f.classify("isnan", v, "").all()) for v in pair), "nothing but NaN to compare"
    return bool(c.f.equal(*pair).all())


def lopsided(right):
    """A mutant that adds three times the first plain argument and one (to the exponential, for logarithms)."""

    def mutant(f, where, *args):
        out = right(f, where, *args)
        plain = next(a for a in args if not bool(a.p.isnan().any()))
        first = plain.map(lambda t: t.expand(out.p.shape))
        if out.e is not None:
            return FieldValue(out.p, out.q, residues.mul(out.e, first.p + 3, residues.P), out.base)
        return field_functions.add(f, where, out, FieldValue(residues.mod(3 * first.p + 1, residues.P), first.q))

    return mutant


def forgetful(right):
    """A mutant that gives another value each time."""
    return lambda f, where, *args: field_functions.add(f, where, right(f, where, *args), f.random(args[0].shape))


@pytest.mark.parametrize("name", LAWS)
def test_law_holds_and_mutant_breaks_it(name, monkeypatch):
    function, law = LAWS[name]
    for seed in range(3):
        c = Calculator(seed)
        assert agree(c, law(c, c.x(), c.x(), c.x())), name
    mutant = forgetful if name == "equal arguments" else lopsided
    right = field_functions.FUNCTIONS[function]
    monkeypatch.setitem(field_functions.FUNCTIONS, function, mutant(right))
    c = Calculator(7)
    assert not agree(c, law(c, c.x(), c.x(), c.x())), f"{name} still holds with a wrong {function}"


DIFFERENT = {
    "exp of a product": lambda c, x, y, z: (c.exp(c.mul(x, y)), c.mul(c.exp(x), c.exp(y))),
    "relu is not the identity": lambda c, x, y, z: (c.maxnum(x, c.number(0.0)), x),
    "clamp has bounds": lambda c, x, y, z: (c.clamp(x, c.number(-1.0), c.number(1.0)), x),
    "an epsilon": lambda c, x, y, z: (c.div(x, c.add(y, c.number(1e-6))), c.div(x, y)),
    "a constant of three digits": lambda c, x, y, z: (c.mul(x, c.number(0.0447)), c.mul(x, c.number(0.044715))),
    "log2 e of five digits": lambda c, x, y, z: (c.exp2(c.mul(x, c.number(1.4427))), c.exp(x)),
    "silu is not x exp x": lambda c, x, y, z: (c.mul(x, c.sigmoid(x)), c.mul(x, c.exp(x))),
    "sin is not cos": lambda c, x, y, z: (c.sin(x), c.cos(x)),
    "sqrt of a sum": lambda c, x, y, z: (c.sqrt(c.add(x, y)), c.add(c.sqrt(x), c.sqrt(y))),
    "log of a sum": lambda c, x, y, z: (c.log(c.add(x, y)), c.add(c.log(x), c.log(y))),
    "a scaled log": lambda c, x, y, z: (c.mul(c.number(0.9), c.log(x)), c.mul(c.number(0.8), c.log(x))),
    "log times other data": lambda c, x, y, z: (c.mul(y, c.log(x)), c.mul(z, c.log(x))),
    "max is not min": lambda c, x, y, z: (c.maxnum(x, y), c.minnum(x, y)),
    "sign of a difference": lambda c, x, y, z: (c.sub(x, y), c.sub(y, x)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_formulas_differ(name):
    c = Calculator(1)
    assert not agree(c, DIFFERENT[name](c, c.x(), c.x(), c.x()))


def test_literals_within_a_rounding_of_their_decimal_are_that_decimal():
    c = Calculator()
    as_f32 = torch.tensor(0.044715).item()
    assert agree(c, (c.number(as_f32), c.number(0.044715, "f64")))
    assert agree(c, (c.number(torch.tensor(1e-5).item()), c.number(1e-5, "f64")))
    assert agree(c, (c.number(torch.tensor(1.44269504).item()), c.number(math.log2(math.e), "f64")))
    assert not agree(c, (c.number(1e-5), c.number(1.01e-5)))


def test_constants_compare_as_numbers():
    c = Calculator()
    five, seven = c.number(5.0), c.number(7.25)
    for predicate, want in (("olt", True), ("oge", False), ("oeq", False)):
        assert c.f.compare(predicate, five, seven, "").item() is want
    assert agree(c, (c.maxnum(five, seven), seven))


def test_infinities_are_flags():
    c = Calculator()
    x, low = c.x(), c.number(-math.inf)
    assert agree(c, (c.exp(low), c.number(0.0)))
    assert agree(c, (c.maxnum(x, low), x))
    assert agree(c, (c.add(low, x), low))
    assert bool(c.f.classify("isnan", c.sub(low, low), "").all())
    assert bool(c.f.classify("isinf", c.log(c.number(0.0)), "").all())
    assert agree(c, (c.div(x, c.number(math.inf)), c.number(0.0)))
    assert bool(torch.isnan(c.div(x, c.sub(x, x)).p).all())
    assert bool(torch.isnan(c.mul(c.number(0.0), low).p).all())


def test_the_constant_zero_swallows_whatever_is_finite():
    c = Calculator()
    x = c.x()
    for other in (x, c.exp(x), c.log(x)):
        assert agree(c, (c.exp(c.mul(other, c.number(0.0))), c.number(1.0)))


def test_a_factor_of_an_infinity_of_unknown_sign_is_an_assumption():
    c = Calculator()
    assert agree(c, (c.mul(c.number(-math.inf), c.number(2.0)), c.number(-math.inf)))
    assert agree(c, (c.mul(c.number(-math.inf), c.number(-2.0)), c.number(math.inf)))
    assert not c.f.ledger.assumptions
    c.mul(c.number(-math.inf), c.x())
    assert c.f.ledger.assumptions == {("test", "a factor of an infinity is positive")}


def test_what_the_field_cannot_say_is_unsupported():
    c = Calculator()
    with pytest.raises(Unsupported, match="exponential of an exponential"):
        c.exp(c.exp(c.x()))
    with pytest.raises(Unsupported, match="logarithm in value position"):
        c.mul(c.log(c.x()), c.exp(c.x()))
    with pytest.raises(Unsupported, match="logarithm that was scaled"):
        c.exp(c.mul(c.log(c.x()), c.x()))
    with pytest.raises(Unsupported, match="natural and binary logarithms meet"):
        c.add(c.log(c.x()), c.log2(c.x()))
    with pytest.raises(Unsupported, match="integer made from data"):
        c.f.to_int(c.x(), F32, Type("i32"), True, "test")
    with pytest.raises(Unsupported, match="bits of a float"):
        c.f.to_bits(c.x(), F32, "test")


def test_residues_of_floats_are_exact():
    values = torch.tensor([0.5, -3.0, 1e-3, 123456.789, 2.0**-140, 0.0])
    got = residues.of_float(values.double(), residues.P)
    for v, g in zip(values.tolist(), got.tolist(), strict=True):
        n, d = v.as_integer_ratio()
        assert g == n * pow(d, -1, residues.P) % residues.P


def test_matmul_of_residues_is_exact():
    a, b = (torch.randint(0, residues.P, (17, 300)), torch.randint(0, residues.P, (300, 5)))
    exact = [[sum(int(x) * int(y) for x, y in zip(r, c, strict=True)) % residues.P for c in b.T] for r in a]
    assert residues.matmul(a.double(), b.double(), residues.P).tolist() == exact


# -- kernels


def inputs(f, *sizes, dtype=torch.float32):
    return [Arg(f.random((n,)), 0, dtype) for n in sizes]


def output(f, n, dtype=torch.float32):
    return Arg(f.exact(torch.zeros(n)), 0, dtype)


def rows(v, r, c):
    return v.map(lambda t: t.reshape(r, c))


def row_sum(v):
    """Sums of the last axis, kept."""
    q = None if v.q is None else residues.mod(v.q.sum(-1, keepdim=True), residues.Q)
    return FieldValue(residues.mod(v.p.sum(-1, keepdim=True), residues.P), q)


def wide(v, n):
    return v.map(lambda t: t.expand(t.shape[0], n))


def reference_softmax(c, x, r, n):
    e = c.exp(rows(x, r, n))
    return c.div(e, wide(row_sum(e), n)).map(lambda t: t.reshape(-1))


@pytest.mark.parametrize(
    ("kernel", "equal"), [(K.softmax, True), (K.softmax_with_epsilon, False), (K.softmax_no_other, False)]
)
def test_softmax(kernel, equal):
    c = Calculator(1)
    (x,) = inputs(c.f, 10 * 100)
    result = launch.run(kernel, (10,), (x, output(c.f, 1000), 100, 100, 128), domain=c.f)
    assert agree(c, (result.outputs["y"], reference_softmax(c, x.storage, 10, 100))) is equal


def reference_attention(c, q, k, v, n, d, scale, causal):
    q, k, v = (rows(t, n, d) for t in (q, k, v))
    zero = wide(c.f.exact(torch.zeros(n, 1)), n)
    s = c.f.dot(q, k.map(lambda t: t.T), zero, F32, F32, F32, "", "")
    e = c.exp(c.mul(s, c.f.scalar(scale, F32)))
    if causal:
        e = FieldValue(torch.where(torch.tril(torch.ones(n, n)) > 0, e.p, 0.0), None)
    out = FieldValue(residues.matmul(e.p, v.p, residues.P), None)
    return c.div(out, wide(row_sum(e), d)).map(lambda t: t.reshape(-1))


@pytest.mark.parametrize(
    ("n", "causal", "slack", "equal"),
    [(100, False, 0, True), (100, True, 0, True), (100, False, 1, False), (100, True, 1, True), (128, False, 1, True)],
)
def test_flash_attention_and_its_off_by_one_mask(n, causal, slack, equal):
    """The mutant's extra key is out of reach where the tile divides n, and behind the causal mask."""
    c = Calculator(2)
    q, k, v = inputs(c.f, *[n * 64] * 3, dtype=torch.float16)
    args = (q, k, v, output(c.f, n * 64, torch.float16), n, 0.125, 64, 64, 64, causal, slack)
    result = launch.run(K.attention, (-(-n // 64), 1), args, domain=c.f)
    expected = reference_attention(c, q.storage, k.storage, v.storage, n, 64, 0.125, causal)
    assert agree(c, (result.outputs["o"], expected)) is equal


def test_layernorm_by_welford_equals_two_passes():
    c = Calculator(3)
    n, r = 100, 7
    x, w, b = inputs(c.f, r * n, n, n)
    result = launch.run(K.layernorm, (r,), (x, w, b, output(c.f, r * n), n, 1e-5, 128), domain=c.f)
    v = rows(x.storage, r, n)
    count = c.number(float(n))
    centred = c.sub(v, wide(c.div(row_sum(v), count), n))
    variance = c.div(row_sum(c.mul(centred, centred)), count)
    scale = c.rsqrt(c.add(variance, c.number(1e-5)))
    expected = c.add(c.mul(c.mul(centred, wide(scale, n)), rows(w.storage, 1, n)), rows(b.storage, 1, n))
    assert agree(c, (result.outputs["y"], expected.map(lambda t: t.reshape(-1))))


def test_online_logsumexp_equals_its_definition():
    c = Calculator(4)
    (x,) = inputs(c.f, 5 * 100)
    result = launch.run(K.logsumexp, (5,), (x, output(c.f, 5), 100, 32), domain=c.f)
    expected = c.log(row_sum(c.exp(rows(x.storage, 5, 100)))).map(lambda t: t.reshape(-1))
    assert agree(c, (result.outputs["y"], expected))


@pytest.mark.parametrize(("coefficient", "equal"), [(0.044715, True), (0.0447, False)])
def test_gelu_with_a_cut_constant_differs(coefficient, equal):
    c = Calculator(5)
    (x,) = inputs(c.f, 100)
    result = launch.run(K.gelu_tanh, (4,), (x, output(c.f, 100), 100, coefficient, 32), domain=c.f)
    v = x.storage
    cube = c.mul(v, c.mul(v, v))
    inner = c.mul(c.number(math.sqrt(2 / math.pi)), c.add(v, c.mul(c.number(0.044715), cube)))
    expected = c.mul(c.mul(c.number(0.5), v), c.add(c.number(1.0), c.tanh(inner)))
    assert agree(c, (result.outputs["y"], expected)) is equal


def test_matmul_and_its_ledger():
    c = Calculator(6)
    a, b = inputs(c.f, 60 * 50, 50 * 70, dtype=torch.float16)
    args = (a, b, output(c.f, 60 * 70, torch.float16), 60, 70, 50, 50, 1, 70, 1, 70, 1, 64, 64, 32, "tf32")
    result = launch.run(K.matmul, (1, 2), args, domain=c.f)
    expected = residues.matmul(a.storage.p.reshape(60, 50), b.storage.p.reshape(50, 70), residues.P)
    assert torch.equal(result.outputs["c"].p.reshape(60, 70), expected)
    assert [(k[1], k[2], k[3], k[5]) for k in result.ledger.dots] == [("f16", "f16", "f32", 32)]
    assert [(k[1], k[2]) for k in result.ledger.casts] == [("f32", "f16")]
