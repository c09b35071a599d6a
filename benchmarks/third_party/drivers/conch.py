"""Conch."""

from __future__ import annotations

import importlib
from typing import Any

import torch
import torch.nn.functional as F

PRELOAD = ["conch"]
R = torch.randn


def get(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"conch.{module}"), name)


def case_activation(c: Any) -> None:
    c.same(
        "gelu_tanh_and_mul",
        get("ops.activation.gelu_tanh_and_mul", "gelu_tanh_and_mul"),
        lambda x: F.gelu(x[:, :64], approximate="tanh") * x[:, 64:],
        R(6, 128),
        grad=False,
    )
    c.same(
        "silu_and_mul",
        get("ops.activation.silu_and_mul", "silu_and_mul"),
        lambda x: F.silu(x[:, :64]) * x[:, 64:],
        R(6, 128).half(),
        grad=False,
    )


def case_normalization(c: Any) -> None:
    c.same(
        "rms_norm",
        lambda x, w: get("ops.normalization.rms_norm", "rms_norm")(x, w, 1e-6),
        lambda x, w: F.rms_norm(x, (128,), w, 1e-6),
        R(6, 128).half(),
        R(128).half(),
        grad=False,
    )
    c.same("fused_add_rms_norm", lambda x, y, w: get("ops.normalization.rms_norm", "fused_add_rms_norm")(x, y, w, 1e-6),
           lambda x, y, w: (F.rms_norm(x + y, (128,), w, 1e-6), x + y), R(6, 128).half(), R(6, 128).half(), R(128).half(), grad=False)  # fmt: skip
    c.same(
        "gemma_rms_norm",
        lambda x, w: get("ops.normalization.gemma_rms_norm", "gemma_rms_norm")(x.clone(), w, 1e-6),
        lambda x, w: F.rms_norm(x, (128,), 1 + w, 1e-6),
        R(6, 128).half(),
        R(128).half(),
        grad=False,
    )


def paged(heads: int, q: Any, k: Any, v: Any, table: Any, lengths: Any) -> Any:
    out = []
    for i, n in enumerate(lengths.tolist()):
        keys, values = (
            torch.cat([x[j] for j in table[i].tolist()])[:n].repeat_interleave(heads // x.shape[2], 1) for x in (k, v)
        )
        p = (torch.einsum("hd,lhd->hl", q[i].float(), keys.float()) * q.shape[-1] ** -0.5).softmax(-1)
        out.append(torch.einsum("hl,lhd->hd", p, values.float()))
    return torch.stack(out).to(q.dtype)


def cache() -> tuple[Any, ...]:
    table = torch.randperm(12).view(3, 4).int()
    return R(12, 16, 2, 64).half(), R(12, 16, 2, 64).half(), table, torch.tensor([20, 64, 33], dtype=torch.int32)


def case_paged_attention(c: Any) -> None:
    k, v, table, lengths = cache()
    c.same(
        "paged_attention",
        lambda q: get("ops.attention.paged_attention", "paged_attention")(q, k, v, table, lengths),
        lambda q: paged(8, q, k, v, table, lengths),
        R(3, 8, 64).half(),
        grad=False,
    )


def case_varlen_attention(c: Any) -> None:
    k, v, table, lengths = cache()
    starts = torch.tensor([0, 5, 12, 14], dtype=torch.int32)

    def reference(q: Any, at_end: bool = True) -> Any:
        out = []
        for i, n in enumerate(lengths.tolist()):
            keys, values = (
                torch.cat([x[j] for j in table[i].tolist()])[:n].repeat_interleave(4, 1).float() for x in (k, v)
            )
            part = q[int(starts[i]) : int(starts[i + 1])].float()
            s = torch.einsum("thd,lhd->htl", part, keys) * 64**-0.5
            t = part.shape[0]
            mask = torch.arange(n)[None] <= torch.arange(t)[:, None] + (n - t if at_end else 0)
            out.append(torch.einsum("htl,lhd->thd", s.masked_fill(~mask, float("-inf")).softmax(-1), values))
        return torch.cat(out).half()

    f = get("ops.attention.varlen_attention", "varlen_attention")
    c.same(
        "varlen_attention",
        lambda q: f(q, k, v, starts, 7, lengths, 64, table, causal=True),
        lambda q: reference(q, False),
        R(14, 8, 64).half(),
        grad=False,
    )

    def unified(q: Any) -> Any:
        out = torch.empty_like(q)
        get("third_party.vllm.unified_attention", "unified_attention")(
            q, k, v, out, starts, 7, lengths, 64, 64**-0.5, True, (-1, -1), table, 0.0, None, None, None
        )
        return out

    c.same("unified_attention", unified, reference, R(14, 8, 64).half(), grad=False)

    def capped(q: Any) -> Any:
        out = torch.empty_like(q)
        get("third_party.vllm.unified_attention", "unified_attention")(
            q, k, v, out, starts, 7, lengths, 64, 64**-0.5, True, (-1, -1), table, 20.0, None, None, None
        )
        return out

    c.same("unified_attention with a soft cap", capped, None, R(14, 8, 64).half(), grad=False)


def case_rotary(c: Any) -> None:
    angles = torch.arange(32)[:, None] * 10000.0 ** (-torch.arange(0, 64, 2) / 64)
    table = torch.cat([angles.cos(), angles.sin()], -1).half()
    at = torch.randint(0, 32, (5,))

    def reference(q: Any, k: Any) -> Any:
        cos, sin = (x[at][:, None].float() for x in table.chunk(2, -1))

        def one(x: Any) -> Any:
            a, b = x.view(5, -1, 64).float().chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape).half()

        return one(q), one(k)

    f = get("ops.embedding.rotary_embedding", "rotary_embedding")
    c.same(
        "rotary_embedding",
        lambda q, k: f(at, q.clone(), k.clone(), 64, table),
        reference,
        R(5, 256).half(),
        R(5, 128).half(),
        grad=False,
    )


