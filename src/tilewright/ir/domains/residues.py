"""Arithmetic modulo primes of 23 bits in float64: a product has 46 bits and 64 products sum exactly.

Residues are float64 tensors with whole entries in [0, m). NaN and infinities pass through as floats do.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

Q = 4194143
P = 2 * Q + 1
BLOCK = 64


def mod(x: Tensor, m: int) -> Tensor:
    """Least non-negative residue of whole numbers below 2^53."""
    return torch.remainder(x, float(m))


def mul(a: Tensor, b: Tensor, m: int) -> Tensor:
    return torch.remainder(a * b, float(m))


def add(a: Tensor, b: Tensor, m: int) -> Tensor:
    """Sum; infinities stay, infinities of both signs give NaN."""
    x = a + b
    return torch.where(x >= m, torch.where(torch.isinf(x), x, x - m), x)


def neg(a: Tensor, m: int) -> Tensor:
    return torch.where(a == 0, a, m - a)


def power(a: Tensor, exponent: int, m: int) -> Tensor:
    """``a`` to a non-negative exponent, by squaring."""
    out = torch.ones_like(a)
    while exponent:
        if exponent & 1:
            out = mul(out, a, m)
        exponent >>= 1
        if exponent:
            a = mul(a, a, m)
    return out


def power_of(a: Tensor, exponent: Tensor, m: int) -> Tensor:
    """Each entry of ``a`` to its own exponent, both residues (exponents below 2^23)."""
    out = torch.ones(torch.broadcast_shapes(a.shape, exponent.shape), dtype=torch.float64)
    bits = exponent.to(torch.int64)
    for i in range(23):
        out = torch.where((bits >> i) & 1 != 0, mul(out, a, m), out)
        a = mul(a, a, m)
    return out


def inverse(a: Tensor, m: int) -> Tensor:
    """Inverse by Fermat; 0 gives NaN. Axes that a view repeats are computed once."""
    small = a
    for d in range(a.dim()):
        if a.stride(d) == 0 and a.shape[d] > 1:
            small = small.narrow(d, 0, 1)
    out = power(small, m - 2, m)
    out = torch.where(small == 0, torch.full_like(out, float("nan")), out)
    return out.expand(a.shape)


def matmul(a: Tensor, b: Tensor, m: int) -> Tensor:
    """Product over the last two axes, exact: blocks of 64 products are summed before each reduction."""
    total: Tensor | None = None
    for k in range(0, a.shape[-1], BLOCK):
        part = mod(a[..., k : k + BLOCK] @ b[..., k : k + BLOCK, :], m)
        total = part if total is None else add(total, part, m)
    assert total is not None
    return total


@lru_cache(maxsize=8)
def _tables(base: int) -> tuple[Tensor, Tensor]:
    """Powers base^i for i < 2048, and base^(2048 i)."""
    low, x = [], 1
    for _ in range(2048):
        low.append(x)
        x = x * base % P
    high, y = [], 1
    for _ in range(Q // 2048 + 1):
        high.append(y)
        y = y * x % P
    return torch.tensor(low, dtype=torch.float64), torch.tensor(high, dtype=torch.float64)


def exponential(exponent: Tensor, base: int) -> Tensor:
    """``base`` (of order Q modulo P) to residues modulo Q. NaN gives NaN."""
    low, high = _tables(base)
    whole = torch.nan_to_num(exponent, nan=0.0, posinf=0.0, neginf=0.0).to(torch.int64)
    flat = whole.reshape(-1)
    out = mul(low.index_select(0, flat & 2047), high.index_select(0, flat >> 11), P).reshape(exponent.shape)
    return torch.where(torch.isnan(exponent), exponent, out)


def of_float(x: Tensor, m: int) -> Tensor:
    """Exact residues of float64 values (mantissa times a power of two); infinities and NaN stay."""
    finite = torch.isfinite(x)
    mantissa, exponent = torch.frexp(torch.where(finite, x, torch.zeros_like(x)))
    whole = (mantissa * 2.0**53).to(torch.int64) % m
    shift = exponent.to(torch.int64) - 53
    two = torch.tensor([pow(2, int(e), m) for e in range(-1130, 1030)], dtype=torch.float64)
    out = mul(whole.double(), two[(shift + 1130).clamp(0, len(two) - 1)], m)
    return torch.where(finite, out, x)
