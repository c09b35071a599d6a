"""Liger-Kernel."""

from __future__ import annotations

import importlib
from typing import Any

import torch
import torch.nn.functional as F

PRELOAD = ["liger_kernel.ops"]
R = torch.randn


def op(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name).apply


def case_softmax(c: Any) -> None:
    f = op("softmax", "LigerSoftmaxFunction")
    c.same("softmax", f, lambda x: x.softmax(-1), R(5, 100))


def case_rms_norm(c: Any) -> None:
    f = op("rms_norm", "LigerRMSNormFunction")
    for rows in (6, 32768):
        c.same(
            f"rms norm, {rows} rows",
            lambda x, w: f(x, w, 1e-6),
            lambda x, w: F.rms_norm(x, (100,), w, 1e-6),
            R(rows, 100),
            R(100),
        )
    c.same(
        "rms norm, row mode",
        lambda x, w: f(x, w, 1e-6, 0.0, "llama", False, True),
        lambda x, w: F.rms_norm(x, (100,), w, 1e-6),
        R(6, 100),
        R(100),
    )


def case_layer_norm(c: Any) -> None:
    f = op("layer_norm", "LigerLayerNormFunction")
    c.same(
        "layer norm",
        lambda x, w, b: f(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, (100,), w, b),
        R(6, 100),
        R(100),
        R(100),
    )


def case_swiglu(c: Any) -> None:
    f = op("swiglu", "LigerSiLUMulFunction")
    c.same("swiglu", f, lambda x, y: F.silu(x) * y, R(6, 100), R(6, 100))
    c.same("swiglu of wide rows", f, lambda x, y: F.silu(x) * y, R(2, 70000), R(2, 70000))
    g = op("swiglu", "LigerFusedGateUpSiLUMulFunction")
    c.same("swiglu of one tensor", lambda y: g(y), lambda y: F.silu(y[..., :100]) * y[..., 100:], R(6, 200))


def case_geglu(c: Any) -> None:
    f = op("geglu", "LigerGELUMulFunction")
    c.same("geglu", f, lambda x, y: F.gelu(x, approximate="tanh") * y, R(6, 100), R(6, 100))


def case_cross_entropy(c: Any) -> None:
    f = op("cross_entropy", "LigerCrossEntropyFunction")
    t = torch.randint(0, 200, (12,))
    t[3] = -100
    c.same("cross entropy", lambda x: f(x.clone(), t, None, -100, 0.0, 0.1, "mean", None, False)[0],
           lambda x: F.cross_entropy(x, t, label_smoothing=0.1), R(12, 200))  # fmt: skip


def case_group_norm(c: Any) -> None:
    f = op("group_norm", "LigerGroupNormFunction")
    c.same(
        "group norm",
        lambda x, w, b: f(x, w, b, 8, 4, 1e-5),
        lambda x, w, b: F.group_norm(x, 4, w, b),
        R(2, 8, 30),
        R(8),
        R(8),
    )


def case_kl_div(c: Any) -> None:
    f = op("kl_div", "LigerKLDivLossFunction")
    p = R(8, 100).softmax(-1)
    c.same(
        "kl divergence",
        lambda x: f(x, p, "batchmean", False, 1e-10),
        lambda x: F.kl_div(x, p, reduction="batchmean"),
        R(8, 100).log_softmax(-1),
    )


def case_jsd(c: Any) -> None:
    f = op("jsd", "LigerJSDFunction")
    q = R(8, 100).log_softmax(-1)

    def reference(x: Any) -> Any:
        m = ((x.exp() + q.exp()) / 2).log()
        return (
            (F.kl_div(m, q, log_target=True, reduction="sum") + F.kl_div(m, x, log_target=True, reduction="sum"))
            / 2
            / 8
        )

    c.same("jsd", lambda x: f(x, q, None, 0.5, -100), reference, R(8, 100).log_softmax(-1))


def case_tvd(c: Any) -> None:
    f = op("tvd", "LigerTVDLossFunction")
    q = R(8, 100).softmax(-1)
    c.same(
        "total variation",
        lambda x: f(x, q, None, "batchmean", -100),
        lambda x: (x - q).abs().sum() / 2 / 8,
        R(8, 100).softmax(-1),
    )


