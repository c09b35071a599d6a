"""Flash Linear Attention, continued: attention variants, RWKV, and the families with state expansion."""

from __future__ import annotations

import importlib
from typing import Any

import torch
import torch.nn.functional as F

from .fla import PRELOAD as PRELOAD
from .fla import B, D, H, T, causal, draw, first, get, pair, rand


def case_attn(c: Any) -> None:
    pair(c, "ops.attn", "parallel_attn", "q k v", causal)
    q, k, v = rand(1, 3, H, D), rand(1, 60, H, D), rand(1, 60, H, D)
    f = get("ops.attn.decoding", "attn_decoding_one_step")
    starts = torch.tensor([0, 20, 40, 60], dtype=torch.int32)

    def one(q: Any, k: Any, v: Any) -> Any:
        rows = [
            F.scaled_dot_product_attention(
                q[0, i, :, None], k[0, 20 * i : 20 * i + 20].transpose(0, 1), v[0, 20 * i : 20 * i + 20].transpose(0, 1)
            )[:, 0]
            for i in range(3)
        ]
        return torch.stack(rows)[None]

    c.same("attn_decoding_one_step", lambda q, k, v: f(q, k, v, cu_seqlens=starts), one, q, k, v, grad=False)


def case_forgetting_attn(c: Any) -> None:
    def reference(q: Any, k: Any, v: Any, g: Any) -> Any:
        s = g.cumsum(1).transpose(1, 2)
        return causal(q, k, v, s[..., :, None] - s[..., None, :])

    pair(c, "ops.forgetting_attn", "parallel_forgetting_attn", "q k v g", reference)


def case_attnres(c: Any) -> None:
    n = 4
    f = get("ops.attnres", "fused_attnres")
    ref = get("ops.attnres.naive", "naive_attnres")
    parts = [rand(B, T, 64) for _ in range(n)]
    c.same(
        "fused_attnres",
        lambda q, w, *r: f(q, list(r), w),
        lambda q, w, *r: ref(q, list(r), w),
        rand(64),
        torch.rand(64) + 0.5,
        *parts,
    )
    c.same(
        "fused_attnres, output norm",
        lambda q, w, o, *r: f(q, list(r), w, o),
        lambda q, w, o, *r: ref(q, list(r), w, o),
        rand(64),
        torch.rand(64) + 0.5,
        torch.rand(64) + 0.5,
        *parts,
    )


def case_based(c: Any) -> None:
    small = {"q": draw("q", 16), "k": draw("k", 16)}
    for name in ("parallel_based", "fused_chunk_based"):
        pair(c, "ops.based", name, "q k v", None, swap=small)


def case_rebased(c: Any) -> None:
    pair(c, "ops.rebased", "parallel_rebased", "q k v", None, swap={"q": draw("q", 16), "k": draw("k", 16)})


def case_hgrn(c: Any) -> None:
    def reference(x: Any, g: Any) -> Any:
        h, out = torch.zeros(B, x.shape[-1]), []
        for i in range(x.shape[1]):
            h = g[:, i].exp() * h + x[:, i]
            out.append(h)
        return torch.stack(out, 1)

    for name in ("chunk_hgrn", "fused_recurrent_hgrn"):
        c.same(name, first(get("ops.hgrn", name)), reference, rand(B, T, 64), -torch.rand(B, T, 64))


def case_rwkv4(c: Any) -> None:
    f = get("ops.rwkv4", "fused_recurrent_rwkv4")
    c.same(
        "fused_recurrent_rwkv4",
        lambda w, u, k, v, s: f(w, u, k, v, s)[0],
        None,
        -torch.rand(32).exp(),
        rand(32),
        rand(2, 20, 32),
        rand(2, 20, 32),
        torch.zeros(2, 3, 1, 32),
    )


def case_rwkv6(c: Any) -> None:
    for name in ("chunk_rwkv6", "fused_recurrent_rwkv6"):
        pair(c, "ops.rwkv6", name, "r k v w u")


def case_rwkv6_wide(c: Any) -> None:
    pair(
        c,
        "ops.rwkv6",
        "chunk_rwkv6",
        "r k v w u",
        d=512,
        t=33,
        swap={"u": rand(H, 512)},
        what="chunk_rwkv6, 512 channels",
    )


def case_rwkv7(c: Any) -> None:
    def reference(r: Any, w: Any, k: Any, v: Any, a: Any, b: Any) -> Any:
        s, out = torch.zeros(B, H, D, D), []
        for i in range(r.shape[1]):
            s = (
                w[:, i].exp()[..., None] * s
                + torch.einsum("bhk,bhj,bhjv->bhkv", b[:, i], a[:, i], s)
                + torch.einsum("bhk,bhv->bhkv", k[:, i], v[:, i])
            )
            out.append(torch.einsum("bhk,bhkv->bhv", r[:, i], s))
        return torch.stack(out, 1)

    pair(c, "ops.rwkv7", "chunk_rwkv7", "r w k v a b", reference, half=True, more={"scale": 1.0})
    pair(c, "ops.rwkv7", "fused_recurrent_rwkv7", "r w k v a b", reference, more={"scale": 1.0}, grad=False)
    pair(
        c,
        "ops.rwkv7",
        "fused_mul_recurrent_rwkv7",
        "r w k v kk a",
        None,
        swap={"kk": draw("k"), "a": torch.rand(B, T, H, D)},
        grad=False,
    )


