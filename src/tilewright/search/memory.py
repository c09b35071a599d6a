"""A run that is recorded nowhere: for studies, which make thousands of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .store import Step
from .tree import Node, Proposal


class Memory:
    """Takes what ``RunStore`` takes and forgets it."""

    id = ""

    def event(self, step: int, state: str, body: Mapping[str, Any]) -> None:
        return None

    def proposed(self, step: int, proposal: Proposal) -> None:
        return None

    def told(self, node: Node) -> None:
        return None

    def seconds(self) -> float:
        return 0.0

    def steps(self) -> list[Step]:
        return []