def turned(x: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def case_rope(c: Any) -> None:
    f = op("rope", "LigerRopeFunction")
    half = R(1, 12, 16)
    cos, sin = torch.cat([half.cos()] * 2, -1), torch.cat([half.sin()] * 2, -1)
    c.same(
        "rope",
        lambda q, k: f(q, k, cos, sin),
        lambda q, k: (q * cos + turned(q) * sin, k * cos + turned(k) * sin),
        R(1, 4, 12, 32),
        R(1, 2, 12, 32),
    )


def case_fused_linear_cross_entropy(c: Any) -> None:
    f = op("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction")
    t = torch.randint(0, 100, (16,))
    c.same(
        "fused linear cross entropy",
        lambda x, w: f(x, w, t)[0] * 1.0,
        lambda x, w: F.cross_entropy(x @ w.t(), t),
        R(16, 32),
        R(100, 32),
    )


def case_dyt(c: Any) -> None:
    f = op("dyt", "LigerDyTFunction")
    c.same("dynamic tanh", f, lambda x, a, g, b: torch.tanh(a * x) * g + b, R(6, 100), torch.ones(1), R(100), R(100))


def sparsemax(x: Any) -> Any:
    s = x.sort(-1, descending=True).values
    total = s.cumsum(-1)
    k = torch.arange(1, x.shape[-1] + 1)
    support = (1 + k * s > total).sum(-1, keepdim=True)
    return (x - (total.gather(-1, support - 1) - 1) / support).clamp(min=0)


def case_sparsemax(c: Any) -> None:
    f = op("sparsemax", "LigerSparsemaxFunction")
    c.same("sparsemax", lambda x: f(x, -1), sparsemax, R(6, 100))


def case_fused_add_rms_norm(c: Any) -> None:
    f = op("fused_add_rms_norm", "LigerFusedAddRMSNormFunction")
    c.same(
        "add and rms norm",
        lambda x, y, w: f(x.clone(), y.clone(), w, 1e-6),
        lambda x, y, w: (F.rms_norm(x + y, (100,), w, 1e-6), x + y),
        R(6, 100),
        R(6, 100),
        R(100),
    )


def case_multi_token_attention(c: Any) -> None:
    f = op("multi_token_attention", "LigerMultiTokenAttentionFunction")

    def reference(s: Any, w: Any) -> Any:
        mask = torch.ones(16, 16).tril().bool()
        p = s.masked_fill(~mask, -1e9).softmax(-1)
        return F.conv2d(p, w, padding=1).masked_fill(~mask, 0)

    c.same(
        "multi-token attention",
        lambda s, w: f(s, w, None, 1, 1, 1, 1, False),
        reference,
        R(1, 2, 16, 16),
        R(2, 2, 3, 3),
    )


def case_grpo_loss(c: Any) -> None:
    f = op("grpo_loss", "GrpoLossFunction")
    ids, mask, advantages = torch.randint(0, 100, (2, 8)), torch.ones(2, 8, dtype=torch.int32), R(2)
    old = R(2, 8) * 0.3 - 4.6

    def reference(x: Any) -> Any:
        logp = (x[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
        ratio = (logp - old).exp()
        a = advantages[:, None]
        return -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a)

    def loss(x: Any, level: str, beta: float) -> Any:
        return f(
            x,
            old,
            old.clone() if beta else None,
            ids,
            advantages,
            mask,
            0.9,
            beta,
            0.2,
            0.2,
            False,
            "grpo",
            None,
            False,
            level,
        )[0]

    c.same("grpo", lambda x: loss(x, "token", 0.0), reference, R(2, 9, 100))
    c.same("grpo with a reference policy", lambda x: loss(x, "token", 0.04), None, R(2, 9, 100))
    c.same("grpo, sequence weights", lambda x: loss(x, "sequence", 0.0), None, R(2, 9, 100))
    g = importlib.import_module("liger_kernel.ops.grpo_loss")
    c.same("selected log softmax", lambda x: g.fused_selective_log_softmax(x, ids, 0.9, mask),
           lambda x: (x[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None])[..., 0], R(2, 9, 100), grad=False)  # fmt: skip


def case_poly_norm(c: Any) -> None:
    f = op("poly_norm", "LigerPolyNormFunction")

    def n(x: Any) -> Any:
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()

    c.same(
        "poly norm",
        lambda x, w, b: f(x, w, b, 1e-6),
        lambda x, w, b: w[0] * n(x**3) + w[1] * n(x**2) + w[2] * n(x) + b,
        R(6, 100),
        R(3),
        R(()),
    )


def case_relu_squared(c: Any) -> None:
    c.same("squared relu", op("relu_squared", "LigerReLUSquaredFunction"), lambda x: F.relu(x) ** 2, R(6, 100))


def case_fused_neighborhood_attention(c: Any) -> None:
    f = op("fused_neighborhood_attention", "LigerFusedNeighborhoodAttentionFunction")

    def reference(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.transpose(-1, -2) * 16**-0.5
        i = torch.arange(24)
        near = (i[:, None] - i[None, :]).abs() <= 3
        return s.masked_fill(~near, float("-inf")).softmax(-1) @ v

    c.same(
        "neighbourhood attention",
        lambda q, k, v: f(q, k, v, 7, 1, None),
        reference,
        R(1, 2, 24, 16),
        R(1, 2, 24, 16),
        R(1, 2, 24, 16),
    )


def case_attn_res(c: Any) -> None:
    f = op("attn_res", "LigerAttnResFunction")

    def reference(v: Any, q: Any, w: Any) -> Any:
        a = ((F.rms_norm(v, (32,), w, 1e-6) * q).sum(-1)).softmax(0)
        return (a[..., None] * v).sum(0)

    c.same("attention over residuals", lambda v, q, w: f(v, q, w, 1e-6), reference, R(3, 2, 5, 32), R(32), R(32))


def case_embedding(c: Any) -> None:
    f = op("experimental.embedding", "LigerEmbeddingFunction")
    i = torch.randint(0, 20, (3, 7))
    c.same("embedding", lambda w: f(w, i), lambda w: F.embedding(i, w), R(20, 24))


def case_int8int2(c: Any) -> None:
    m = importlib.import_module("liger_kernel.ops.experimental.mm_int8int2")
    w = torch.randint(-1, 2, (512, 64))
    a = torch.randint(-100, 100, (32, 512), dtype=torch.int8)
    packed = m.pack_weights(w.clone(), 2)
    got = c.call("int8 by int2 product", lambda: m.matmul(a, packed))
    if got is not None:
        c.compare("int8 by int2 product", [got], [a.long() @ w], 0.0)


def case_fused_ce_tvd(c: Any) -> None:
    f = op("fused_ce_tvd", "LigerFusedCETVDFunction")
    t, target = R(8, 100), torch.randint(0, 100, (8,))
    c.same("cross entropy and total variation", lambda x: f(x, t, target),
           lambda x: (F.cross_entropy(x, target, reduction="none"), (x.softmax(-1) - t.softmax(-1)).abs().sum(-1) / 2), R(8, 100))  # fmt: skip


def case_fused_linear_kl_div(c: Any) -> None:
    f = op("fused_linear_kl_div", "LigerFusedLinearKLDivFunction")
    p = R(8, 100).softmax(-1)
    c.same(
        "linear and kl divergence",
        lambda x, w: f(x, w, p),
        lambda x, w: F.kl_div((x @ w.t()).log_softmax(-1), p, reduction="batchmean"),
        R(8, 32),
        R(100, 32),
    )


def case_fused_linear_jsd(c: Any) -> None:
    f = op("fused_linear_jsd", "LigerFusedLinearJSDFunction")
    u, v = R(8, 32), R(100, 32)
    c.same("linear and jsd", lambda x, w: f(x, w, u, v), None, R(8, 32), R(100, 32))


def case_fused_moe(c: Any) -> None:
    f = op("fused_moe", "LigerFusedMoEFunction")
    tokens, hidden, inner, experts, k = 20, 64, 32, 4, 2
    scores, index = R(tokens, experts).softmax(-1).topk(k, -1)

    def reference(x: Any, gu: Any, d: Any, s: Any) -> Any:
        out = torch.zeros_like(x)
        for e in range(experts):
            g, u = (x @ gu[e].t()).chunk(2, -1)
            y = (F.silu(g) * u) @ d[e].t()
            out = out + y * ((index == e) * s).sum(-1, keepdim=True)
        return out

    c.same("mixture of experts", lambda x, gu, d, s: f(x, gu, d, index.int(), s), reference,
           R(tokens, hidden) * 0.5, R(experts, 2 * inner, hidden) * 0.2, R(experts, hidden, inner) * 0.2, scores)  # fmt: skip


def case_llama4_rope(c: Any) -> None:
    f = op("llama4_rope", "LigerLlama4RopeFunction")
    angles = R(12, 16)
    z = torch.polar(torch.ones_like(angles), angles)

    def one(x: Any) -> Any:
        y = torch.view_as_complex(x.reshape(*x.shape[:-1], 16, 2)) * z[None, :, None]
        return torch.view_as_real(y).flatten(-2)

    c.same("complex rope", lambda q, k: f(q, k, z), lambda q, k: (one(q), one(k)), R(1, 12, 4, 32), R(1, 12, 2, 32))


def case_mhc(c: Any) -> None:
    m = importlib.import_module("liger_kernel.ops.mhc")
    n, d = 4, 32
    coefficients = m.LigerMHCCoeffsFunction.apply
    args = (torch.tensor(0.5), torch.tensor(0.6), torch.tensor(0.7))
    c.same("stream coefficients", lambda x, phi, b, p, q, r: coefficients(x, phi, b, p, q, r, True, 5, 1e-6, 1e-4, 1e-6, 2.0), None,
           R(6, n, d), R(n * d, n * n + 2 * n) * 0.1, R(n * n + 2 * n), *args)  # fmt: skip
    c.same("streams in", m.LigerMHCPreFunction.apply, lambda x, h: (x * h[..., None]).sum(-2), R(6, n, d), R(6, n))
    c.same("streams out", m.LigerMHCPostResFunction.apply, lambda x, y, p, h: torch.einsum("tij,tjc->tic", h, x) + p[..., None] * y[:, None],
           R(6, n, d), R(6, d), R(6, n), R(6, n, n))  # fmt: skip


def case_mlp(c: Any) -> None:
    f = op("mlp", "LigerMLPFunction")
    c.same("gated mlp", lambda x, g, u, d: f(x, g, u, d), lambda x, g, u, d: (F.silu(x @ g.t()) * (x @ u.t())) @ d.t(),
           R(2, 64, 64).bfloat16() * 0.5, R(64, 64).bfloat16() * 0.2, R(64, 64).bfloat16() * 0.2, R(64, 64).bfloat16() * 0.2, tolerance=5e-2)  # fmt: skip
    with torch.no_grad():
        c.same("gated mlp, inference", lambda x, g, u, d: f(x, g, u, d), lambda x, g, u, d: (F.silu(x @ g.t()) * (x @ u.t())) @ d.t(),
               R(2, 64, 64).bfloat16() * 0.5, R(64, 64).bfloat16() * 0.2, R(64, 64).bfloat16() * 0.2, R(64, 64).bfloat16() * 0.2, grad=False, tolerance=5e-2)  # fmt: skip


def case_modulated_rms_norm(c: Any) -> None:
    f = op("modulated_rms_norm", "LigerModulatedRMSNormFunction")
    c.same("modulated rms norm", lambda x, w, s, t: f(x, w, s, t, 1e-6, 0.0, "llama", False),
           lambda x, w, s, t: F.rms_norm(x, (100,), w, 1e-6) * (1 + s[:, None]) + t[:, None], R(2, 6, 100), R(100), R(2, 100), R(2, 100))  # fmt: skip


def case_qwen2vl_mrope(c: Any) -> None:
    f = op("qwen2vl_mrope", "LigerQwen2VLMRopeFunction")
    half = R(3, 1, 12, 16)
    cos, sin = torch.cat([half.cos()] * 2, -1), torch.cat([half.sin()] * 2, -1)

    def pick(t: Any) -> Any:
        return torch.cat([p[i % 3] for i, p in enumerate(t.split([4, 6, 6] * 2, -1))], -1)[:, None]

    c.same("multimodal rope", lambda q, k: f(q, k, cos, sin, [4, 6, 6]), lambda q, k: (q * pick(cos) + turned(q) * pick(sin), k * pick(cos) + turned(k) * pick(sin)),
           R(1, 4, 12, 32), R(1, 2, 12, 32))  # fmt: skip


def case_vocab_parallel_cross_entropy(c: Any) -> None:
    f = op("vocab_parallel_cross_entropy", "LigerVocabParallelCEFunction")
    t = torch.randint(0, 100, (6, 2))
    c.same("cross entropy of a split vocabulary, one part", lambda x: f(x, t, None, -100, 0.0, "megatron", "auto"),
           lambda x: F.cross_entropy(x.reshape(12, 100), t.reshape(12), reduction="none").reshape(6, 2), R(6, 2, 100))  # fmt: skip
