"""The loss of a language model's head: the linear layer over the vocabulary, and the cross entropy that follows it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

from . import probe
from .pending import Pending, Source, autocast

SWITCH = "_tilewright_head"
"""Where head and owner keep what they share."""


@dataclass(eq=False)
class Switch:
    """Whether the head answers with logits that are not formed. On while its owner's forward runs in training."""

    on: bool = False
    fused: int = 0


def looks(module: torch.nn.Module, vocabularies: set[tuple[int, ...]]) -> bool:
    """A linear layer of the shape of an embedding."""
    return isinstance(module, torch.nn.Linear) and tuple(module.weight.shape) in vocabularies


def ask(self: Any, x: torch.Tensor) -> Any:
    """Forward of the head."""
    old = type(self).forward
    if not self.__dict__[SWITCH].on:
        return old(self, x)
    # Under autocast the layer gives its dtype; elsewhere mixed dtypes are the old forward's to refuse.
    ready, weight, _ = autocast(x, self.weight, None)
    if ready.dtype != weight.dtype or x.dim() < 1 or x.shape[-1] != weight.shape[1]:
        return old(self, x)
    return Pending(Source(self.weight, self.bias, lambda t: old(self, t)), x, ready.dtype)


def owner_forward(owner: torch.nn.Module) -> Any:
    """Forward of the module that calls the head. What it returns holds tensors, but for logits whose loss was fused."""
    old = type(owner).forward

    @functools.wraps(old)
    def forward(self: Any, *given: Any, **named: Any) -> Any:
        switch = self.__dict__[SWITCH]
        if switch.on or not (self.training and torch.is_grad_enabled()):
            return old(self, *given, **named)
        switch.on = True
        try:
            out = old(self, *given, **named)
        finally:
            switch.on = False
        return settled(out, switch)

    return forward


def settled(value: Any, switch: Switch) -> Any:
    """``value`` with those logits formed whose loss was not fused."""
    if isinstance(value, Pending):
        switch.fused += value.source.used
        return value if value.source.used else value.formed()
    if isinstance(value, dict):
        for name, part in list(value.items()):
            if (ready := settled(part, switch)) is not part:
                value[name] = ready
        return value
    if type(value) in (tuple, list):
        return type(value)(settled(v, switch) for v in value)
    return value


def loss_of(out: Any) -> torch.Tensor:
    """The loss in what a model returned: ``.loss``, or the first scalar that carries a gradient."""
    parts = [
        getattr(out, "loss", None),
        *(out.values() if isinstance(out, dict) else out if isinstance(out, tuple) else [out]),
    ]
    for part in parts:
        if isinstance(part, torch.Tensor) and part.dim() == 0 and part.requires_grad:
            return part
    raise probe.Unequal("the example call of the model gave no loss (give patch(model, example={...}) with labels)")


def verify(head: torch.nn.Linear, owner: torch.nn.Module, call: Any, put: Any, take: Any) -> float:
    """Loss and gradients of an example call, before and after; after it without logits. Leaves the replacement in place."""
    if head._forward_hooks or head._forward_pre_hooks:
        raise probe.Unequal("it has forward hooks, which would get no logits")
    old = losses(head, owner, call)
    switch = Switch()
    head.__dict__[SWITCH] = owner.__dict__[SWITCH] = switch
    put(head, ask)
    put(owner, owner_forward(owner))
    try:
        new = losses(head, owner, call)
        if not switch.fused:
            raise probe.Unequal("the loss of the example call is no cross entropy of its result")
        error = max(probe.difference(n, o) for n, o in zip(new, old, strict=True))
        return probe.equal("linear_cross_entropy", error, head.weight.dtype)
    except BaseException:
        take(head)
        take(owner)
        raise


def losses(head: torch.nn.Linear, owner: torch.nn.Module, call: Any) -> list[torch.Tensor]:
    """Loss of the example call, and its gradients by the input of the head and, unless it is large, by its weight."""
    seen: list[torch.Tensor] = []

    def watch(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        seen.append(given[0].detach().requires_grad_())
        return (seen[-1],)

    hook = head.register_forward_pre_hook(watch)
    frozen = head.weight.requires_grad and head.weight.numel() > 1 << 24
    training = owner.training
    try:
        owner.training = True
        head.weight.requires_grad_(head.weight.requires_grad and not frozen)
        with torch.enable_grad():
            loss = loss_of(call())
        wanted = [*seen, *([head.weight] if head.weight.requires_grad else [])]
        return [loss.detach(), *torch.autograd.grad(loss, wanted)]
    finally:
        owner.training = training
        head.weight.requires_grad_(head.weight.requires_grad or frozen)
        hook.remove()
