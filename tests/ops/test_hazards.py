"""Every hazard on every call of every operator. A new operator inherits them all by being there."""

import os

import pytest

import tilewright.ops  # noqa: F401  registers the operators
from tilewright.ops import _hazards
from tilewright.ops._builder import REGISTRY
from tilewright.ops._hazards.catalogue import GATES, HAZARD_NAMES

HAZARDS = _hazards.load("cpu")
CALLS = [(name, call.name) for name, built in sorted(REGISTRY.items()) for call in built.op.calls]
LONG = os.environ.get("TILEWRIGHT_LONG") == "1"
FEW = 2  # calls of an operator that are compiled, a second or more each; make test-long compiles all
PAIRS = [(operator, call, hazard) for operator, call in CALLS for hazard in sorted(HAZARDS)
         if LONG or hazard != "compiled" or call in [c.name for c in REGISTRY[operator].op.calls][:FEW]]  # fmt: skip


@pytest.mark.parametrize(("operator", "call", "hazard"), PAIRS)
def test_hazard(operator, call, hazard):
    built = REGISTRY[operator]
    found = next(c for c in built.op.calls if c.name == call)
    if reason := HAZARDS[hazard].run(_hazards.Case(built, found)):
        pytest.skip(reason)


def test_each_hazard_of_the_catalogue_is_met():
    everywhere = {**_hazards.load("cuda"), **HAZARDS}
    met = {n for h in everywhere.values() for n in h.numbers} | set(GATES)
    assert met == set(HAZARD_NAMES)


def test_each_operator_has_calls_and_pairs():
    for name, built in REGISTRY.items():
        assert built.op.calls, f"{name} has no call for the hazards"
        assert built.op.pairs, f"{name} has no task and kernel to check"
