"""What a literal of the IR stands for."""

import math
from fractions import Fraction

import pytest

from tilewright.ir.domains.constants import number


@pytest.mark.parametrize(("printed", "exact"), [
    (2.32830644e-10, Fraction(1, 1 << 32)),  # as the IR prints 2**-32
    (4.65661287e-10, Fraction(1, 1 << 31)),
    (5.96046448e-08, Fraction(1, 1 << 24)),
    (0.100000001, Fraction(1, 10)),
    (9.99999997e-07, Fraction(1, 10**6)),
])  # fmt: skip
def test_few_digits_stand_for_the_float_that_they_tell(printed, exact):
    assert number(printed, "f32").exact == exact


def test_a_double_is_taken_as_it_is():
    assert number(2.32830644e-10, "f64").exact != Fraction(1, 1 << 32)
    assert number(math.log2(math.e), "f64").name == "log2(e)"


def test_a_constant_cut_short_is_another_number():
    assert number(1.4427, "f32").exact == Fraction("1.4427")
    assert number(1.44269502, "f32").name == "log2(e)"
    assert number(1e39, "f32").value == 1e39
