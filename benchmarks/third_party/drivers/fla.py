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
         ref_more: dict[str, Any] | None = None, swap: dict[str, Any] | None = None, half: bool = False, full: tuple[str, ...] = (), grad: bool = True,
         tolerance: float = 2e-2, what: str = "") -> None:  # fmt: skip
    """``fla.module.name`` against ``reference`` (a function, or the name of one of the module) on drawn tensors."""
    order = names.split()
    values = [(swap or {}).get(n, None) if n in (swap or {}) else draw(n, d, t) for n in order]
    narrow = [half and isinstance(v, torch.Tensor) and n not in full for n, v in zip(order, values, strict=True)]
    values = [v.bfloat16() if h else v for h, v in zip(narrow, values, strict=True)]
    f = named(get(module, name), order, **(more or {}))
    r = None
    if reference is not None:
        given = get(module + ".naive", reference) if isinstance(reference, str) else reference
        takes = inspect.signature(given).parameters
        r = (
            named(given, order, **(ref_more or {}))
            if all(n in takes for n in order)
            else first(given, **(ref_more or {}))
        )
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
    return torch.einsum(
        "bhij,bjhd->bihd", s.masked_fill(torch.ones_like(s).triu(1).bool(), float("-inf")).softmax(-1), v
    )


def case_gla(c: Any) -> None:
    pair(c, "ops.gla", "chunk_gla", "q k v g", lambda q, k, v, g: recurrence(q, k, v, g), swap={"g": draw("gk")})
    pair(c, "ops.gla", "fused_recurrent_gla", "q k v gk", lambda q, k, v, gk: recurrence(q, k, v, gk))


def case_gla_wide(c: Any) -> None:
    pair(
        c,
        "ops.gla",
        "chunk_gla",
        "q k v g",
        lambda q, k, v, g: recurrence(q, k, v, g, 512**-0.5),
        d=512,
        t=33,
        swap={"g": draw("gk", 512, 33)},
        what="chunk_gla, 512 channels",
    )


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
    pair(
        c,
        "ops.gated_delta_rule",
        "chunk_gated_delta_rule",
        "q k v g beta",
        lambda q, k, v, g, beta: delta(q, k, v, beta, g),
    )
    pair(
        c,
        "ops.gated_delta_rule",
        "fused_recurrent_gated_delta_rule",
        "q k v g beta",
        lambda q, k, v, g, beta: delta(q, k, v, beta, g),
        grad=False,
    )


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
    pair(
        c,
        "ops.gated_delta_product",
        "chunk_gated_delta_product",
        "q k v g beta",
        half=True,
        swap={"k": k, "v": v, "beta": beta},
        more={"num_householder": n},
    )
    pair(
        c,
        "ops.gated_delta_product",
        "chunk_gated_delta_product",
        "q k v g beta",
        half=True,
        swap={"k": k, "v": v, "beta": beta, "g": None},
        more={"num_householder": n},
        what="without gate",
    )


def case_kda(c: Any) -> None:
    ref = lambda q, k, v, g, beta: delta(q, k, v, beta, g)
    pair(c, "ops.kda", "chunk_kda", "q k v g beta", ref, swap={"g": draw("gk")})
    pair(c, "ops.kda", "fused_recurrent_kda", "q k v g beta", ref, swap={"g": draw("gk")}, grad=False)
    pair(
        c,
        "ops.kda",
        "chunk_kda",
        "q k v g beta",
        ref,
        swap={"g": draw("gk")},
        more={"safe_gate": True, "lower_bound": -5.0},
        what="chunk_kda, safe gate",
    )


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
    pair(
        c,
        "ops.gdn2",
        "chunk_gdn2",
        "q k v g b w",
        "naive_recurrent_gdn2",
        swap=more,
        more={"safe_gate": True, "lower_bound": -5.0},
        what="chunk_gdn2, safe gate",
    )
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
    pair(
        c,
        "ops.precond_gated_delta_rule",
        "chunk_precond_gated_delta_rule",
        names,
        "naive_recurrent_precond_gated_delta_rule",
        swap=atk(),
    )
    pair(
        c,
        "ops.precond_gated_delta_rule",
        "fused_recurrent_precond_gated_delta_rule",
        names,
        "naive_recurrent_precond_gated_delta_rule",
        swap=atk(),
        grad=False,
    )


def case_precond_kda(c: Any) -> None:
    names = "q k v g g_atk beta_atk beta"
    given = {**atk(), "g": draw("gk"), "q": draw("k")}  # both normalise q in the kernel or before it
    naive = get("ops.precond_kda.naive", "naive_recurrent_precond_kda")

    def reference(q: Any, k: Any, v: Any, g: Any, g_atk: Any, beta_atk: Any, beta: Any) -> Any:
        return naive(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, g, g_atk, beta_atk, beta)[0]

    pair(c, "ops.precond_kda", "chunk_precond_kda", names, reference, swap=given)
    pair(
        c,
        "ops.precond_kda",
        "chunk_precond_kda",
        names,
        reference,
        swap=given,
        more={"safe_gate": True, "lower_bound": -5.0},
        what="safe gate",
    )
    pair(c, "ops.precond_kda", "fused_recurrent_precond_kda", names, reference, swap=given, grad=False)
