"""Derived error bounds hold for the machine's results, and are not far above them."""

import ir_kernels as K
import pytest
import torch

from tilewright.errors import Unsupported
from tilewright.ir import launch
from tilewright.ir.domains import bound
from tilewright.ir.domains.bound import Bound, Bounded
from tilewright.ir.domains.machine import FUNCTIONS, Machine
from tilewright.ir.program import Type

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
TWO = (
    "add",
    "sub",
    "mul",
    "div",
    "maxnum",
    "minnum",
    "maximum",
    "minimum",
    "pow",
    "atan2",
    "copysign",
    "hypot",
    "fdim",
)
ARGUMENTS = {"fma": 3, "clamp": 3, "clamp_nan": 3} | dict.fromkeys(TWO, 2)
ODD = {"nextafter", "ldexp", "saturate", "j0", "j1", "i0", "i1", "erfcx", "tgamma", "rem", "normcdfinv"}
NAMES = sorted(set(FUNCTIONS) - ODD)
FROM_ONE = ("acosh",)


def numbers(name, dtype, n=400):
    """Arguments that carry an error of their own: sums of two inputs."""
    g = torch.Generator().manual_seed(len(name))
    made = []
    for i in range(ARGUMENTS.get(name, 1)):
        a, b = (torch.rand(n, generator=g) * 0.4 + 0.05 + (1.0 if name in FROM_ONE else 0.0) for _ in "ab")
        made.append((a.to(dtype), (b - 0.1 * i).abs().to(dtype)))
    return made


def both(name, elem):
    """Machine's results and the bound's."""
    t, real, machine = Type(elem), Bound(), Machine()
    pairs = numbers(name, DTYPES[elem])
    exact = [real.apply("add", t, (real.exact(a), real.exact(b)), "") for a, b in pairs]
    held = [machine.apply("add", t, (a, b), "") for a, b in pairs]
    return machine.apply(name, t, tuple(held), ""), real.apply(name, t, tuple(exact), "")


