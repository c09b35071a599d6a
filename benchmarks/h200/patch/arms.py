"""The same model several ways, over the same weights: as it is, patched, with Liger's kernels, compiled."""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import plain
import torch
import torch.nn.functional as F
from torch import nn

from tilewright import ops

FAMILIES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "mistral": "Mistral", "gemma": "Gemma"}
Loss = Callable[[torch.Tensor], torch.Tensor]


class Missing(Exception):
    """An arm that can't be had here, and why."""


def build(name: str, sizes: plain.Sizes, dtype: torch.dtype, device: str) -> nn.Module:
    """``plain``, or a family of transformers with random weights. Raises Missing without transformers."""
    torch.manual_seed(0)
    with torch.device(device):
        model = plain.Decoder(sizes) if name == "plain" else family(name, sizes)
    return model.to(dtype).train()


def family(name: str, s: plain.Sizes) -> nn.Module:
    if importlib.util.find_spec("transformers") is None:
        raise Missing("transformers is not installed")
    kind = FAMILIES[name]
    config = getattr(importlib.import_module(f"transformers.models.{name}.configuration_{name}"), f"{kind}Config")
    made = getattr(importlib.import_module(f"transformers.models.{name}.modeling_{name}"), f"{kind}ForCausalLM")
    return made(config(vocab_size=s.vocabulary, hidden_size=s.hidden, intermediate_size=s.inner, pad_token_id=0,
                       num_hidden_layers=s.layers, num_attention_heads=s.heads, num_key_value_heads=s.groups,
                       head_dim=s.hidden // s.heads, max_position_embeddings=s.length, use_cache=False))  # fmt: skip


def shared(model: nn.Module) -> nn.Module:
    """A copy of the modules over the same parameters."""
    return copy.deepcopy(model, {id(p): p for p in model.parameters()})


def loss_of(model: Any) -> Loss:
    def loss(tokens: torch.Tensor) -> torch.Tensor:
        out = model(input_ids=tokens, labels=tokens)
        return out[0] if isinstance(out, tuple) else out.loss

    return loss


def unpatched(model: nn.Module) -> tuple[Loss, str]:
    return loss_of(shared(model)), ""


def patched(model: nn.Module) -> tuple[Loss, str]:
    own = shared(model)
    report = ops.patch(own)
    return loss_of(own), repr(report)


def compiled(model: nn.Module) -> tuple[Loss, str]:
    return loss_of(torch.compile(shared(model))), "torch.compile with its defaults"


def liger(model: nn.Module) -> tuple[Loss, str]:
    if importlib.util.find_spec("liger_kernel") is None:
        raise Missing("liger_kernel is not installed")
    own = shared(model)
    if not isinstance(own, plain.Decoder):
        importlib.import_module("liger_kernel.transformers.monkey_patch")._apply_liger_kernel_to_instance(model=own)
        return loss_of(own), "liger_kernel's own patch of the instance"
    return loss_of(
        by_hand(own)
    ), "RMS norm, rope, SwiGLU and fused linear cross entropy of liger_kernel.ops, put in by hand"


def by_hand(model: plain.Decoder) -> nn.Module:
    """Liger's functions in the plain model, which no patch of theirs knows."""
    lib = importlib.import_module("liger_kernel.ops")

    def norm(self: Any, x: Any) -> Any:
        return lib.LigerRMSNormFunction.apply(x, self.gain, self.eps, 0.0, "llama", True)

    def gated(self: Any, x: Any) -> Any:
        return self.c(lib.LigerSiLUMulFunction.apply(self.a(x), self.b(x)))

    def attention(self: Any, x: Any, tables: Any) -> Any:
        q, k, v = (f(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = lib.LigerRopeFunction.apply(q, k, tables[0][None], tables[1][None])
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def whole(self: Any, input_ids: Any, labels: Any) -> Any:
        hidden: list[Any] = []
        hook = self.head.register_forward_pre_hook(lambda m, given: (hidden.append(given[0]), (given[0][:, :0],))[1])
        try:
            plain.Decoder.forward(self, input_ids)
        finally:
            hook.remove()
        x, target = hidden[0][:, :-1].flatten(0, 1), labels[:, 1:].reshape(-1)
        return lib.LigerFusedLinearCrossEntropyFunction.apply(x, self.head.weight, target)[0], None

    forms = {plain.Norm: norm, plain.Gated: gated, plain.Attention: attention, plain.Decoder: whole}
    for module in model.modules():
        if type(module) in forms:
            module.forward = forms[type(module)].__get__(module)
    return model


ARMS: dict[str, Callable[[nn.Module], tuple[Loss, str]]] = {
    "unpatched": unpatched, "unpatched again": unpatched, "patched": patched, "liger": liger, "compiled": compiled,
}  # fmt: skip
