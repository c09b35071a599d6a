"""Gated linear units: three linear layers, or two of which the first is packed, found by shape and by what they compute."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..geglu.api import geglu, geglu_packed
from ..swiglu.api import swiglu, swiglu_packed
from . import probe

WIDE, NARROW, ROWS = 12, 5, 7
GATES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "swiglu": (swiglu, swiglu_packed),
    "geglu": (geglu, geglu_packed),
    "geglu, tanh": (
        lambda g, u: geglu(g, u, approximate="tanh"),
        lambda x: geglu_packed(x, approximate="tanh"),
    ),
}


@dataclass(frozen=True)
class Found:
    """Names of the linear layers: gate and up (the same name where they are packed) and down; and the gate's function."""

    gate: str
    up: str
    down: str
    kind: str
    flipped: bool = False

    def run(self, module: Any, x: torch.Tensor) -> Any:
        apart, packed = GATES[self.kind]
        down = getattr(module, self.down)
        if self.gate != self.up:
            return down(apart(getattr(module, self.gate)(x), getattr(module, self.up)(x)))
        both = getattr(module, self.gate)(x)
        return down(apart(*both.chunk(2, -1)[::-1]) if self.flipped else packed(both))


def linears(module: torch.nn.Module) -> dict[str, torch.nn.Linear]:
    return {n: m for n, m in module.named_children() if isinstance(m, torch.nn.Linear)}


def looks(module: torch.nn.Module) -> bool:
    """Linear layers (wide, narrow), (wide, narrow), (narrow, wide), or (twice wide, narrow), (narrow, wide)."""
    return bool(roles(module))


def roles(module: torch.nn.Module) -> list[tuple[str, str, str]]:
    """Which layers may be gate, up and down, by their shapes."""
    found = linears(module)
    shape = {n: (m.out_features, m.in_features) for n, m in found.items()}
    if len(found) == 3:
        return [(g, u, d) for g, u, d in itertools.permutations(found) if shape[g] == shape[u] == shape[d][::-1]]
    if len(found) == 2:
        return [(g, g, d) for g, d in itertools.permutations(found) if shape[g] == (2 * shape[d][1], shape[d][0])]
    return []


def identify(module: torch.nn.Module) -> Found:
    """Roles and gate, from a twin with small float64 layers. Raises Unequal."""
    rest = {n: m for n, m in module.named_children() if n not in linears(module)}
    if any(True for m in rest.values() for _ in m.parameters()):
        raise probe.Unequal(f"it has more layers with parameters: {', '.join(rest)}")
    for gate, up, down in roles(module):
        twin = small(module, gate, up, down)
        x = probe.seeded((ROWS, NARROW), 3, torch.float64)
        for found in candidates(gate, up, down):
            if all(same(twin.train(mode), found, x) for mode in (True, False)):
                return found
    raise probe.Unequal(f"no {' or '.join(GATES)} of its linear layers")


def candidates(gate: str, up: str, down: str) -> Iterator[Found]:
    for kind in GATES:
        yield Found(gate, up, down, kind)
        if gate == up:
            yield Found(gate, up, down, kind, flipped=True)


def same(twin: torch.nn.Module, found: Found, x: torch.Tensor) -> bool:
    error = probe.apart(
        lambda t: found.run(twin, t), lambda t: type(twin).forward(twin, t), [x], list(twin.parameters())
    )
    return error <= probe.bound(torch.float64)


def small(module: torch.nn.Module, gate: str, up: str, down: str) -> torch.nn.Module:
    """The same module around small linear layers, whose values spread far enough to tell the gates apart."""
    twin = copy.copy(module)
    twin.__dict__["_modules"] = {n: None if m in linears(module).values() else copy.deepcopy(m)
                                 for n, m in module._modules.items()}  # fmt: skip
    sizes = {down: (NARROW, WIDE), **dict.fromkeys((gate, up), ((1 + (gate == up)) * WIDE, NARROW))}
    for seed, (name, (out, into)) in enumerate(sizes.items()):
        old = getattr(module, name)
        layer = torch.nn.Linear(into, out, bias=old.bias is not None, dtype=torch.float64)
        for i, p in enumerate(layer.parameters()):
            p.data = probe.seeded(p.shape, 10 * seed + i, torch.float64)
        twin._modules[name] = layer
    return twin


def replacement(found: Found) -> Any:
    def forward(self: Any, x: torch.Tensor) -> Any:
        return found.run(self, x)

    return forward


def verify(module: torch.nn.Module, found: Found) -> float:
    """Old and new forward of the module itself, on its device and in its dtype; the gradient by the input."""
    weight = getattr(module, found.gate).weight
    if not weight.is_floating_point():
        raise probe.Unequal(f"its layers hold {weight.dtype}, for which there is no probe")
    x = probe.seeded((3, getattr(module, found.gate).in_features), 6, weight.dtype, weight.device)
    error = probe.apart(lambda t: found.run(module, t), lambda t: type(module).forward(module, t), [x])
    return probe.equal(found.kind, error, weight.dtype)
