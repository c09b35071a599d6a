"""Compare a kernel's output with the truth.

An error is judged by what rounding can explain, not by a constant. For one output tensor, element by element:

    |kernel - oracle|  <=  k * B  +  floor * ulp(oracle)

``oracle`` is the reference in float64. ``B`` is how wrong arithmetic of this precision honestly gets there: the
larger of (1) the error of the trusted baseline, the reference in the kernel's own dtypes, and (2) how far the oracle
moves when its float inputs move by one rounding of the accumulation precision (conditioning: a baseline that is exact
by luck, on a single number say, must not condemn a kernel). Both are taken over elements of like magnitude, since a
softmax's small outputs deserve a small budget and a matrix product's do not. Where the baseline is exact and the
conditioning nil, the floor in ulps applies alone.

Special values compare by class: NaN, +Inf, -Inf, finite. Integers and booleans compare exactly. ``K`` and ``FLOOR``
were calibrated on one half of the corpus and are reported on the other (``tilewright corpus`` prints both).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..task.contract import Tolerance

K = 8.0
FLOOR_ULPS = 6.0
GROSS = 0.05
CROWD = 64
UNIT = {torch.float64: 2.0**-53}
ACCUMULATE = 2.0**-24


@dataclass(frozen=True)
class Comparison:
    """How one output compares. ``ratio``: worst error over its budget (pass: at most 1; inf for a class mismatch).
    ``kind``: ``ok``, ``value``, ``special``, ``exact``, ``shape``, ``dtype``. ``gross``: no rounding explains it."""

    ok: bool
    ratio: float = 0.0
    kind: str = "ok"
    index: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""
    error: float = 0.0
    baseline_error: float = 0.0
    wrong: int = 0
    total: int = 0
    gross: bool = False
    note: str = ""

    @property
    def summary(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        if self.kind in ("shape", "dtype"):
            return f"{self.kind} is {self.got}, expected {self.expected}"
        share = f"; {self.wrong} of {self.total} elements" if self.total > 1 else ""
        if self.kind == "value":
            return (f"{where} is {self.got}, expected {self.expected}: error {self.error:.2g}, {self.ratio:.3g} times"
                    f" the budget{share}")  # fmt: skip
        return f"{where} is {self.got}, expected {self.expected}{share}"


def compare(
    got: torch.Tensor, oracle: torch.Tensor, baseline: torch.Tensor | None, *,
    sensitivity: torch.Tensor | None = None, tolerance: Tolerance | None = None,
) -> Comparison:  # fmt: skip
    """Compare ``got`` with ``oracle`` (float64 for float outputs), given ``baseline`` (the reference in the kernel's
    own dtypes; None: the rounded oracle) and ``sensitivity`` (``|oracle(x moved by one rounding) - oracle(x)|``)."""
    tolerance = tolerance or Tolerance()
    model = baseline if baseline is not None else oracle
    if tuple(got.shape) != tuple(oracle.shape):
        return Comparison(
            False, float("inf"), "shape", expected=str(tuple(oracle.shape)), got=str(tuple(got.shape)), gross=True
        )
    if _kind(got) != _kind(oracle) or (baseline is not None and got.dtype != baseline.dtype):
        return Comparison(False, float("inf"), "dtype", expected=_name(model), got=_name(got), gross=True)
    if got.numel() == 0:
        return Comparison(True)
    if got.is_complex():
        wide = torch.view_as_real(got.resolve_conj()), torch.view_as_real(oracle.to(torch.complex128).resolve_conj())
        low = None if baseline is None else torch.view_as_real(baseline.resolve_conj())
        return compare(*wide, low, tolerance=tolerance)
    if not got.is_floating_point():
        return _exact(got, model.to(got.dtype))
    return _float(got, oracle.double(), None if baseline is None else baseline.double(), sensitivity, tolerance)


def _exact(got: torch.Tensor, expected: torch.Tensor) -> Comparison:
    bad = got != expected
    count = int(bad.sum())
    if not count:
        return Comparison(True, total=got.numel())
    at = tuple(bad.nonzero()[0].tolist())
    return Comparison(False, float("inf"), "exact", at, str(expected[at].item()), str(got[at].item()), wrong=count,
                      total=got.numel(), gross=True)  # fmt: skip


def _float(
    got: torch.Tensor, oracle: torch.Tensor, baseline: torch.Tensor | None, sensitivity: torch.Tensor | None,
    tolerance: Tolerance,
) -> Comparison:  # fmt: skip
    dtype = got.dtype
    rounded = oracle.to(dtype).double()
    model = rounded if baseline is None else baseline
    value = got.double()
    classes = classify(value)
    allowed = (classes == classify(model)) | (classes == classify(rounded)) | (classes == classify(oracle))
    if not bool(allowed.all()):
        bad = ~allowed
        at = tuple(bad.nonzero()[0].tolist())
        return Comparison(False, float("inf"), "special", at, _show(model[at], dtype), _show(value[at], dtype),
                          wrong=int(bad.sum()), total=got.numel(), gross=True)  # fmt: skip
    finite = (classes == 0) & (classify(oracle) == 0)
    error = torch.where(finite, (value - oracle).abs(), 0.0)
    budget, base = budgets(oracle, model, finite, sensitivity, dtype, tolerance)
    ratio = torch.where(error == 0, 0.0, error / budget.clamp_min(torch.finfo(torch.float64).tiny))
    worst = int(ratio.argmax())
    at = position(worst, ratio.shape)
    top = float(ratio.flatten()[worst])
    scale = float(oracle[finite].square().mean().sqrt()) if bool(finite.any()) else 0.0
    gross = bool(error[at] > GROSS * max(float(oracle[at].abs()), scale))
    if top <= 1:
        return Comparison(
            True, top, index=at, error=float(error[at]), baseline_error=float(base[at]), total=got.numel()
        )
    return Comparison(False, top, "value", at, _show(oracle[at], dtype), _show(value[at], dtype), float(error[at]),
                      float(base[at]), int((ratio > 1).sum()), got.numel(), gross)  # fmt: skip


def budgets(
    oracle: torch.Tensor, baseline: torch.Tensor, finite: torch.Tensor, sensitivity: torch.Tensor | None,
    dtype: torch.dtype, tolerance: Tolerance,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Per element: the error budget, and the baseline's error over elements of like magnitude."""
    k = K if tolerance.k is None else tolerance.k
    floor = FLOOR_ULPS if tolerance.floor_ulps is None else tolerance.floor_ulps
    both = finite & (classify(baseline) == 0)
    base_error = torch.where(both, (baseline - oracle).abs(), 0.0)
    base = spread(oracle, base_error, both, quantile=1.0)
    honest = base
    if sensitivity is not None:
        known = both & torch.isfinite(sensitivity)
        own = torch.where(known, sensitivity, 0.0)
        honest = torch.maximum(torch.maximum(base, own), spread(oracle, own, known, quantile=0.75))
    budget = k * honest + floor * ulp(oracle, dtype)
    if tolerance.atol is not None or tolerance.rtol is not None:
        budget = torch.maximum(budget, (tolerance.atol or 0.0) + (tolerance.rtol or 0.0) * oracle.abs())
    return torch.nan_to_num(budget, nan=float("inf"), posinf=float("inf")), base


