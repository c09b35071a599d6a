"""Hazards of memory: views as arguments and as incoming gradients, shared memory, inputs that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import hazard
from .case import Case, close, same

View = Callable[[torch.Tensor], torch.Tensor]


def transposed(t: torch.Tensor) -> torch.Tensor:
    """The same values; the first dim lies densest."""
    return t.movedim(0, -1).clone(memory_format=torch.contiguous_format).movedim(-1, 0) if t.dim() > 1 else t


def sliced(t: torch.Tensor) -> torch.Tensor:
    """The same values, every second element of a larger tensor, at an odd offset."""
    if not t.dim():
        return t
    wide = t.new_zeros((*t.shape[:-1], 2 * t.shape[-1] + 1))
    view = wide[..., 1::2]
    return view.copy_(t)


def offset(t: torch.Tensor) -> torch.Tensor:
    """The same values, one element away from an aligned address."""
    flat = t.new_zeros(t.numel() + 1)[1:]
    return flat.copy_(t.reshape(-1)).view(t.shape)


VIEWS: dict[str, View] = {"transposed": transposed, "sliced": sliced, "offset": offset}


def _viewed(case: Case, name: str, view: View) -> dict[str, Any]:
    return {n: view(v) if n == name else v for n, v in case.arguments().items()}


@hazard(1)
def strided_inputs(case: Case) -> None:
    """A view as any one of the arguments gives what the contiguous tensor gives; results stay contiguous."""
    plain = case.public(**case.arguments())
    for name, value in case.arguments().items():
        for what, view in VIEWS.items() if isinstance(value, torch.Tensor) else ():
            for got, wanted in zip(case.public(**_viewed(case, name, view)), plain, strict=True):
                close(got, wanted, f"{what} {name}")
                if not case.built.op.mutates:
                    assert got.is_contiguous(), f"{what} {name}: the result has strides {got.stride()}, not contiguous"


@hazard(1, 10)
def strided_gradients(case: Case) -> str | None:
    """Incoming gradients may be views too, expanded ones among them."""
    names = case.differentiable(case.arguments())
    if not names:
        return "nothing is differentiable"

    def gradients(view: View) -> list[torch.Tensor]:
        own = {n: v.detach().requires_grad_(n in names) if isinstance(v, torch.Tensor) else v
               for n, v in case.arguments().items()}  # fmt: skip
        results = tuple(r for r in case.public(**own) if r.requires_grad)
        cotangents = [view(c) for c in case.cotangents(results)]
        return list(torch.autograd.grad(results, [own[n] for n in names], cotangents))

    plain = gradients(lambda t: t)
    for what, view in VIEWS.items():
        for n, got, wanted in zip(names, gradients(view), plain, strict=True):
            close(got, wanted, f"gradient of {n} from a {what} one")
    constant = gradients(lambda t: torch.full_like(t, 0.5))
    for n, got, wanted in zip(names, gradients(lambda t: t.new_full((), 0.5).expand(t.shape)), constant, strict=True):
        close(got, wanted, f"gradient of {n} from an expanded one")
    return None


@hazard(12)
def inputs_unchanged(case: Case) -> None:
    """No argument is written but those that the contract names; those are."""
    arguments, before = case.arguments(), case.arguments()
    case.public(**arguments)
    for n, v in arguments.items():
        if isinstance(v, torch.Tensor) and n not in case.built.op.mutates:
            same(v, before[n], f"argument {n} after the call")


@hazard(14)
def fresh_results(case: Case) -> str | None:
    """No result shares memory with an argument or another result."""
    if case.built.op.mutates:
        return "it writes in place by contract"
    arguments = case.arguments()
    results = case.public(**arguments)
    owners = [(n, v) for n, v in arguments.items() if isinstance(v, torch.Tensor)]
    owners += [(f"result {i}", r) for i, r in enumerate(results)]
    seen: dict[int, str] = {}
    for n, t in owners:
        at = t.untyped_storage().data_ptr()
        assert not at or at not in seen or not n.startswith("result"), f"{n} shares memory with {seen[at]}"
        seen[at] = n
    return None


@hazard(14)
def same_tensor_twice(case: Case) -> str | None:
    """One tensor given for two arguments gives what two equal tensors give."""
    if case.built.op.mutates:
        return "arguments written in place may not be the same tensor"
    tensors = [(n, v) for n, v in case.arguments().items() if isinstance(v, torch.Tensor)]
    pairs = [(a, b) for i, (a, x) in enumerate(tensors) for b, y in tensors[i + 1 :]
             if x.shape == y.shape and x.dtype == y.dtype]  # fmt: skip
    if not pairs:
        return "no two arguments have the same shape and dtype"
    for a, b in pairs:
        arguments = case.arguments()
        twin = {**arguments, b: arguments[a].clone()}
        for got, wanted in zip(case.public(**{**arguments, b: arguments[a]}), case.public(**twin), strict=True):
            same(got, wanted, f"the same tensor as {a} and {b}")
    return None