def case_rwkv7_parts(c: Any) -> None:
    x = rand(2, 20, 64)
    f, r = (
        get("ops.rwkv7.channel_mixing", "channel_mixing_rwkv7"),
        get("ops.rwkv7.channel_mixing", "channel_mixing_rwkv7_torch"),
    )
    c.same("channel_mixing_rwkv7", first(f), first(r), x, rand(2, 64), rand(64), rand(64, 128), rand(128, 64))
    m = importlib.import_module("fla.ops.rwkv7.fused_k_update")
    c.same("fused_k_rwkv7", m.fused_k_rwkv7, m.k_update_ref, x, rand(2, 20, 64), rand(64))
    c.same("fused_k_rwkv7, long", m.fused_k_rwkv7, m.k_update_ref, rand(1, 5000, 64), rand(1, 5000, 64), rand(64))
    g = importlib.import_module("fla.ops.rwkv7.fused_addcmul")
    six = [rand(1, 1, 64) for _ in range(6)]
    c.same("fused_addcmul_rwkv7", g.fused_addcmul_rwkv7, g.torch_addcmul_rwkv7, x, rand(2, 20, 64), *six)
    o = importlib.import_module("fla.ops.rwkv7.gate_output_correction")
    c.same(
        "gate_output_correction",
        o.gate_output_correction,
        o.gate_output_correction_ref,
        rand(2, 20, H * D),
        rand(2, 20, H, D),
        rand(2, 20, H, D),
        rand(H, D),
        rand(2, 20, H, D),
        rand(2, 20, H * D),
    )


def case_dplr(c: Any) -> None:
    m = "ops.generalized_delta_rule"
    for safe in (False, True):
        more = {"safe_gate": True, "chunk_size": 64, "lower_bound": -5.0} if safe else {}
        pair(
            c,
            m,
            "chunk_dplr_delta_rule",
            "q k v a b gk",
            half=True,
            more=more,
            what=f"chunk_dplr_delta_rule, safe gate {safe}",
        )
    pair(
        c,
        m,
        "chunk_dplr_delta_rule",
        "q k v a b gk",
        half=True,
        more={"chunk_size": 32},
        what="chunk_dplr_delta_rule, chunks of 32",
    )
    pair(c, m, "fused_recurrent_dplr_delta_rule", "q k v a b gk", half=True, grad=False)


def case_iplr(c: Any) -> None:
    m = "ops.generalized_delta_rule"
    pair(c, m, "chunk_iplr_delta_rule", "q k v a b", half=True, grad=False)
    pair(c, m, "fused_recurrent_iplr_delta_rule", "q k v a b")


def case_gsa(c: Any) -> None:
    more = {"g": -torch.rand(B, T, H, 16) * 0.2}
    pair(c, "ops.gsa", "chunk_gsa", "q k v s g", swap=more)
    pair(c, "ops.gsa", "fused_recurrent_gsa", "q k v s g", swap=more)
    with torch.no_grad():
        one = {
            n: x[:, :1]
            for n, x in {"q": draw("q"), "k": draw("k"), "v": draw("v"), "s": draw("s"), "g": more["g"]}.items()
        }
        pair(
            c,
            "ops.gsa",
            "fused_recurrent_gsa",
            "q k v s g",
            swap=one,
            grad=False,
            more={"initial_state": (rand(B, H, D, 16), rand(B, H, 16, D)), "output_final_state": True},
            what="one step",
        )


def case_gsa_gate(c: Any) -> None:
    c.same("fused_additive_gate", lambda x: get("ops.gsa.gate", "fused_additive_gate")(x)[0], None, rand(B, T, H, D))


def case_abc(c: Any) -> None:
    pair(c, "ops.abc", "chunk_abc", "q k v s")


def case_log_linear(c: Any) -> None:
    pair(
        c,
        "ops.log_linear_attn",
        "chunk_log_linear_attn",
        "q k v g level_scales",
        half=True,
        t=130,
        d=64,
        swap={"level_scales": torch.rand(B, 130, H, 10)},
    )
    pair(
        c,
        "ops.log_linear_attn",
        "chunk_log_linear_attn",
        "q k v g level_scales",
        half=True,
        t=130,
        d=64,
        swap={"level_scales": torch.rand(B, 130, H, 10)},
        grad=False,
        more={"output_final_state": True},
        what="with the final state",
    )