def case_scaled_quant(c: Any) -> None:
    scale = torch.tensor([0.05])
    x = R(6, 128).half()
    eight = c.call("scaled_fp8_quant", lambda: get("ops.quantization.fp8", "scaled_fp8_quant")(x, scale)[0])
    if eight is not None:
        c.compare(
            "scaled_fp8_quant",
            [eight.float()],
            [(x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float()],
            0.07,
        )
    whole = c.call("scaled_int8_quant", lambda: get("ops.quantization.int8", "scaled_int8_quant")(x, scale)[0])
    if whole is not None:
        c.compare("scaled_int8_quant", [whole.float()], [(x.float() / scale).clamp(-128, 127).trunc()], 0.0)


def case_gemm(c: Any) -> None:
    a, b = torch.randint(-20, 20, (16, 64), dtype=torch.int8), torch.randint(-20, 20, (64, 32), dtype=torch.int8)
    sa, sb = torch.rand(16, 1), torch.rand(1, 32)
    got = c.call("scaled_gemm", lambda: get("ops.quantization.gemm", "scaled_gemm")(a, b, sa, sb, torch.float16))
    if got is not None:
        c.compare("scaled_gemm", [got], [(a.float() @ b.float()) * sa * sb])
    w = torch.randint(0, 16, (128, 32))
    packed = torch.zeros(16, 32, dtype=torch.int32)
    for i in range(8):
        packed |= (w[i::8] << (4 * i)).int()
    x, s = R(16, 128).half(), torch.rand(1, 32).half()
    got = c.call(
        "mixed_precision_gemm",
        lambda: get("ops.quantization.gemm", "mixed_precision_gemm")(x, packed, s, None, 4, 8, 128),
    )
    if got is not None:
        c.compare("mixed_precision_gemm", [got], [x.float() @ ((w - 8).float() * s.float())])


def case_bitsandbytes(c: Any) -> None:
    m = importlib.import_module("conch.ops.quantization.bitsandbytes.functional")
    x = R(256).half()
    for kind in ("fp4", "nf4"):

        def there_and_back(x: Any, kind: str = kind) -> Any:
            q, state = m.quantize_4bit(x, quant_type=kind)
            return m.dequantize_4bit(q, state, quant_type=kind)

        got = c.call(f"quantize and dequantize {kind}", lambda f=there_and_back: f(x))
        if got is not None:
            c.compare(f"{kind}, there and back", [got.reshape(x.shape)], [x], 0.2)
    got = c.call(
        "quantize and dequantize fp8",
        lambda: (lambda q, s: m.dequantize_blockwise(q, s, quant_type="fp8"))(
            *m.quantize_blockwise(x, code=m._create_dynamic_map(), quant_type="fp8")
        ),
    )
    if got is not None:
        c.compare("fp8, there and back", [got.reshape(x.shape)], [x], 0.05)


def case_nms(c: Any) -> None:
    boxes = torch.rand(60, 4) * 50
    boxes[:, 2:] += boxes[:, :2]
    scores = torch.rand(60)

    def reference() -> Any:
        left, keep = scores.argsort(descending=True).tolist(), []
        while left:
            best, *left = left
            keep.append(best)
            low, high = (
                f(boxes[best, p : p + 2], boxes[left, p : p + 2]) for f, p in ((torch.maximum, 0), (torch.minimum, 2))
            )
            area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
            inter = (high - low).clamp(min=0).prod(-1)
            left = [
                j
                for j, i in zip(left, (inter / (area(boxes[best]) + area(boxes[left]) - inter)).tolist(), strict=True)
                if i <= 0.5
            ]
        return torch.tensor(keep)

    got = c.call("nms", lambda: get("ops.vision.nms", "nms")(boxes, scores, 0.5))
    if got is not None:
        c.compare("nms", [got.float()], [reference().float()], 0.0)


def case_bev_pool(c: Any) -> None:
    x = R(40, 16)
    at = torch.stack(
        [torch.randint(0, 3, (40,)), torch.randint(0, 4, (40,)), torch.zeros(40), torch.zeros(40)], 1
    ).int()
    order = (at[:, 0] * 4 + at[:, 1]).argsort(stable=True)
    x, at = x[order], at[order]
    rank = at[:, 0] * 4 + at[:, 1]
    starts = torch.cat([torch.tensor([0]), (rank[1:] != rank[:-1]).nonzero()[:, 0] + 1]).int()
    lengths = torch.diff(torch.cat([starts, torch.tensor([40])])).int()

    def reference(x: Any) -> Any:
        out = torch.zeros(1, 1, 3, 4, 16)
        return out.index_put((at[:, 3].long(), at[:, 2].long(), at[:, 0].long(), at[:, 1].long()), x, accumulate=True)

    f = get("ops.vision.bev_pool", "bev_pool")
    c.same("bev_pool", lambda x: f(x, at, starts, lengths, 1, 1, 3, 4), reference, x, grad=False)
    g = R(1, 1, 3, 4, 16)
    got = c.call("bev_pool_backward", lambda: get("ops.vision.bev_pool", "bev_pool_backward")(g, at, starts, lengths))
    if got is not None:
        c.compare("bev_pool_backward", [got], [g[0, 0, at[:, 0].long(), at[:, 1].long()]])


def case_voxels(c: Any) -> None:
    m = importlib.import_module("conch.ops.vision.voxelization")
    p = m.VoxelizationParameter((0.0, 0.0, 0.0), (4.0, 4.0, 1.0), (1.0, 1.0, 1.0), 8)
    points = torch.rand(50, 4) * torch.tensor([4.0, 4.0, 1.0, 1.0])
    got = c.call("generate_voxels", lambda: m.generate_voxels(points, p))
    if got is not None:
        cells = (points[:, 1].int() * 4 + points[:, 0].int()).bincount(minlength=16)
        mine = torch.zeros(16)
        for at, n in zip(got[2], got[3], strict=True):
            mine[int(at[1] * 4 + at[0])] = float(n)
        c.compare("points per voxel", [mine], [cells.clamp(max=8).float()], 0.0)


def case_vllm(c: Any) -> None:
    k, v = R(6, 16 * 2 * 8), R(6, 16 * 2 * 8)
    pairs = torch.tensor([[0, 3], [1, 5]])
    mine_k, mine_v = k.clone(), v.clone()
    c.call("copy_blocks", lambda: get("ops.vllm.copy_blocks", "copy_blocks")([mine_k], [mine_v], pairs))
    k[3], k[5], v[3], v[5] = k[0].clone(), k[1].clone(), v[0].clone(), v[1].clone()
    c.compare("copy_blocks", [mine_k, mine_v], [k, v], 0.0)
    key, value, slots = R(5, 2, 64), R(5, 2, 64), torch.tensor([3, 17, 40, 0, 90])
    caches = [torch.zeros(6, 16, 2, 64), torch.zeros(6, 16, 2, 64)]
    want = [x.clone() for x in caches]
    c.call(
        "reshape_and_cache", lambda: get("ops.vllm.reshape_and_cache", "reshape_and_cache")(key, value, *caches, slots)
    )
    for x, part in zip(want, (key, value), strict=True):
        x.view(96, 2, 64)[slots] = part
    c.compare("reshape_and_cache", caches, want, 0.0)


def case_varlen_decode(c: Any) -> None:
    k, v = R(65, 64, 1, 64).half(), R(65, 64, 1, 64).half()
    table, lengths = torch.randperm(65)[:65].view(1, 65).int(), torch.tensor([4130], dtype=torch.int32)
    starts = torch.tensor([0, 1], dtype=torch.int32)
    f = get("ops.attention.varlen_attention", "varlen_attention")
    c.same(
        "varlen_attention, split",
        lambda q: f(q, k, v, starts, 1, lengths, 4130, table, causal=True),
        lambda q: paged(4, q, k, v, table, lengths),
        R(1, 4, 64).half(),
        grad=False,
    )
