"""Flash-MaxSim."""

from __future__ import annotations

import importlib
from typing import Any

import torch

PRELOAD = ["flash_maxsim"]


def get(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"flash_maxsim.{module}"), name)


def scores(q: Any, d: Any) -> Any:
    """(queries, documents): for each query token its best document token, summed."""
    return torch.einsum("qid,njd->qnij", q.float(), d.float()).amax(-1).sum(-1)


Q, D = torch.Size((4, 24, 64)), torch.Size((10, 50, 64))


def inputs() -> tuple[Any, Any]:
    return torch.randn(Q).half() * 0.3, torch.randn(D).half() * 0.3


def case_forward(c: Any) -> None:
    q, d = inputs()
    one = lambda q, d: scores(q[None], d)[0]
    for name in ("flash_maxsim", "flash_maxsim_persistent", "flash_maxsim_qreuse", "flash_maxsim_splitk"):
        module = {"flash_maxsim_qreuse": "flash_maxsim_advanced", "flash_maxsim_splitk": "flash_maxsim_advanced"}.get(
            name, "flash_maxsim"
        )
        c.same(name, get(module, name), one, q[0], d, grad=False)
    c.same("flash_maxsim_heuristic", get("flash_maxsim_exp", "flash_maxsim_heuristic"), one, q[0], d, grad=False)
    c.same(
        "flash_maxsim, long",
        get("flash_maxsim", "flash_maxsim"),
        one,
        torch.randn(200, 128).half() * 0.3,
        torch.randn(4, 300, 128).half() * 0.3,
        grad=False,
    )
    c.same(
        "flash_maxsim, lengths",
        lambda q, d: get("flash_maxsim", "flash_maxsim")(q, d, torch.full((10,), 50, dtype=torch.int32)),
        one,
        q[0],
        d,
        grad=False,
    )
    c.same("flash_maxsim_batched", get("flash_maxsim", "flash_maxsim_batched"), scores, q, d, grad=False)
    c.same(
        "flash_maxsim, wide",
        get("flash_maxsim", "flash_maxsim"),
        one,
        torch.randn(24, 512).half() * 0.3,
        torch.randn(4, 50, 512).half() * 0.3,
        grad=False,
    )


def case_pairs(c: Any) -> None:
    q, d = torch.randn(4, 32, 64).half() * 0.3, torch.randn(10, 64, 64).half() * 0.3
    pairs = lambda q, d: torch.stack([scores(a[None], b[None])[0, 0] for a, b in zip(q, d, strict=True)])
    c.same(
        "flash_maxsim_pairs_dense",
        get("flash_maxsim_pairs_dense", "flash_maxsim_pairs_dense"),
        pairs,
        q,
        d[:4],
        grad=False,
    )
    c.same(
        "flash_maxsim_pairs",
        lambda q, d: get("flash_maxsim", "flash_maxsim_pairs")(list(q), list(d)),
        pairs,
        q,
        d[:4],
        grad=False,
    )
    m = importlib.import_module("flash_maxsim.flash_maxsim_varlen")
    c.same(
        "flash_maxsim_packed",
        lambda q, d: m.flash_maxsim_packed(q, *m.pack_docs(list(d))),
        lambda q, d: scores(q[None], d)[0],
        q[0],
        d,
        grad=False,
    )
    c.same(
        "flash_maxsim_varlen",
        lambda q, d: m.flash_maxsim_varlen(*m.pack_pairs(list(q), list(d))),
        pairs,
        q,
        d[:4],
        grad=False,
    )
    r = importlib.import_module("flash_maxsim.flash_maxsim_rerank")
    starts = torch.arange(0, 641, 64, dtype=torch.int32)
    c.same(
        "flash_maxsim_rerank",
        lambda q, d: r.flash_maxsim_rerank(q, d.reshape(640, 64), starts, 64),
        lambda q, d: scores(q[None], d)[0],
        q[0],
        d,
        grad=False,
    )
    c.same(
        "flash_maxsim_sparse",
        lambda q, d: get("flash_maxsim_sparse", "flash_maxsim_sparse")(q, d, torch.arange(8).repeat(10, 1)),
        lambda q, d: scores(q[None, :8], d)[0],
        q[0],
        d,
        grad=False,
    )


