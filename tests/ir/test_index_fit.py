"""Forms: which function of the sizes a launch's numbers are."""

from __future__ import annotations

import pytest

from tilewright.ir.domains.index_fit import Forms
from tilewright.task.tensors import evaluate

PLACES = [(4, 300), (17, 33), (8, 2049), (130, 64), (33, 257), (5, 5), (64, 1025)]
SIZES = {"M": [m for m, _ in PLACES], "N": [n for _, n in PLACES]}


@pytest.mark.parametrize("form", [
    "7", "M", "M*N", "4*M*N", "2*N+1", "N-1", "((N+127)//128)", "M*((N+63)//64)", "((M+31)//32)*((N+31)//32)", "(M+N)",
    "min(M,60)", "min(N,1024)", "min(((N+63)//64),8)", "(N//2)",
    "4*M*((N+63)//64)", "min(((M+31)//32)*((N+31)//32),40)", "8*((M+15)//16)*((N+31)//32)",
])  # fmt: skip
def test_a_form_is_told_from_its_numbers(form: str) -> None:
    numbers = [evaluate(form, {"M": m, "N": n}) for m, n in PLACES]
    found = Forms(SIZES).value(numbers)
    assert found is not None
    elsewhere = [(3, 1000), (129, 127), (200, 12)]
    for m, n in elsewhere:
        assert evaluate(found, {"M": m, "N": n}) == evaluate(form, {"M": m, "N": n}), found


def test_shapes_of_the_task_are_forms() -> None:
    numbers = [(n - m // 2) * 3 for m, n in PLACES]
    assert Forms(SIZES).value(numbers) is None
    found = Forms(SIZES, shapes=["N-M//2"]).value(numbers)
    assert found == "3*(N-M//2)"


def test_numbers_that_are_no_form_are_not_guessed() -> None:
    assert Forms(SIZES).value([3, 1, 4, 1, 5, 9, 2]) is None


def test_a_power_of_two_and_its_ends() -> None:
    forms = Forms(SIZES)
    powers = [1 << (n - 1).bit_length() for _, n in PLACES]
    assert forms.power(powers) == ("N", min(powers), max(powers))
    clamped = [min(max(p, 64), 1024) for p in powers]
    assert forms.power(clamped) == ("N", 64, 1024)
    assert forms.power([48, *powers[1:]]) is None
