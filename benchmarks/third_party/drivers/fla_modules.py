"""Flash Linear Attention's modules: activations, norms, losses, convolution, positions, and small operations."""

from __future__ import annotations

import importlib
from typing import Any

import torch
import torch.nn.functional as F

PRELOAD = ["fla.ops"]
R = torch.randn


def get(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"fla.{module}"), name)


def case_activations(c: Any) -> None:
    m = importlib.import_module("fla.modules.activations.ops")
    plain = {"sigmoid": torch.sigmoid, "elu_p1": lambda x: F.elu(x) + 1, "logsigmoid": F.logsigmoid, "swish": F.silu}
    for name, f in plain.items():
        g = getattr(m, name, None) or getattr(m, f"{name}_func", None)
        if g is not None:
            c.same(name, g, f, R(6, 100))
    two = {"swiglu": lambda x, y: F.silu(x) * y, "sigmoidglu": lambda x, y: x.sigmoid() * y}
    for name, f in two.items():
        g = getattr(m, name, None)
        if g is not None:
            c.same(name, g, f, R(6, 100), R(6, 100))
    if hasattr(m, "powglu"):
        c.same("powglu", m.powglu, None, R(6, 100).abs(), R(6, 100))


def case_norms(c: Any) -> None:
    m = importlib.import_module("fla.modules.norm.layernorm")
    for n in (64, 1024):
        c.same(
            f"layer_norm, {n}",
            lambda x, w, b: m.layer_norm(x, w, b),
            lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
            R(6, n),
            R(n),
            R(n),
        )
        c.same(
            f"rms_norm, {n}",
            lambda x, w: m.rms_norm(x, w, None, eps=1e-5),
            lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-5),
            R(6, n),
            R(n),
        )
        l2 = get("modules.norm.l2norm", "l2_norm")
        c.same(f"l2_norm, {n}", l2, lambda x: x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt(), R(6, n))
        g = importlib.import_module("fla.modules.norm.fused_norm_gate")
        c.same(
            f"rms_norm_gated, {n}",
            lambda x, z, w: g.rms_norm_gated(x, z, w, None),
            lambda x, z, w: F.rms_norm(x, x.shape[-1:], w, 1e-6) * F.silu(z),
            R(6, n),
            R(6, n),
            R(n),
        )


def case_norm_group(c: Any) -> None:
    f = get("modules.norm.layernorm_gated", "rmsnorm_fn")
    c.same(
        "rmsnorm_fn",
        lambda x, w: f(x, w, None, eps=1e-6),
        lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
        R(6, 64),
        R(64),
    )


def case_norm_quant(c: Any) -> None:
    f = get("modules.fused_bitlinear", "layer_norm_linear_quant")
    c.same("layer_norm_linear_quant", lambda x, w, b, v: f(x, w, b, v, None), None, R(6, 64), R(64), R(64), R(32, 64))


def case_losses(c: Any) -> None:
    t = torch.randint(0, 100, (12,))
    c.same(
        "cross_entropy_loss",
        lambda x: get("modules.fused_cross_entropy.ops", "cross_entropy_loss")(x, t)[0],
        lambda x: F.cross_entropy(x, t, reduction="none"),
        R(12, 100),
    )
    c.same(
        "FusedLinearCrossEntropy",
        lambda x, w: get("modules.fused_linear_cross_entropy", "FusedLinearCrossEntropyLoss")()(x, t, w),
        lambda x, w: F.cross_entropy(x @ w.t(), t),
        R(12, 32),
        R(100, 32),
    )
    y, v = R(12, 32), R(100, 32)
    c.same(
        "FusedKLDiv",
        lambda x, w: get("modules.fused_kl_div", "FusedKLDivLoss")()(x, y, w, v),
        lambda x, w: F.kl_div((x @ w.t()).log_softmax(-1), (y @ v.t()).softmax(-1), reduction="batchmean"),
        R(12, 32),
        R(100, 32),
    )
    m = importlib.import_module("fla.modules.grpo.ops")
    ids, adv, ref, mask = torch.randint(0, 100, (2, 8)), R(2), R(2, 8) * 0.1 - 4.6, torch.ones(2, 8)
    c.same(
        "fused_grpo_loss",
        lambda x: m.fused_grpo_loss(x.clone(), ref, ids, adv, 0.1, mask),
        lambda x: m.grpo_loss_torch(x, ref, ids, adv, 0.1, mask),
        R(2, 9, 100),
    )


