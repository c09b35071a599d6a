"""Rounding to an integer by adding 1.5 * 2**23.

A float32 of that size has no bits for a fraction, so ``(x + 12582912.0) - 12582912.0`` rounds x, half to even (2**52 for
float64). Domains without roundings would see x itself there. What kernels mean by such a literal is ``rint``, so an
addition of one rounds its other side, as far as that is small enough for the trick to work.
"""

from __future__ import annotations

from torch import Tensor

_BITS = {"f32": 23, "f64": 52}


def limit(name: str, elem: str, constant: Tensor | None) -> float:
    """Below which size adding ``constant`` rounds what it is added to; 0 if it is no such constant."""
    if name not in ("add", "sub") or elem not in _BITS or constant is None or not constant.numel():
        return 0.0
    if any(n > 1 and s for n, s in zip(constant.shape, constant.stride(), strict=True)):
        return 0.0
    value = abs(float(constant[(0,) * constant.dim()]))
    top = 2.0 ** _BITS[elem]
    return top / 2 if value in (top, 1.5 * top) else 0.0
