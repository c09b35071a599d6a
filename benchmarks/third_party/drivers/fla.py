"""Flash Linear Attention. Most functions take the same tensors: ``draw`` makes an argument by its parameter's name, so a
case names the function and the package's own torch reference (``naive_*``), where it ships one that computes the same."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

PRELOAD = ["fla.ops"]
B, T, H, D = 1, 70, 2, 32
NAMED: dict[str, Callable[..., Any]] = {}


def rand(*s: int) -> torch.Tensor:
    return torch.randn(*s) * 0.3


def draw(name: str, d: int = D, t: int = T, h: int = H) -> Any:
    """A value for a parameter of that name, shapes (batch, time, heads, size)."""
    unit = lambda: F.normalize(torch.randn(B, t, h, d), dim=-1)
    makers: dict[str, Callable[[], Any]] = {
        "q": lambda: rand(B, t, h, d), "k": unit, "v": lambda: rand(B, t, h, d), "p": unit, "r": lambda: rand(B, t, h, d),
        "g": lambda: -torch.rand(B, t, h) * 0.2, "gk": lambda: -torch.rand(B, t, h, d) * 0.2, "gv": lambda: -torch.rand(B, t, h, d) * 0.2,
        "w": lambda: -torch.rand(B, t, h, d) * 0.2, "beta": lambda: torch.rand(B, t, h), "s": lambda: rand(B, t, h, 16),
        "u": lambda: rand(h, d), "a": lambda: unit() * 0.5, "b": lambda: unit() * 0.5,
    }  # fmt: skip
    return makers[name]()


def get(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"fla.{module}"), name)


def first(f: Any, **more: Any) -> Any:
    """``f`` that gives its first output."""

    def call(*a: Any) -> Any:
        o = f(*a, **more)
        return o[0] if isinstance(o, tuple) else o

    return call


def named(f: Any, names: list[str], **more: Any) -> Any:
    """``f`` over tensors by name, first output."""

    def call(*a: Any) -> Any:
        o = f(**dict(zip(names, a, strict=True)), **more)
        return o[0] if isinstance(o, tuple) else o

    return call


def pair(c: Any, module: str, name: str, names: str, reference: Any = None, *, t: int = T, d: int = D, more: dict[str, Any] | None = None,
         ref_more: dict[str, Any] | None = None, swap: dict[str, Any] | None = None, half: bool = False, grad: bool = True,
         tolerance: float = 2e-2, what: str = "") -> None:  # fmt: skip
    """``fla.module.name`` against ``reference`` (a function, or the name of one of the module) on drawn tensors."""
    order = names.split()
    values = [(swap or {}).get(n, None) if n in (swap or {}) else draw(n, d, t) for n in order]
    values = [v.bfloat16() if half and isinstance(v, torch.Tensor) else v for v in values]
    f = named(get(module, name), order, **(more or {}))
    r = None
    if reference is not None:
        given = get(module + ".naive", reference) if isinstance(reference, str) else reference
        takes = inspect.signature(given).parameters
        r = named(given, order, **(ref_more or {})) if all(n in takes for n in order) else first(given, **(ref_more or {}))
    if half and r is not None:
        inner = r
        r = lambda *a: inner(*(x.float() if isinstance(x, torch.Tensor) else x for x in a)).to(values[0].dtype)
    c.same(what or name, f, r, *values, grad=grad, tolerance=5e-2 if half else tolerance)


def recurrence(q: Any, k: Any, v: Any, decay: Any = None, scale: float = D**-0.5) -> Any:
    """Linear attention with a decay per key channel (or none), step by step."""
    s, out = torch.zeros(B, q.shape[2], q.shape[3], v.shape[3]), []
    for i in range(q.shape[1]):
        if decay is not None:
            s = s * decay[:, i].exp()[..., None]
        s = s + torch.einsum("bhk,bhv->bhkv", k[:, i], v[:, i])
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, i] * scale, s))
    return torch.stack(out, 1)


def delta(q: Any, k: Any, v: Any, beta: Any, g: Any = None) -> Any:
    """The delta rule, with a decay ``g`` per head (batch, time, heads) or per channel, or none."""
    s, out = torch.zeros(B, q.shape[2], q.shape[3], v.shape[3]), []
    for i in range(q.shape[1]):
        if g is not None:
            s = s * (g[:, i].exp()[..., None] if g.dim() == 4 else g[:, i].exp()[..., None, None])
        new = (v[:, i] - torch.einsum("bhk,bhkv->bhv", k[:, i], s)) * beta[:, i][..., None]
        s = s + torch.einsum("bhk,bhv->bhkv", k[:, i], new)
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, i] * q.shape[3] ** -0.5, s))
    return torch.stack(out, 1)


def causal(q: Any, k: Any, v: Any, bias: Any = None) -> Any:
    s = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    s = s if bias is None else s + bias
    return torch.einsum("bhij,bjhd->bihd", s.masked_fill(torch.ones_like(s).triu(1).bool(), float("-inf")).softmax(-1), v)


def case_gla(c: Any) -> None:
    pair(c, "ops.gla", "chunk_gla", "q k v g", lambda q, k, v, g: recurrence(q, k, v, g), swap={"g": draw("gk")})
    pair(c, "ops.gla", "fused_recurrent_gla", "q k v gk", lambda q, k, v, gk: recurrence(q, k, v, gk))


def case_gla_wide(c: Any) -> None:
    pair(c, "ops.gla", "chunk_gla", "q k v g", lambda q, k, v, g: recurrence(q, k, v, g, 512**-0.5), d=512, t=33, swap={"g": draw("gk", 512, 33)}, what="chunk_gla, 512 channels")


def case_simple_gla(c: Any) -> None:
    wide = lambda q, k, v, g: recurrence(q, k, v, g[..., None].expand_as(k))
    for name in ("chunk_simple_gla", "fused_recurrent_simple_gla", "fused_chunk_simple_gla"):
        pair(c, "ops.simple_gla", name, "q k v g", wide)
    pair(c, "ops.simple_gla", "parallel_simple_gla", "q k v g", wide)


def case_linear_attn(c: Any) -> None:
    for name in ("chunk_linear_attn", "fused_recurrent_linear_attn", "fused_chunk_linear_attn"):
        pair(c, "ops.linear_attn", name, "q k v", recurrence, more={"normalize": False})


def case_retention(c: Any) -> None:
    for name in ("chunk_retention", "fused_recurrent_retention", "fused_chunk_retention", "parallel_retention"):
        pair(c, "ops.retention", name, "q k v")


def case_lightning(c: Any) -> None:
    for name in ("chunk_lightning_attn", "fused_recurrent_lightning_attn"):
        pair(c, "ops.lightning_attn", name, "q k v", more={"layer_idx": 0, "num_layers": 4})


def case_lightnet(c: Any) -> None:
    for name in ("chunk_lightnet", "fused_recurrent_lightnet"):
        pair(c, f"ops.lightnet.{name.removesuffix('_lightnet')}", name, "q k v")


def case_delta_rule(c: Any) -> None:
    pair(c, "ops.delta_rule", "chunk_delta_rule", "q k v beta", delta, half=True)
    pair(c, "ops.delta_rule", "fused_recurrent_delta_rule", "q k v beta", delta)


def case_gated_delta_rule(c: Any) -> None:
    pair(c, "ops.gated_delta_rule", "chunk_gated_delta_rule", "q k v g beta", lambda q, k, v, g, beta: delta(q, k, v, beta, g))
    pair(c, "ops.gated_delta_rule", "fused_recurrent_gated_delta_rule", "q k v g beta", lambda q, k, v, g, beta: delta(q, k, v, beta, g), grad=False)


def case_gated_delta_rule_gate(c: Any) -> None:
    x, a, b = rand(B, T, H), rand(H), rand(H)
    plain = lambda g, a, b: -a.exp() * F.softplus(g + b)
    c.same("fused_gdn_gate", get("ops.gated_delta_rule.gate", "fused_gdn_gate"), plain, x, a, b)
    c.same("gate in the kernel", lambda q, k, v, g, beta, a, b: get("ops.gated_delta_rule", "chunk_gated_delta_rule")(
        q, k, v, g, beta, use_gate_in_kernel=True, A_log=a, dt_bias=b)[0], lambda q, k, v, g, beta, a, b: delta(q, k, v, beta, plain(g, a, b)),
        draw("q"), draw("k"), draw("v"), x, draw("beta"), a, b, tolerance=2e-2)  # fmt: skip
    c.same("beta's sigmoid in the kernel", lambda q, k, v, g, beta: get("ops.gated_delta_rule", "chunk_gated_delta_rule")(
        q, k, v, g, beta, use_beta_sigmoid_in_kernel=True)[0], lambda q, k, v, g, beta: delta(q, k, v, beta.sigmoid(), g),
        draw("q"), draw("k"), draw("v"), draw("g"), rand(B, T, H), tolerance=2e-2)  # fmt: skip


def case_gated_delta_product(c: Any) -> None:
    n = 2
    k, v, beta = F.normalize(torch.randn(B, T * n, H, D), dim=-1), rand(B, T * n, H, D), torch.rand(B, T * n, H)
    pair(c, "ops.gated_delta_product", "chunk_gated_delta_product", "q k v g beta", half=True, swap={"k": k, "v": v, "beta": beta}, more={"num_householder": n})
    pair(c, "ops.gated_delta_product", "chunk_gated_delta_product", "q k v g beta", half=True, swap={"k": k, "v": v, "beta": beta, "g": None}, more={"num_householder": n}, what="without gate")


def case_kda(c: Any) -> None:
    ref = lambda q, k, v, g, beta: delta(q, k, v, beta, g)
    pair(c, "ops.kda", "chunk_kda", "q k v g beta", ref, swap={"g": draw("gk")})
    pair(c, "ops.kda", "fused_recurrent_kda", "q k v g beta", ref, swap={"g": draw("gk")}, grad=False)
    pair(c, "ops.kda", "chunk_kda", "q k v g beta", ref, swap={"g": draw("gk")}, more={"safe_gate": True, "lower_bound": -5.0}, what="chunk_kda, safe gate")


def case_kda_gate(c: Any) -> None:
    gate = get("ops.kda.gate", "fused_kda_gate")
    plain = lambda g, a, b: -a.exp()[:, None] * F.softplus(g + b.view(H, D))
    x, a, b = rand(B, T, H, D), rand(H), rand(H * D)
    c.same("fused_kda_gate", gate, plain, x, a, b)
    c.same("gate in the kernel", lambda q, k, v, g, beta, a, b: get("ops.kda", "chunk_kda")(q, k, v, g, beta, use_gate_in_kernel=True, A_log=a, dt_bias=b)[0],
           lambda q, k, v, g, beta, a, b: delta(q, k, v, beta, plain(g, a, b)), draw("q"), draw("k"), draw("v"), x, draw("beta"), a, b, tolerance=2e-2)  # fmt: skip


def case_gdn2(c: Any) -> None:
    more = {"b": torch.rand(B, T, H, D), "w": torch.rand(B, T, H, D), "g": draw("gk")}
    pair(c, "ops.gdn2", "chunk_gdn2", "q k v g b w", "naive_recurrent_gdn2", swap=more)
    pair(c, "ops.gdn2", "chunk_gdn2", "q k v g b w", "naive_recurrent_gdn2", swap=more, more={"safe_gate": True, "lower_bound": -5.0}, what="chunk_gdn2, safe gate")
    pair(c, "ops.gdn2", "fused_recurrent_gdn2", "q k v g b w", "naive_recurrent_gdn2", swap=more, grad=False)


def case_comba(c: Any) -> None:
    pair(c, "ops.comba", "chunk_comba", "q k v p g beta", "naive_recurrent_comba")
    pair(c, "ops.comba", "fused_recurrent_comba", "q k p v g beta", "naive_recurrent_comba", grad=False)


def case_gated_oja(c: Any) -> None:
    pair(c, "ops.gated_oja_rule", "chunk_gated_oja_rule", "q k v gv beta")
    pair(c, "ops.gated_oja_rule", "fused_recurrent_gated_oja_rule", "q k v gv beta", grad=False)


def atk() -> dict[str, Any]:
    return {"g_atk": draw("g"), "beta_atk": draw("beta"), "g": draw("g")}


def case_precond_gated_delta_rule(c: Any) -> None:
    names = "q k v g_atk g beta_atk beta"
    pair(c, "ops.precond_gated_delta_rule", "chunk_precond_gated_delta_rule", names, "naive_recurrent_precond_gated_delta_rule", swap=atk())
    pair(c, "ops.precond_gated_delta_rule", "fused_recurrent_precond_gated_delta_rule", names, "naive_recurrent_precond_gated_delta_rule", swap=atk(), grad=False)


def case_precond_kda(c: Any) -> None:
    names = "q k v g g_atk beta_atk beta"
    given = {**atk(), "g": draw("gk"), "q": draw("k")}  # both normalise q in the kernel or before it
    pair(c, "ops.precond_kda", "chunk_precond_kda", names, "naive_recurrent_precond_kda", swap=given)
    pair(c, "ops.precond_kda", "chunk_precond_kda", names, "naive_recurrent_precond_kda", swap=given, more={"safe_gate": True, "lower_bound": -5.0}, what="safe gate")
    pair(c, "ops.precond_kda", "fused_recurrent_precond_kda", names, "naive_recurrent_precond_kda", swap=given, grad=False)


def case_attn(c: Any) -> None:
    pair(c, "ops.attn", "parallel_attn", "q k v", causal)
    q, k, v = rand(1, 3, H, D), rand(1, 60, H, D), rand(1, 60, H, D)
    f = get("ops.attn.decoding", "attn_decoding_one_step")
    starts = torch.tensor([0, 20, 40, 60], dtype=torch.int32)

    def one(q: Any, k: Any, v: Any) -> Any:
        rows = [F.scaled_dot_product_attention(q[0, i, :, None], k[0, 20 * i : 20 * i + 20].transpose(0, 1), v[0, 20 * i : 20 * i + 20].transpose(0, 1))[:, 0] for i in range(3)]
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
    c.same("fused_attnres", lambda q, w, *r: f(q, list(r), w), lambda q, w, *r: ref(q, list(r), w), rand(64), torch.rand(64) + 0.5, *parts)
    c.same("fused_attnres, output norm", lambda q, w, o, *r: f(q, list(r), w, o), lambda q, w, o, *r: ref(q, list(r), w, o), rand(64), torch.rand(64) + 0.5, torch.rand(64) + 0.5, *parts)


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
    c.same("fused_recurrent_rwkv4", lambda w, u, k, v, s: f(w, u, k, v, s)[0], None, -torch.rand(32).exp(), rand(32), rand(2, 20, 32), rand(2, 20, 32), torch.zeros(2, 3, 1, 32))


def case_rwkv6(c: Any) -> None:
    for name in ("chunk_rwkv6", "fused_recurrent_rwkv6"):
        pair(c, "ops.rwkv6", name, "r k v w u")


def case_rwkv6_wide(c: Any) -> None:
    pair(c, "ops.rwkv6", "chunk_rwkv6", "r k v w u", d=512, t=33, swap={"u": rand(H, 512)}, what="chunk_rwkv6, 512 channels")


def case_rwkv7(c: Any) -> None:
    def reference(r: Any, w: Any, k: Any, v: Any, a: Any, b: Any) -> Any:
        s, out = torch.zeros(B, H, D, D), []
        for i in range(r.shape[1]):
            s = w[:, i].exp()[..., None] * s + torch.einsum("bhk,bhj,bhjv->bhkv", b[:, i], a[:, i], s) + torch.einsum("bhk,bhv->bhkv", k[:, i], v[:, i])
            out.append(torch.einsum("bhk,bhkv->bhv", r[:, i], s))
        return torch.stack(out, 1)

    pair(c, "ops.rwkv7", "chunk_rwkv7", "r w k v a b", reference, half=True, more={"scale": 1.0})
    pair(c, "ops.rwkv7", "fused_recurrent_rwkv7", "r w k v a b", reference, more={"scale": 1.0}, grad=False)
    pair(c, "ops.rwkv7", "fused_mul_recurrent_rwkv7", "r w k v kk a", None, swap={"kk": draw("k"), "a": torch.rand(B, T, H, D)}, grad=False)


def case_rwkv7_parts(c: Any) -> None:
    x = rand(2, 20, 64)
    f, r = get("ops.rwkv7.channel_mixing", "channel_mixing_rwkv7"), get("ops.rwkv7.channel_mixing", "channel_mixing_rwkv7_torch")
    c.same("channel_mixing_rwkv7", first(f), first(r), x, rand(2, 64), rand(64), rand(64, 128), rand(128, 64))
    m = importlib.import_module("fla.ops.rwkv7.fused_k_update")
    c.same("fused_k_rwkv7", m.fused_k_rwkv7, m.k_update_ref, x, rand(2, 20, 64), rand(64))
    c.same("fused_k_rwkv7, long", m.fused_k_rwkv7, m.k_update_ref, rand(1, 5000, 64), rand(1, 5000, 64), rand(64))
    g = importlib.import_module("fla.ops.rwkv7.fused_addcmul")
    six = [rand(1, 1, 64) for _ in range(6)]
    c.same("fused_addcmul_rwkv7", g.fused_addcmul_rwkv7, g.torch_addcmul_rwkv7, x, rand(2, 20, 64), *six)
    o = importlib.import_module("fla.ops.rwkv7.gate_output_correction")
    c.same("gate_output_correction", o.gate_output_correction, o.gate_output_correction_ref, rand(2, 20, H * D), rand(2, 20, H, D), rand(2, 20, H, D), rand(H, D), rand(2, 20, H, D), rand(2, 20, H * D))


def case_dplr(c: Any) -> None:
    m = "ops.generalized_delta_rule"
    for safe in (False, True):
        more = {"safe_gate": True, "chunk_size": 64, "lower_bound": -5.0} if safe else {}
        pair(c, m, "chunk_dplr_delta_rule", "q k v a b gk", half=True, more=more, what=f"chunk_dplr_delta_rule, safe gate {safe}")
    pair(c, m, "chunk_dplr_delta_rule", "q k v a b gk", half=True, more={"chunk_size": 32}, what="chunk_dplr_delta_rule, chunks of 32")
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
        one = {n: x[:, :1] for n, x in {"q": draw("q"), "k": draw("k"), "v": draw("v"), "s": draw("s"), "g": more["g"]}.items()}
        pair(c, "ops.gsa", "fused_recurrent_gsa", "q k v s g", swap=one, grad=False, more={"initial_state": (rand(B, H, D, 16), rand(B, H, 16, D)), "output_final_state": True}, what="one step")


def case_gsa_gate(c: Any) -> None:
    c.same("fused_additive_gate", lambda x: get("ops.gsa.gate", "fused_additive_gate")(x)[0], None, rand(B, T, H, D))


def case_abc(c: Any) -> None:
    pair(c, "ops.abc", "chunk_abc", "q k v s")


def case_log_linear(c: Any) -> None:
    pair(c, "ops.log_linear_attn", "chunk_log_linear_attn", "q k v g level_scales", half=True, t=130, swap={"level_scales": torch.rand(B, 130, H, 10)})
    pair(c, "ops.log_linear_attn", "chunk_log_linear_attn", "q k v g level_scales", half=True, t=130, swap={"level_scales": torch.rand(B, 130, H, 10)}, grad=False, more={"output_final_state": True}, what="with the final state")


def case_mesa(c: Any) -> None:
    lamb = torch.rand(H, D) + 0.5
    pair(c, "ops.mesa_net", "chunk_mesa_net", "q k v g beta lamb", half=True, swap={"lamb": lamb}, more={"max_CG_iteration": 4})
    f = get("ops.mesa_net", "mesa_net_decoding_one_step")
    one = [rand(2, H, D), F.normalize(torch.randn(2, H, D), dim=-1), rand(2, H, D), -torch.rand(2, H), lamb, torch.rand(2, H), torch.eye(D).expand(2, H, D, D).contiguous(), rand(2, H, D, D)]
    c.same("mesa_net_decoding_one_step", lambda *a: f(*a)[0], lambda *a: get("ops.mesa_net", "naive_mesa_net_decoding_one_step")(*a)[0], *one, grad=False)


def case_nsa(c: Any) -> None:
    h = 32
    q, k, v = rand(1, 64, h, 32), rand(1, 64, 2, 32), rand(1, 64, 2, 32)
    gates = [torch.rand(1, 64, h) for _ in range(3)]
    f = get("ops.nsa", "parallel_nsa")
    c.same("parallel_nsa", lambda q, k, v, a, b: first(f)(q, k, v, a, b, None, None, 2, 16), None, q, k, v, *gates[:2])


def case_path_attn(c: Any) -> None:
    for cache in (False, True):
        pair(c, "ops.path_attn", "parallel_path_attn", "q k v w beta g", half=True, swap={"w": draw("k")}, grad=not cache, more={"use_cache": cache}, what=f"parallel_path_attn, cache {cache}")


def case_stickbreaking(c: Any) -> None:
    pair(c, "ops.stickbreaking_attn", "parallel_stickbreaking_attn", "q k v")


def case_deltaformer(c: Any) -> None:
    pair(c, "ops.deltaformer", "deltaformer_attn", "q k v beta", half=True, t=64)


def case_ttt(c: Any) -> None:
    more = {"w": rand(H, D), "b": rand(H, D), "eta": torch.rand(B, T, H, 1) * 0.1}
    pair(c, "ops.ttt", "chunk_ttt_linear", "q k v w b eta", half=True, swap=more)
    pair(c, "ops.ttt", "fused_chunk_ttt_linear", "q k v w b eta", half=True, swap=more)


def case_parallax(c: Any) -> None:
    pair(c, "ops.parallax", "parallel_parallax", "q r k v", "naive_parallax")
    for name in ("parallax_decode", "parallax_decode_one_step"):
        pair(c, "ops.parallax.decode", name, "q r k v", swap={"q": rand(B, 1, H, D), "r": rand(B, 1, H, D)}, grad=False)


def case_wall(c: Any) -> None:
    pair(c, "ops.wall_attn", "parallel_wall_attn", "q k v g", "naive_wall_attn", swap={"g": draw("gk")})


def case_momentum(c: Any) -> None:
    more = {"log_alpha": draw("g"), "log_mu": draw("g"), "eta": torch.rand(B, T, H)}
    for name in ("chunk_momentum_delta_rule", "fused_recurrent_momentum_delta_rule"):
        pair(c, "ops.momentum_delta_rule", name, "q k v log_alpha log_mu p beta eta", swap=more)


def case_cyfa(c: Any) -> None:
    names = "q k v g delta beta readout"
    readout = torch.randn(H, 4)
    more = {"g": draw("g"), "delta": torch.rand(B, T, H), "beta": torch.rand(B, T, H), "readout": readout}
    for name in ("chunk_cyfa", "fused_recurrent_cyfa"):
        pair(c, "ops.cyfa", name, names, swap=more, grad=name == "chunk_cyfa")


def case_common_split(c: Any) -> None:
    pair(c, "ops.common.chunk_h_split", "chunk_fwd_h", "k v g gk gv h0", grad=False, swap={"g": None, "gk": draw("gk"), "gv": None, "h0": None}, more={"output_final_state": True})
    pair(c, "ops.common.chunk_h_parallel", "chunk_fwd_h", "k v g gk gv h0", grad=False, swap={"g": None, "gk": draw("gk"), "gv": None, "h0": None}, more={"output_final_state": True})
