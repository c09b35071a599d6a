"""Adding 1.5 * 2**23 rounds, in domains that know no rounding; nothing else does."""

import pytest
import torch

from tilewright.ir.domains.ball import Ball
from tilewright.ir.domains.field import Field
from tilewright.ir.domains.machine import Machine
from tilewright.ir.domains.magic import limit
from tilewright.ir.domains.real import Real
from tilewright.ir.program import Type

X = [0.5, 1.5, 2.5, -0.5, -1.5, 3.25, -7.75, 0.0, 127.0]


def trick(d, x, elem="f32", constant=12582912.0):
    t = Type(elem)
    c = (
        d.constant(constant, t, "").map(lambda v: v.expand(len(X)))
        if d.name != "real"
        else d.constant(constant, t, "").expand(len(X))
    )
    return d.apply("sub", t, (d.apply("add", t, (x, c), ""), c), "")


def test_real_rounds_as_the_machine_does():
    machine = Machine()
    x = torch.tensor(X)
    c = torch.tensor([12582912.0])
    t = Type("f32")
    expected = machine.apply("sub", t, (machine.apply("add", t, (x, c), ""), c), "")
    assert torch.equal(expected, x.round())
    assert torch.equal(trick(Real(), x.double()), expected.double())
    assert torch.equal(trick(Real(), x.double(), constant=8388608.0), expected.double())


@pytest.mark.parametrize(
    ("elem", "constant"), [("f32", 12582913.0), ("f16", 1536.0), ("f64", 12582912.0), ("f32", 1e6)]
)
def test_other_constants_round_nothing(elem, constant):
    x = torch.tensor(X, dtype=torch.float64)
    assert torch.equal(trick(Real(), x, elem, constant), x)


def test_float64_has_a_constant_of_its_own():
    x = torch.tensor(X, dtype=torch.float64)
    assert torch.equal(trick(Real(), x, "f64", 1.5 * 2**52), x.round())


def test_large_numbers_stay():
    x = torch.full((len(X),), 5e6 + 0.25, dtype=torch.float64)
    assert torch.equal(trick(Real(), x), x)


def test_terms_hold_the_rounding():
    pytest.importorskip("flint")
    d = Ball()
    out = trick(d, d.input("x", torch.tensor(X)))
    assert out.near.tolist() == torch.tensor(X).round().tolist()
    assert [float(d.enclose(int(i))) for i in out.ids] == torch.tensor(X).round().tolist()
    assert any(n.op == "rint" for n in d.needed(int(out.ids[5])).values())


def test_field_takes_it_for_rint():
    d = Field(3)
    x = d.random((len(X),))
    same = d.equal(trick(d, x), d.apply("rint", Type("f32"), (x,), ""))
    assert bool(same.all())
    assert not bool(d.equal(trick(d, x), x).any())


def test_only_additions_of_one_number_count():
    c = torch.tensor([12582912.0])
    assert limit("add", "f32", c) == 2.0**22
    assert limit("add", "f32", c.expand(4, 5)) == 2.0**22
    assert limit("mul", "f32", c) == 0
    assert limit("add", "f32", torch.tensor([12582912.0, 12582912.0])) == 0
    assert limit("add", "bf16", c) == 0
    assert limit("add", "f32", None) == 0