def spread(oracle: torch.Tensor, error: torch.Tensor, valid: torch.Tensor, *, quantile: float) -> torch.Tensor:
    """For each element, the ``quantile`` of ``error`` over valid elements of the same binary magnitude; magnitudes that
    fewer than ``CROWD`` elements share are joined with their larger neighbours (then with the smaller ones)."""
    out = torch.zeros_like(error)
    values = error[valid]
    total = values.numel()
    if total <= CROWD:
        out[valid] = _quantile(values, quantile)
        return out
    picked = oracle[valid]
    exponent = torch.where(picked == 0, -1074, torch.frexp(picked).exponent).short()  # short: sorted by radix
    ranked, order = _ranked(exponent)
    values = values[order]
    _, members, counts = ranked.unique_consecutive(return_inverse=True, return_counts=True)
    ends = counts.cumsum(0)
    known: dict[tuple[int, int], float] = {}
    levels = []
    for start, count in zip((ends - counts).tolist(), counts.tolist(), strict=True):
        window = _window(start, count, total)
        if window not in known:
            known[window] = _quantile(values[slice(*window)], quantile)
        levels.append(known[window])
    filled = torch.empty_like(values)
    filled[order] = torch.tensor(levels, dtype=values.dtype, device=values.device)[members]
    out[valid] = filled
    return out


