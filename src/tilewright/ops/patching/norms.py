"""RMS norms, found by what they compute: one weight over the last dim, no children."""

from __future__ import annotations

import copy
from typing import Any

import torch

from ..rms_norm.api import rms_norm
from . import probe

SCALES = (1.0, 1e-2, 1e-3, 1e-5)


def looks(module: torch.nn.Module) -> bool:
    """One parameter, a vector; no children, no buffers; named as its own by nobody."""
    own = list(module.parameters())
    alone = not list(module.children()) and not list(module.buffers())
    return alone and len(own) == 1 and own[0].dim() == 1 and own[0].is_floating_point()


def weight_of(module: torch.nn.Module) -> str:
    return next(name for name, _ in module.named_parameters())


def identify(module: torch.nn.Module) -> tuple[float, float]:
    """``eps`` and ``offset`` of the norm that this module computes. Raises Unequal if it computes no RMS norm."""
    twin, name = copy.deepcopy(module).float().cpu(), weight_of(module)
    weight = torch.nn.Parameter(probe.seeded(getattr(twin, name).shape, 1, torch.float32) * 0.5 + 1.0)
    setattr(twin, name, weight)
    size = weight.shape[0]
    x = torch.cat([probe.seeded((2, size), 2 + i, torch.float32) * s for i, s in enumerate(SCALES)])[None]
    floats = sorted({float(v) for v in vars(module).values() if isinstance(v, float) and 0 <= v < 1})
    for eps in floats:
        for offset in (0.0, 1.0):
            new = lambda t, e=eps, o=offset: rms_norm(t, weight, eps=e, offset=o)  # noqa: E731
            if each_row(new, twin, x) <= probe.bound(torch.float32):
                probe.equal("its RMS norm", probe.apart(new, twin, [x], [weight]), torch.float32)
                return eps, offset
    raise probe.Unequal(
        f"no RMS norm with one of its constants ({', '.join(map(str, floats)) or 'it has none'}) as eps"
    )


def each_row(new: Any, old: Any, x: torch.Tensor) -> float:
    """Largest difference of a row from its own largest value: small rows, where eps shows, count as large ones do."""
    with torch.no_grad():
        got, wanted = new(x)[0], old(x)[0]
    if got.shape != wanted.shape:
        return float("inf")
    return max(probe.difference(g, w) for g, w in zip(got, wanted, strict=True))


def replacement(module: torch.nn.Module, eps: float, offset: float) -> Any:
    """The new forward. Where input and weight differ in dtype the old one runs: it may promote."""
    name, old = weight_of(module), type(module).forward

    def forward(self: Any, x: torch.Tensor) -> Any:
        weight = getattr(self, name)
        if x.dtype != weight.dtype:
            return old(self, x)
        return rms_norm(x, weight, eps=eps, offset=offset)

    return forward


def verify(module: torch.nn.Module, new: Any) -> float:
    """Old and new forward of the module itself, on its device and in its dtype."""
    weight = getattr(module, weight_of(module))
    x = probe.seeded((2, 3, weight.shape[0]), 5, weight.dtype, weight.device)
    error = probe.apart(lambda t: new(module, t), lambda t: type(module).forward(module, t), [x], [weight])
    return probe.equal("rms_norm", error, weight.dtype)
