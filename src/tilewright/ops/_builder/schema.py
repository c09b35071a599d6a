"""Reading an operator's schema, and small helpers for its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import UserError
from .operator import Operator


@dataclass(frozen=True)
class Argument:
    """One argument of a schema."""

    name: str
    type: str

    @property
    def tensor(self) -> bool:
        return self.type.startswith("Tensor")


def parsed(schema: str) -> list[Argument]:
    """Arguments of a schema: ``"(Tensor x, Tensor? mask, int axis) -> Tensor"``."""
    inside = schema[schema.index("(") + 1 : schema.index("->")].rstrip().removesuffix(")")
    return [Argument(a.split()[-1], " ".join(a.split()[:-1])) for a in inside.split(",") if a.strip()]


def validate(op: Operator, arguments: Sequence[Argument]) -> None:
    """The parts of an operator fit together. Raises UserError that names the part."""
    tensors = {a.name for a in arguments if a.tensor}
    known = tensors | set(op.result_names)
    for part, names, among in (("differentiable", op.differentiable, tensors), ("mutates", op.mutates, tensors),
                               ("saves", op.saves, known), ("gradient_like", tuple(op.gradient_like), tensors),
                               ("gradient_like", tuple(op.gradient_like.values()), set(op.saves))):  # fmt: skip
        for n in names:
            if n not in among:
                raise UserError(f"operator '{op.name}': {part} names '{n}', which is not one of {sorted(among)}",
                                where=str(op.folder / "op.py"),
                                remedy="name tensors of its schema or result_names")  # fmt: skip
    loose = [n for n in op.differentiable if op.backward and n not in op.saves and n not in op.gradient_like]
    if loose:
        raise UserError(f"operator '{op.name}': neither saves nor gradient_like has '{loose[0]}'",
                        where=str(op.folder / "op.py"),
                        remedy="save it, or name a saved tensor of its shape and dtype in gradient_like")  # fmt: skip
    if op.mutates and (op.backward or op.public):
        raise UserError(f"operator '{op.name}' writes in place: it has neither backward nor results",
                        where=str(op.folder / "op.py"), remedy="set public=0, result_names=() and no backward")  # fmt: skip


def first(arguments: Sequence[Any]) -> torch.Tensor:
    """The first tensor argument: results lie on its device."""
    return next(a for a in arguments if isinstance(a, torch.Tensor))


def one(results: Sequence[torch.Tensor]) -> Any:
    """A single result bare, several as a tuple."""
    return results[0] if len(results) == 1 else tuple(results)


def many(results: Any) -> tuple[torch.Tensor, ...]:
    """Results as a tuple."""
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def fresh(t: torch.Tensor, arguments: Sequence[Any]) -> torch.Tensor:
    """A result of the reference in the promised form: contiguous, and in no argument's memory."""
    t = t.contiguous()
    address = t.untyped_storage().data_ptr()
    owned = any(isinstance(a, torch.Tensor) and a.untyped_storage().data_ptr() == address for a in arguments)
    return t.clone() if owned else t