def _ranked(exponent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorted, equals in their order, and the places that they came from."""
    if exponent.is_cuda:
        return exponent.sort(stable=True)  # type: ignore[return-value]
    order = torch.from_numpy(np.argsort(exponent.numpy(), kind="stable"))  # faster than torch's here
    return exponent[order], order


def _window(start: int, count: int, total: int) -> tuple[int, int]:
    """The elements that a magnitude's members, sorted from ``start`` on, are judged with."""
    first = min(start, max(0, total - CROWD))
    return first, max(start + count, min(total, first + CROWD))


def _quantile(values: torch.Tensor, quantile: float) -> float:
    """Linear between the two nearest, as ``torch.quantile``; 0 of nothing. Of many values, the first million."""
    if not values.numel():
        return 0.0
    if quantile >= 1:
        return float(values.max())
    values = values[:1_000_000]
    place = quantile * (len(values) - 1)
    low, high = int(place), min(int(place) + 1, len(values) - 1)
    part = values.sort().values if values.is_cuda else torch.from_numpy(np.partition(values.numpy(), [low, high]))
    return float(part[low] + (part[high] - part[low]) * (place - low))


def position(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Index of the ``flat``-th element in row-major order (torch.unravel_index imports sympy, which takes seconds)."""
    index: list[int] = []
    for n in reversed(shape):
        flat, i = divmod(flat, n)
        index.append(i)
    return tuple(reversed(index))


def classify(x: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf."""
    return torch.isnan(x) * 1 + torch.isposinf(x) * 2 + torch.isneginf(x) * 3


def ulp(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Spacing of ``dtype`` at ``|x|`` (float64 tensor), at least the spacing at its smallest normal number."""
    info = torch.finfo(dtype)
    magnitude = x.abs().clamp(info.smallest_normal, info.max)
    return torch.ldexp(torch.full_like(magnitude, info.eps), torch.frexp(magnitude).exponent - 1)


def unit(dtype: torch.dtype) -> float:
    """One rounding of the precision in which honest kernels of this dtype accumulate: float32 (float64's own)."""
    return UNIT.get(dtype, ACCUMULATE)


def negative_zeros(got: torch.Tensor, expected: torch.Tensor) -> int:
    """Elements where one is -0 and the other +0."""
    if not got.is_floating_point():
        return 0
    zero = (got == 0) & (expected == 0)
    return int((zero & (torch.signbit(got) != torch.signbit(expected))).sum())


def compare_all(
    got: Mapping[str, torch.Tensor], oracle: Mapping[str, torch.Tensor], baseline: Mapping[str, torch.Tensor] | None,
    sensitivity: Mapping[str, torch.Tensor] | None = None, tolerance: Tolerance | None = None,
) -> dict[str, Comparison]:  # fmt: skip
    """Compare each named output of the oracle."""
    return {
        n: compare(got[n], o, None if baseline is None else baseline.get(n),
                   sensitivity=None if sensitivity is None else sensitivity.get(n), tolerance=tolerance)
        for n, o in oracle.items() if n in got
    }  # fmt: skip


def _kind(t: torch.Tensor) -> str:
    """Kinds that no comparison crosses: a rounded integer is no float."""
    return "complex" if t.is_complex() else "float" if t.is_floating_point() else "exact"


def _name(t: torch.Tensor) -> str:
    return str(t.dtype).removeprefix("torch.")


def _show(x: torch.Tensor, dtype: torch.dtype) -> str:
    return f"{float(x):.{9 if dtype in (torch.float32, torch.float64) else 5}g}"
