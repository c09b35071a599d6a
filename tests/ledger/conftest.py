"""A ledger, and records to put into it."""

import pytest

from tilewright.ledger import Ledger

from .samples import Sample


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger.sqlite")


@pytest.fixture
def sample(tmp_path):
    return Sample(tmp_path / "sources")
