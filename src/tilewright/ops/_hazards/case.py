"""One call of one operator, as the hazards try it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .._builder import Built, Call


@dataclass
class Case:
    """``built``: the operator; ``call``: how it is called; ``dtype`` and ``device`` of its tensors."""

    built: Built
    call: Call
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    seed: int = 0

    def arguments(self) -> dict[str, Any]:
        """Fresh arguments of the public function; the same ones each time."""
        torch.manual_seed(self.seed)
        return self.call.make(self.dtype, self.device)

    @property
    def function(self) -> Callable[..., Any]:
        """The public function."""
        found: Callable[..., Any] = getattr(importlib.import_module("tilewright.ops"), self.built.op.function)
        return found

    def public(self, **arguments: Any) -> tuple[torch.Tensor, ...]:
        """The results of the public function."""
        got = self.function(**arguments)
        return got if isinstance(got, tuple) else (got,)

    def passed_on(self, arguments: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of the registered operator, as the public function passes them on."""
        seen: list[tuple[Any, ...]] = []
        call = self.built.call

        def watched(*given: Any) -> Any:
            seen.append(given)
            return call(*given)

        self.built.call = watched
        try:
            self.public(**arguments)
        finally:
            self.built.call = call
        return seen[0]

    def reference(self, **arguments: Any) -> tuple[torch.Tensor, ...]:
        """What the reference gives on the same arguments of the public function."""
        got = self.built.op.reference(**arguments)
        return got if isinstance(got, tuple) else (got,)

    def differentiable(self, arguments: Mapping[str, Any]) -> list[str]:
        """Arguments that carry a gradient in this call."""
        return [n for n in self.built.op.differentiable if isinstance(arguments.get(n), torch.Tensor)]

    def cotangents(self, results: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        """Random incoming gradients: never all the same."""
        torch.manual_seed(self.seed + 1)
        return [torch.randn(r.shape, device=r.device).to(r.dtype) for r in results]


def same(got: torch.Tensor, wanted: torch.Tensor, what: str) -> None:
    """Equal in shape, dtype and bits (NaN equals NaN)."""
    assert got.shape == wanted.shape, f"{what}: shape {tuple(got.shape)}, expected {tuple(wanted.shape)}"
    assert got.dtype == wanted.dtype, f"{what}: dtype {got.dtype}, expected {wanted.dtype}"
    if not torch.equal(got.isnan(), wanted.isnan()) or not torch.equal(got.nan_to_num(), wanted.nan_to_num()):
        most = (got.double() - wanted.double()).abs().nan_to_num().max()
        raise AssertionError(f"{what}: values differ, at most by {most:.3g}")


def close(got: torch.Tensor, wanted: torch.Tensor, what: str, epsilons: float = 64.0) -> None:
    """Equal up to some roundings of the dtype."""
    eps = torch.finfo(got.dtype).eps if got.is_floating_point() else 0.0
    assert got.shape == wanted.shape, f"{what}: shape {tuple(got.shape)}, expected {tuple(wanted.shape)}"
    assert got.dtype == wanted.dtype, f"{what}: dtype {got.dtype}, expected {wanted.dtype}"
    torch.testing.assert_close(got.double(), wanted.double(), rtol=epsilons * eps, atol=epsilons * eps, equal_nan=True,
                               msg=lambda m: f"{what}: {m}")  # fmt: skip
