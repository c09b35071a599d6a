"""Finding: what broke, where, expected against got, the smallest case, and the id that replays it."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Field

from ..task.tensors import Model

Class = Literal["wrong", "cheat", "inaccurate", "deviates", "policy"]


class TensorRecord(Model):
    """One tensor of a case: layout in elements; ``blob`` is the sha256 of its raw storage bytes in the ledger."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    storage_bytes: int = 0
    blob: str = ""
    preview: str = ""
    requires_grad: bool = False


class CaseRecord(Model):
    """A case as data: enough to run it again. ``inputs`` are tensors or plain scalars; ``mode`` says how the call is
    made (``forward``, ``backward``, ``repeat``, ``sequence`` …) with its options in ``options``."""

    dims: dict[str, int] = {}
    dtype: str = ""
    inputs: dict[str, Annotated[TensorRecord | Any, Field(union_mode="left_to_right")]] = {}
    state: dict[str, TensorRecord] = {}
    cotangents: dict[str, TensorRecord] = {}
    mode: str = "forward"
    options: dict[str, Any] = {}
    note: str = ""


class Finding(Model):
    """``expected`` and ``got`` are short texts for people; ``where`` is ``file:line`` or an output index; ``budget`` is
    the error that was allowed there."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, populate_by_name=True)

    cls: Class = Field(serialization_alias="class", validation_alias=AliasChoices("cls", "class"))
    summary: str
    where: str = ""
    case: CaseRecord = CaseRecord()
    expected: str = ""
    got: str = ""
    largest_error: float | None = None
    budget: float | None = None
    gate: str = ""
    replays: bool = True
    detail: str = ""
    id: str = ""

    def with_id(self, kernel_sha256: str, task_sha256: str) -> Finding:
        """The finding under its content address: twelve hex digits over kernel, task, gate, class and case."""
        key = json.dumps([kernel_sha256, task_sha256, self.gate, self.cls, self.summary,
                          self.case.model_dump(mode="json")], sort_keys=True)  # fmt: skip
        return self.model_copy(update={"id": hashlib.sha256(key.encode()).hexdigest()[:12]})