def case_quant(c: Any) -> None:
    m = importlib.import_module("flash_maxsim.flash_maxsim_quant")
    q, d = inputs()
    one = lambda q, d: scores(q[None], d)[0]
    c.same(
        "flash_maxsim_int8",
        lambda q, d: m.flash_maxsim_int8(q, *m.quantize_int8(d)),
        one,
        q[0],
        d,
        grad=False,
        tolerance=0.05,
    )
    c.same(
        "flash_maxsim_int8_symmetric",
        lambda q, d: m.flash_maxsim_int8_symmetric(q, *m.quantize_int8_symmetric(d)),
        one,
        q[0],
        d,
        grad=False,
        tolerance=0.05,
    )
    c.same(
        "flash_maxsim_int8x8",
        lambda q, d: m.flash_maxsim_int8x8(q, *m.quantize_int8_symmetric(d)),
        one,
        q[0],
        d,
        grad=False,
        tolerance=0.05,
    )


def case_train(c: Any) -> None:
    q, d = inputs()
    c.same(
        "flash_maxsim_train",
        get("flash_maxsim", "flash_maxsim_train"),
        lambda q, d: scores(q[None], d)[0],
        q[0],
        d,
        tolerance=0.05,
    )
    for module, name in (("flash_maxsim_batched_train", "flash_maxsim_batched_train"), ("flash_maxsim_fusedbwd_proposal", "flash_maxsim_batched_train_fused"),
                         ("flash_maxsim_int8_train", "flash_maxsim_int8_batched_train"), ("flash_maxsim_invgrid_proposal", "flash_maxsim_invgrid_train"),
                         ("flash_maxsim_persistbwd_proposal", "flash_maxsim_batched_train_persistbwd"), ("flash_maxsim_sortbwd_proposal", "flash_maxsim_batched_train_sortbwd")):  # fmt: skip
        c.same(name, lambda q, d, f=get(module, name): f(q, d, shared_docs=True), scores, q, d, tolerance=0.1)


def case_contrastive(c: Any) -> None:
    q, d = torch.randn(4, 24, 64).half() * 0.3, torch.randn(4, 50, 64).half() * 0.3
    c.same(
        "colbert_contrastive_step",
        lambda q, d: get("flash_maxsim_contrastive", "colbert_contrastive_step")(q, d),
        None,
        q,
        d,
    )


def case_chamfer(c: Any) -> None:
    p, q = torch.randn(40, 3), torch.randn(50, 3)
    for metric in ("l2_sq", "l1"):
        c.same(
            f"flash_chamfer, {metric}",
            lambda p, q, m=metric: get("flash_chamfer", "flash_chamfer")(p, q, m),
            lambda p, q, m=metric: get("flash_chamfer", "naive_chamfer")(p, q, m),
            p,
            q,
            grad=False,
        )
    c.same(
        "flash_chamfer_train", get("flash_chamfer", "flash_chamfer_train"), get("flash_chamfer", "naive_chamfer"), p, q
    )
    c.same(
        "flash_chamfer_invgrid_train",
        get("flash_chamfer_invgrid", "flash_chamfer_invgrid_train"),
        get("flash_chamfer", "naive_chamfer"),
        p,
        q,
    )


def case_train_own_documents(c: Any) -> None:
    q, d = torch.randn(3, 16, 64).half() * 0.3, torch.randn(3, 4, 32, 64).half() * 0.3
    c.same(
        "flash_maxsim_batched_train, own documents",
        lambda q, d: get("flash_maxsim_batched_train", "flash_maxsim_batched_train")(q, d, shared_docs=False),
        lambda q, d: torch.einsum("qid,qnjd->qnij", q.float(), d.float()).amax(-1).sum(-1),
        q,
        d,
        tolerance=0.1,
    )