def case_mesa(c: Any) -> None:
    lamb = torch.rand(H, D) + 0.5
    pair(
        c,
        "ops.mesa_net",
        "chunk_mesa_net",
        "q k v g beta lamb",
        half=True,
        swap={"lamb": lamb},
        more={"max_CG_iteration": 4},
    )
    f = get("ops.mesa_net", "mesa_net_decoding_one_step")
    one = [
        rand(2, H, D),
        F.normalize(torch.randn(2, H, D), dim=-1),
        rand(2, H, D),
        -torch.rand(2, H),
        lamb,
        torch.rand(2, H),
        torch.eye(D).expand(2, H, D, D).contiguous(),
        rand(2, H, D, D),
    ]
    c.same(
        "mesa_net_decoding_one_step",
        lambda *a: f(*a)[0],
        lambda *a: get("ops.mesa_net", "naive_mesa_net_decoding_one_step")(*a)[0],
        *one,
        grad=False,
    )


def case_nsa(c: Any) -> None:
    h = 32
    q, k, v = rand(1, 64, h, 32), rand(1, 64, 2, 32), rand(1, 64, 2, 32)
    gates = [torch.rand(1, 64, h) for _ in range(3)]
    f = get("ops.nsa", "parallel_nsa")
    c.same("parallel_nsa", lambda q, k, v, a, b: first(f)(q, k, v, a, b, None, None, 2, 16), None, q, k, v, *gates[:2])


def case_path_attn(c: Any) -> None:
    for cache in (False, True):
        pair(
            c,
            "ops.path_attn",
            "parallel_path_attn",
            "q k v w beta g",
            half=True,
            swap={"w": draw("k")},
            full=("w", "beta", "g"),
            grad=not cache,
            more={"use_cache": cache},
            what=f"parallel_path_attn, cache {cache}",
        )


def case_stickbreaking(c: Any) -> None:
    pair(c, "ops.stickbreaking_attn", "parallel_stickbreaking_attn", "q k v")


def case_deltaformer(c: Any) -> None:
    pair(c, "ops.deltaformer", "deltaformer_attn", "q k v beta", half=True, t=64)


def case_ttt(c: Any) -> None:
    more = {"w": rand(H, D), "b": rand(H, D), "eta": torch.rand(B, T, H, 1) * 0.1}
    pair(c, "ops.ttt", "chunk_ttt_linear", "q k v w b eta", half=True, swap=more)
    pair(c, "ops.ttt", "fused_chunk_ttt_linear", "q k v w b eta", half=True, swap=more)


def case_parallax(c: Any) -> None:
    pair(c, "ops.parallax", "parallel_parallax", "q r k v", "naive_parallax", half=True)
    for name in ("parallax_decode", "parallax_decode_one_step"):
        pair(c, "ops.parallax.decode", name, "q r k v", swap={"q": rand(B, 1, H, D), "r": rand(B, 1, H, D)}, grad=False)


def case_wall(c: Any) -> None:
    pair(
        c,
        "ops.wall_attn",
        "parallel_wall_attn",
        "q k v g",
        "naive_wall_attn",
        swap={"g": draw("gk")},
        ref_more={"scale": D**-0.5},
    )


def case_momentum(c: Any) -> None:
    more = {"log_alpha": draw("g"), "log_mu": draw("g"), "eta": torch.rand(B, T, H)}
    for name in ("chunk_momentum_delta_rule", "fused_recurrent_momentum_delta_rule"):
        pair(
            c,
            "ops.momentum_delta_rule",
            name,
            "q k v log_alpha log_mu p beta eta",
            swap=more,
            half=True,
            grad=name.startswith("chunk"),
        )


def case_cyfa(c: Any) -> None:
    names = "q k v g delta beta readout q_norm_weight k_norm_weight"
    more = {
        "g": draw("g"),
        "delta": torch.rand(B, T, H),
        "readout": torch.randn(H, 15, 15),
        "q_norm_weight": torch.ones(D),
        "k_norm_weight": torch.ones(D),
    }
    for name in ("chunk_cyfa", "fused_recurrent_cyfa"):
        pair(
            c,
            "ops.cyfa",
            name,
            names,
            swap=more,
            half=True,
            more={"q_norm_eps": 1e-6, "k_norm_eps": 1e-6},
            grad=name == "chunk_cyfa",
        )


def case_common_split(c: Any) -> None:
    pair(
        c,
        "ops.common.chunk_h_split",
        "chunk_fwd_h",
        "k v g gk gv h0",
        grad=False,
        swap={"g": None, "gk": draw("gk"), "gv": None, "h0": None},
        more={"output_final_state": True},
    )
    pair(
        c,
        "ops.common.chunk_h_parallel",
        "chunk_fwd_h",
        "k v g gk gv h0",
        grad=False,
        swap={"g": None, "gk": draw("gk"), "gv": None, "h0": None},
        more={"output_final_state": True},
    )
