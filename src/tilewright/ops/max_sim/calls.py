"""How the hazards call each form."""

from __future__ import annotations

from typing import Any

import torch

from .._builder import Call


def _padded(
    queries: int, documents: int, tokens: tuple[int, int] = (5, 9), features: int = 12, masked: bool = True
) -> Any:
    def make(dtype: torch.dtype, device: str) -> dict[str, Any]:
        given = {n: torch.randn(count, length, features, device=device).to(dtype)
                 for n, count, length in zip("qd", (queries, documents), tokens, strict=True)}  # fmt: skip
        if masked:
            given |= {f"{n}_mask": torch.rand(given[n].shape[:2], device=device) > 0.3 for n in "qd"}
            given["d_mask"][-1:] = False  # a document without a token
        return given

    return make


def _int8(dtype: torch.dtype, device: str) -> dict[str, Any]:
    given = _padded(3, 4)(dtype, device)
    given["d"] = torch.randint(-127, 128, given["d"].shape, dtype=torch.int8, device=device)
    wide = torch.promote_types(dtype, torch.float32)
    return given | {"scale": torch.rand(given["d"].shape[:2], device=device, dtype=wide) + 0.1}


def _packed(dtype: torch.dtype, device: str) -> dict[str, Any]:
    ends = {"cu_q": [0, 3, 3, 10], "cu_d": [0, 7, 20, 20, 33]}  # an empty query, an empty document
    cu = {n: torch.tensor(e, dtype=torch.int32, device=device) for n, e in ends.items()}
    return {n: torch.randn(e[-1], 12, device=device).to(dtype) for n, e in zip("qd", ends.values(), strict=True)} | cu


PADDED = (Call("masked", _padded(3, 4)), Call("plain", _padded(2, 3, (33, 70), 20, masked=False)),
          Call("no_documents", _padded(2, 0, masked=False)),
          Call("no_tokens", _padded(2, 2, (3, 0), masked=False)))  # fmt: skip
PAIRS = (Call("masked", _padded(4, 4)), Call("plain", _padded(3, 3, (17, 70), 20, masked=False)))
PACKED = (Call("packed", _packed),)
INT8 = (Call("masked", _int8),)
