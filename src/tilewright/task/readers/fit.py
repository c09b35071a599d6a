"""Expressions for sizes: from what an axis was in a few trials to ``"2*N"``, ``"H-2"``, ``"N//4"`` or ``"H*D"``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import TaskError
from ..tensors import evaluate

Sample = tuple[Mapping[str, int], int]


def fit(samples: Sequence[Sample], symbols: Sequence[str]) -> str | int | None:
    """The simplest expression over ``symbols`` that holds on all ``samples`` (the first is the given one).

    ``symbols``: those that move this size. An integer where there are none; None where no form fits.
    """
    base, size = samples[0]
    if not symbols:
        return size if all(s == size for _, s in samples) else None
    for candidate in _forms(samples, base, size, symbols):
        try:
            if all(evaluate(candidate, dims) == s for dims, s in samples):
                return candidate
        except (TaskError, ZeroDivisionError):
            continue
    return None


def _forms(samples: Sequence[Sample], base: Mapping[str, int], size: int, symbols: Sequence[str]) -> list[str]:
    """Candidate expressions, simplest first."""
    if len(symbols) > 1:
        product = 1
        for s in symbols:
            product *= base[s]
        scale = f"{size // product}*" if product and size != product else ""
        forms = [scale + "*".join(symbols)] if product and size % product == 0 else []
        return [*forms, *_linear(samples, base, size, symbols)]
    (name,) = symbols
    value = base[name]
    forms = [name] if size == value else []
    if value and size % value == 0:
        forms.append(f"{size // value}*{name}")
    forms += _linear(samples, base, size, symbols)
    if 0 < size <= value:
        k = value // size
        forms += [f"{name}//{k}", f"({name}+{k - 1})//{k}", f"({name}-1)//{k}+1"]
    if size == value * value:
        forms.append(f"{name}*{name}")
    return forms


def _linear(samples: Sequence[Sample], base: Mapping[str, int], size: int, symbols: Sequence[str]) -> list[str]:
    """``a*X + b*Y + c`` from the samples that move one symbol alone."""
    slopes, constant = {}, size
    for name in symbols:
        alone = next(((d, s) for d, s in samples if d[name] != base[name]
                      and all(d[o] == base[o] for o in base if o != name)), None)  # fmt: skip
        if alone is None:
            return []
        rise, run = alone[1] - size, alone[0][name] - base[name]
        if rise % run:
            return []
        slopes[name] = rise // run
        constant -= slopes[name] * base[name]
    terms = [{1: name, -1: f"-{name}"}.get(a, f"{a}*{name}") for name, a in slopes.items() if a]
    text = "+".join(terms) + (f"+{constant}" if constant > 0 else str(constant) if constant < 0 else "")
    return [text.replace("+-", "-")] if terms else []
