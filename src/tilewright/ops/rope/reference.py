"""Rotary embedding in PyTorch, in float32 or wider."""

from __future__ import annotations

import torch


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """The first ``2 * cos.shape[-1]`` dims turned, the rest as it is."""
    wide = torch.promote_types(x.dtype, torch.float32)
    half = cos.shape[-1]
    c, s, y = cos.to(wide), sin.to(wide), x.to(wide)
    rotary, rest = y[..., : 2 * half], y[..., 2 * half :]
    if interleaved:
        a, b = rotary[..., 0::2], rotary[..., 1::2]
        rotary = torch.stack((a * c - b * s, b * c + a * s), dim=-1).flatten(-2)
    else:
        a, b = rotary.chunk(2, dim=-1)
        rotary = torch.cat((a * c - b * s, b * c + a * s), dim=-1)
    return torch.cat((rotary, rest), dim=-1).to(x.dtype)


def _lines(table: torch.Tensor, positions: torch.Tensor | None, length: int) -> torch.Tensor:
    """The line of ``table`` of each token, as (batch or 1, 1, length, half); NaN where a position lies outside."""
    if positions is None:
        lines = table[..., :length, :]
        return lines[:, None] if table.dim() == 3 else lines[None, None]
    known = (positions >= 0) & (positions < table.shape[-2])
    at = torch.where(known, positions, torch.zeros_like(positions))
    if table.dim() == 2:
        lines = table[at]
    else:
        batch = max(table.shape[0], at.shape[0])
        lines = table.expand(batch, -1, -1).gather(
            1, at.expand(batch, -1).unsqueeze(-1).expand(-1, -1, table.shape[-1])
        )
    return torch.where(known.unsqueeze(-1), lines, torch.full_like(lines, float("nan")))[:, None]


def rope(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None = None,
    interleaved: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys, turned by the angles of their positions."""
    c, s = (_lines(t, positions, q.shape[2]) for t in (cos, sin))
    return _turned(q, c, s, interleaved), _turned(k, c, s, interleaved)