def case_conv(c: Any) -> None:
    f = get("modules.causal_conv1d.ops", "causal_conv1d")
    reference = lambda x, w, b: F.silu(
        F.conv1d(F.pad(x.transpose(1, 2), (3, 0)), w[:, None], b, groups=64).transpose(1, 2)
    )
    c.same("causal_conv1d", lambda x, w, b: f(x, w, b, activation="silu")[0], reference, R(2, 20, 64), R(64, 4), R(64))
    c.same(
        "causal_conv1d with state",
        lambda x, w, b, s: f(x, w, b, initial_state=s, output_final_state=True, activation="silu"),
        None,
        R(2, 20, 64),
        R(64, 4),
        R(64),
        R(2, 64, 4),
    )
    u = get("modules.causal_conv1d.ops", "causal_conv1d_update")
    c.same(
        "causal_conv1d_update",
        lambda x, s, w, b: u(x, s, weight=w, bias=b)[0],
        None,
        R(2, 64),
        R(2, 64, 4),
        R(64, 4),
        R(64),
        grad=False,
    )


def case_positions(c: Any) -> None:
    f = get("modules.rotary.ops", "rotary_embedding")
    angles = R(20, 16)

    def reference(x: Any) -> Any:
        a, b = x.chunk(2, -1)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    c.same("rotary_embedding", lambda x: f(x, angles.cos(), angles.sin()), reference, R(2, 20, 2, 32))
    m = importlib.import_module("fla.modules.token_shift")
    for t in (20, 5000):
        c.same(f"token_shift, {t}", m.token_shift, m.token_shift_ref, R(1, t, 64))


def case_small(c: Any) -> None:
    c.same(
        "logsumexp_fwd", get("ops.utils.logsumexp", "logsumexp_fwd"), lambda x: x.logsumexp(-1), R(6, 100), grad=False
    )
    c.same("matmul", get("ops.utils.matmul", "matmul"), lambda a, b: a @ b, R(40, 64), R(64, 48), grad=False)
    for name, f in {
        "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "relu": torch.relu,
    }.items():
        c.same(
            f"matmul, {name}",
            lambda a, b, n=name: get("ops.utils.matmul", "matmul")(a, b, n),
            lambda a, b, f=f: f(a @ b),
            R(40, 64),
            R(64, 48),
            grad=False,
        )
    c.same(
        "sinkhorn",
        get("ops.utils.sinkhorn.ops", "sinkhorn"),
        get("ops.utils.sinkhorn.naive", "naive_sinkhorn"),
        R(6, 4, 4),
    )
    starts = torch.tensor([0, 5, 12], dtype=torch.int32)
    c.same("unpack_sequence", lambda x: get("ops.utils.pack", "unpack_sequence")(x, starts, "left"), None, R(1, 12, 32))


def case_states(c: Any) -> None:
    n = [R(1, 70, 2, 32) * 0.3 for _ in range(4)]
    gate = -torch.rand(1, 70, 2, 32) * 0.2
    for module in ("chunk_h_split", "chunk_h_parallel"):
        f = get(f"ops.common.{module}", "chunk_bwd_dh")
        q, k, v, do = n
        c.call(
            f"{module}, backward",
            lambda f=f: f(q, k, v, None, gate, None, do, R(1, 2, 32, 32), R(1, 2, 32, 32), 1.0),
        )


def case_inverse(c: Any) -> None:
    f = get("ops.utils.solve_tril", "solve_tril")
    for size in (16, 32, 64):
        a = (R(1, 128, 2, size) * 0.1).view(1, 128 // size, size, 2, size)
        low = torch.ones(size, size).tril(-1)[None, None, :, None]
        a = (a * low).view(1, 128, 2, size)

        def reference(a: Any, size: int = size) -> Any:
            m = a.view(1, -1, size, 2, size).permute(0, 1, 3, 2, 4)
            inverse = torch.linalg.inv(torch.eye(size) + m)
            return inverse.permute(0, 1, 3, 2, 4).reshape(1, 128, 2, size)

        c.same(f"solve_tril, {size}", f, reference, a, grad=False)