@pytest.mark.parametrize("elem", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_bound_holds(name, elem):
    got, said = both(name, elem)
    off = (got.double() - said.value).abs()
    assert bool((off <= said.error * 1.05 + 1e-30).all())
    assert name in bound.STEPS or bool((said.error <= 600 * bound.UNIT[elem] * (1 + said.value.abs())).all())


@pytest.mark.parametrize("name", ["exp", "mul", "add", "div", "sqrt", "log", "sin"])
def test_a_bound_that_forgets_the_arguments_errors_is_seen(name, monkeypatch):
    monkeypatch.setattr(
        bound, "_passed_on", lambda fn, args: (fn(*[a.value for a in args]), torch.zeros(args[0].shape))
    )
    monkeypatch.setattr(bound, "ELEMENTARY", 1.0)
    got, said = both(name, "bf16")
    assert bool(((got.double() - said.value).abs() > said.error).any())


@pytest.mark.parametrize("elem", DTYPES)
def test_a_bound_that_forgets_its_own_rounding_is_seen(elem, monkeypatch):
    monkeypatch.setitem(bound.UNIT, elem, 0.0)
    got, said = both("mul", elem)
    assert bool(((got.double() - said.value).abs() > said.error).any())


def launched(kernel, grid, arguments, output, domain):
    args = [launch.Arg(domain.exact(a), 0, a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments]
    return launch.run(kernel, grid, args, domain=domain).outputs[output]


def softmax_call(dtype):
    x = torch.randn(10, 100, generator=torch.Generator().manual_seed(0)).to(dtype)
    return (x.reshape(-1), torch.zeros(1000, dtype=dtype), 100, 100, 128)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_kernel(dtype):
    said = launched(K.softmax, (10,), softmax_call(dtype), "y", Bound())
    got = launch.run(K.softmax, (10,), softmax_call(dtype)).outputs["y"]
    off = (got.double() - said.value).abs()
    assert bool((off <= said.error).all())
    assert bool((said.error > 0).all())
    assert float((said.error / said.value).max()) < 100 * torch.finfo(dtype).eps


@pytest.mark.parametrize(("precision", "least"), [("ieee", 0.0), ("tf32", 1e-4)])
def test_dots(precision, least):
    torch.manual_seed(0)
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    call = (a.reshape(-1), b.reshape(-1), torch.zeros(4096), 64, 64, 64, 64, 1, 64, 1, 64, 1, 64, 64, 32, precision)
    said = launched(K.matmul, (1, 1), call, "c", Bound())
    got = launch.run(K.matmul, (1, 1), call).outputs["c"].reshape(-1)
    assert bool(((got.double() - said.value).abs() <= said.error).all())
    assert float(said.error.min()) > least


def test_sums_count_the_depth_of_their_additions():
    t = Type("f32")
    ones = torch.ones(64)

    def error(sequential):
        d = Bound()
        values = [d.exact(ones[i : i + 1]) for i in range(64)]
        while len(values) > 1:
            if sequential:
                values = [d.apply("add", t, (values[0], values[1]), ""), *values[2:]]
            else:
                values = [d.apply("add", t, (a, b), "") for a, b in zip(values[::2], values[1::2], strict=True)]
        return float(values[0].error) / (64 * bound.UNIT["f32"])

    assert error(sequential=False) == pytest.approx(6)
    assert 30 < error(sequential=True) < 33


def test_atomics_and_casts():
    d, t = Bound(), Type("f32")
    added = d.add_at(d.exact(torch.zeros(2)), torch.tensor([0, 0, 1]), d.exact(torch.tensor([1.0, 2.0, 4.0])), t)
    assert added.value.tolist() == [3.0, 4.0]
    assert (added.error / bound.UNIT["f32"]).tolist() == [6.0, 4.0]
    half = d.cast(d.exact(torch.tensor([3.0])), t, Type("f16"), "rtne", "")
    assert float(half.error) == 3 * bound.UNIT["f16"]
    assert float(d.cast(half, Type("f16"), t, "rtne", "").error) == float(half.error)


def test_infinities_and_zeros_carry_no_error():
    d, t = Bound(), Type("f32")
    x = d.exact(torch.tensor([-torch.inf, 0.0]))
    shifted = d.apply("sub", t, (x, Bounded(torch.ones(2).double(), torch.full((2,), 1e-3).double())), "")
    e = d.apply("exp", t, (shifted,), "")
    assert e.value[0] == 0
    assert e.error[0] == 0
    assert e.error[1] > 1e-4


def test_literals_carry_the_error_of_their_rounding():
    d = Bound()
    rounded = d.constant(0.10000000149011612, Type("f32"), "")
    assert float(rounded.value) == 0.1
    assert 1e-9 < float(rounded.error) < 2e-9
    assert float(d.constant(0.5, Type("f32"), "").error) == 0


def test_an_unknown_function_is_unsupported():
    with pytest.raises(Unsupported, match="frobnicate in the bound domain"):
        Bound().apply("frobnicate", Type("f32"), (Bound().exact(torch.ones(1)),), "kernel.py:3")


def divergence(d, x, y):
    """Twice the Jensen-Shannon divergence, by terms that cancel."""
    t = Type("f64")

    def f(name, *args):
        return d.apply(name, t, args, "")

    half = d.constant(0.5, t, "")
    m = f("mul", half, f("add", x, y))
    entropy = f("add", f("mul", x, f("log", x)), f("mul", y, f("log", y)))
    return f("sub", entropy, f("mul", d.constant(2.0, t, ""), f("mul", m, f("log", m))))


def test_what_float64_loses_is_bounded_by_its_own_roundings():
    """Against enclosures, where what is left after cancellation is mostly rounding."""
    pytest.importorskip("flint")
    from tilewright.ir.domains.ball import Ball

    p = torch.rand(50, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.1
    q = p * (1 + 1e-9)
    own, exact = Bound(2.0**-53), Ball()
    said = divergence(own, own.input(p), own.input(q))
    true = divergence(exact, exact.input("p", p), exact.input("q", q))
    off = torch.tensor(
        [abs(float(exact.enclose(i) - v)) for i, v in zip(true.ids.tolist(), said.value.tolist(), strict=True)]
    )
    assert float((off / said.value.abs()).max()) > 1, "float64 has lost all of it"
    assert bool((off <= said.error).all())
    assert float(said.error.max()) < 1e-14
