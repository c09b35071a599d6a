"""Cases: one concrete call, and the recipe that made it.

A recipe is small and says everything: dims and dtype, which family of values, which layout, which seed. The same recipe at
other dims gives the case that a shrinker wants to try next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..task.calling import Calling
from ..task.task import Workload
from .finding import CaseRecord, TensorRecord


@dataclass(frozen=True)
class Recipe:
    """How a case is made. ``family``: a key of ``task.values.FAMILIES``, ``natural`` (as the task draws), or
    ``special:<name>`` (``prove/special.py``). ``layout``: a key of ``prove/layouts.py``. ``grad``: call backward with
    random cotangents (``cotangent``: their kind) for the inputs in ``wanted``. ``extra``: for the gate that made it."""

    workload: Workload
    family: str = "natural"
    layout: str = "contiguous"
    seed: int = 0
    grad: bool = False
    wanted: tuple[str, ...] = ()
    cotangent: str = "random"
    extra: tuple[tuple[str, Any], ...] = ()

    def at(self, dims: Mapping[str, int]) -> Recipe:
        """The same at other dims."""
        return replace(self, workload=self.workload.model_copy(update={"dims": dict(dims)}))

    def options(self) -> dict[str, Any]:
        return dict(self.extra)


@dataclass
class Case:
    """A concrete call. ``inputs`` in call order; ``state``: the reference's parameters and buffers, which a module is
    built with; ``calling``: how the kernel is called. ``changed``: values were edited since the recipe made them."""

    recipe: Recipe
    inputs: dict[str, Any]
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    calling: Calling = field(default_factory=Calling)
    cotangents: dict[str, torch.Tensor] = field(default_factory=dict)
    changed: bool = False

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {n: v for n, v in self.inputs.items() if isinstance(v, torch.Tensor)}

    @property
    def dims(self) -> dict[str, int]:
        return self.recipe.workload.dims

    def with_inputs(self, **changes: Any) -> Case:
        """The same case with some inputs replaced."""
        return replace(self, inputs={**self.inputs, **changes}, changed=True)

    def __str__(self) -> str:
        dims = ", ".join(f"{k}={v}" for k, v in self.dims.items())
        parts = [dims or "the given shape", self.recipe.workload.dtype or ""]
        parts += [p for p in (self.recipe.family, self.recipe.layout) if p not in ("natural", "contiguous")]
        return ", ".join(p for p in parts if p)


def describe(t: torch.Tensor) -> TensorRecord:
    """A tensor for people: layout, and its values if they are few."""
    flat = t.detach().reshape(-1) if t.numel() <= 64 else t.detach().reshape(-1)[:8]
    values = ", ".join(_short(v) for v in flat[:64].tolist())
    same = t.numel() > 1 and bool((flat == flat[0]).all()) and t.numel() <= 64
    preview = f"all {_short(flat[0].item())}" if same else values + (" …" if t.numel() > flat.numel() else "")
    return TensorRecord(
        dtype=str(t.dtype).removeprefix("torch."), shape=tuple(t.shape), strides=tuple(t.stride()),
        offset=int(t.storage_offset()), storage_bytes=t.untyped_storage().nbytes(), preview=preview[:400],
    )  # fmt: skip


def _short(v: Any) -> str:
    return f"{v:.6g}" if isinstance(v, float) else str(v)


def record(case: Case, *, mode: str, root: int = 1, note: str = "") -> CaseRecord:
    """A case for a finding. Tensors are described here; their bytes go to the ledger beside it."""
    r = case.recipe
    return CaseRecord(
        dims=case.dims, dtype=r.workload.dtype or "", mode=mode, note=note,
        inputs={n: describe(v) if isinstance(v, torch.Tensor) else v for n, v in case.inputs.items()},
        state={n: describe(v) for n, v in case.state.items()},
        cotangents={n: describe(v) for n, v in case.cotangents.items()},
        options={"root": root, "family": r.family,
                 "layout": r.layout, "seed": r.seed, "grad": r.grad, "wanted": list(r.wanted),
                 "cotangent": r.cotangent, "scalars": dict(r.workload.scalars), "changed": case.changed,
                 "calling": case.calling.model_dump(mode="json"), "extra": dict(r.extra)},
    )  # fmt: skip


def from_record(r: CaseRecord, inputs: Mapping[str, Any], state: Mapping[str, torch.Tensor],
                cotangents: Mapping[str, torch.Tensor]) -> Case:  # fmt: skip
    """A case from a finding's record and the tensors that the ledger holds for it."""
    o = r.options
    recipe = Recipe(
        workload=Workload(dims=r.dims, dtype=r.dtype or None, scalars=o.get("scalars", {})),
        family=o.get("family", "natural"),
        layout=o.get("layout", "contiguous"),
        seed=o.get("seed", 0),
        grad=o.get("grad", False),
        wanted=tuple(o.get("wanted", ())),
        cotangent=o.get("cotangent", "random"),
        extra=tuple(o.get("extra", {}).items()),
    )
    return Case(recipe, dict(inputs), dict(state), Calling.model_validate(o.get("calling", {})), dict(cotangents), True)
