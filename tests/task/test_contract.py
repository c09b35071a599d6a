"""Fields of the contract: each is read by something; those that nothing read are gone, and older sheets still load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from tilewright.report.terminal import domain
from tilewright.task import Contract, TensorSpec

SOURCE = Path(__file__).parents[2] / "src" / "tilewright"


@pytest.mark.parametrize("field", sorted(Contract.model_fields))
def test_something_reads_every_field(field: str) -> None:
    """Somewhere beside the file that declares it."""
    texts = (p.read_text() for p in SOURCE.rglob("*.py") if p.name != "contract.py")
    read = re.compile(rf"(contract|\bc|plan|had|stated)\.{field}\b|\"{field}\"")
    assert any(read.search(t) for t in texts), f"nothing reads Contract.{field}"


@pytest.mark.parametrize("field", sorted(TensorSpec.model_fields))
def test_something_reads_every_field_of_a_tensor(field: str) -> None:
    texts = (p.read_text() for p in SOURCE.rglob("*.py") if p.name != "tensors.py")
    assert any(re.search(rf"\.{field}\b|\"{field}\"", t) for t in texts), f"nothing reads TensorSpec.{field}"


def test_a_field_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="ties"):
        Contract(ties="any")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="optional"):
        TensorSpec("N", optional=True)


def test_sheets_of_older_ledgers_load() -> None:
    assert Contract.model_validate({"ties": "first", "signature": "", "nan": "ignore"}) == Contract(nan="ignore")
    assert TensorSpec.model_validate({"shape": ["N"], "optional": False}) == TensorSpec("N")


def test_preconditions_are_repeated_with_an_accept() -> None:
    told = domain({"contract": "stated", "preconditions": ["indices are sorted", "rows sum to 1"]})
    assert told.endswith("contract stated; provided that indices are sorted; provided that rows sum to 1")
