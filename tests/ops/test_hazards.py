"""Every hazard on every call of every operator. A new operator inherits them all by being there."""

import pytest

import tilewright.ops  # noqa: F401  registers the operators
from tilewright.ops import _hazards
from tilewright.ops._builder import REGISTRY

HAZARDS = _hazards.load()
CALLS = [(name, call.name) for name, built in sorted(REGISTRY.items()) for call in built.op.calls]


@pytest.mark.parametrize("hazard", sorted(HAZARDS))
@pytest.mark.parametrize(("operator", "call"), CALLS)
def test_hazard(operator, call, hazard):
    built = REGISTRY[operator]
    found = next(c for c in built.op.calls if c.name == call)
    reason = HAZARDS[hazard](_hazards.Case(built, found))
    if reason:
        pytest.skip(reason)
