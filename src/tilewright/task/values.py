"""Drawing the values of inputs, in the parent, from a seed that user code never sees.

``draw`` follows a ``TensorSpec``; ``FAMILIES`` are the hostile ones that gates add, each within the spec's domain:
indices stay valid, probabilities stay probabilities, booleans stay booleans. The bounds of ``uniform`` are a domain
where an author wrote them; of an inferred contract they only say what the benchmark happened to draw: there a gate
passes ``bounded=False``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from ..errors import TaskError
from .tensors import FLOATS, INTEGERS, TensorSpec, Values, evaluate


class Family(Protocol):
    """Hostile values for one input; arguments as of ``draw``."""

    def __call__(
        self, spec: TensorSpec, sizes: Sequence[int], dtype: str, generator: torch.Generator, dims: Mapping[str, int],
        *, bounded: bool = True,
    ) -> torch.Tensor: ...  # fmt: skip


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator on ``device`` with this seed (taken modulo 2**63)."""
    return torch.Generator(device).manual_seed(seed % (1 << 63))


def torch_dtype(name: str) -> torch.dtype:
    """``"float16"`` → ``torch.float16``. Raises TaskError for an unknown name."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TaskError(
            f"unknown dtype '{name}'", remedy="use a torch dtype name such as float32, bfloat16, int64, bool"
        )
    return dtype


def bound(value: float | str, dims: Mapping[str, int]) -> float:
    """A bound of ``Values``: a number, or an expression over dims."""
    return evaluate(value, dims) if isinstance(value, str) else value


def draw(
    spec: TensorSpec, sizes: Sequence[int], dtype: str, generator: torch.Generator, dims: Mapping[str, int]
) -> torch.Tensor:
    """Contiguous tensor of shape ``sizes`` with the values that ``spec`` asks for, rounded to ``dtype``.

    Raises TaskError for ``custom`` (the task's own code makes those) and for bounds that leave no integer.
    """
    values, shape = spec.values, tuple(sizes)
    match values.kind:
        case "normal":
            real = torch.randn(shape, generator=generator, dtype=_real(dtype)) * values.std + values.mean
            return _cast(real, dtype, generator, values.std)
        case "uniform":
            low, high = bound(values.low, dims), bound(values.high, dims)
            real = torch.rand(shape, generator=generator, dtype=_real(dtype)) * (high - low) + low
            return _below(_cast(real, dtype, generator, high - low), low, high)
        case "integers":
            low, high = _integer_range(values, dims)
            return _fit(torch.randint(low, high, shape, generator=generator), dtype)
        case "bool":
            return (torch.rand(shape, generator=generator) < values.p).to(torch_dtype(dtype))
        case "constant":
            return torch.full(shape, values.value, dtype=torch.float64).to(torch_dtype(dtype))
        case "permutation":
            keys = torch.rand(shape, generator=generator, dtype=torch.float64)
            return (keys.argsort(-1) if shape else keys.long() * 0).to(torch_dtype(dtype))
        case "probabilities" | "log_probabilities":
            logits = torch.randn(shape, generator=generator, dtype=torch.float64)
            return _normalised(logits, values, dtype)
        case "sorted":
            return _sorted(values, shape, dims, generator).to(torch_dtype(dtype))
    raise TaskError(f"values of kind '{values.kind}' are made by the task's own code ('{values.generator}')")


def _real(dtype: str) -> torch.dtype:
    return torch.float64 if dtype in ("float64", "complex128") else torch.float32


def _cast(real: torch.Tensor, dtype: str, generator: torch.Generator, spread: float) -> torch.Tensor:
    """Real draws in ``dtype``: complex gets an imaginary part of the same spread, bool the sign, integers rounding."""
    if dtype.startswith("complex"):
        imaginary = torch.randn(real.shape, generator=generator, dtype=real.dtype) * spread
        return torch.complex(real, imaginary).to(torch_dtype(dtype))
    if dtype == "bool":
        return real > real.mean() if real.numel() else real > 0
    return _fit(real.round().long(), dtype) if dtype in INTEGERS else _saturate(real, dtype)


def _saturate(real: torch.Tensor, dtype: str) -> torch.Tensor:
    """To a float dtype without overflow: float16 and float8 stay finite where the draw was finite."""
    wanted = torch_dtype(dtype)
    if dtype not in FLOATS:
        return real.to(wanted)
    top = torch.finfo(wanted).max
    return real.clamp(-top, top).to(wanted)


def _below(x: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Rounding to a narrow dtype must not lift a draw onto the open upper bound."""
    if not x.is_floating_point() or x.itemsize == 1 or high <= low:
        return x
    top = torch.tensor(high, dtype=x.dtype)
    return torch.where(x >= top, torch.nextafter(top, torch.full_like(top, low)), x)


def _fit(x: torch.Tensor, dtype: str) -> torch.Tensor:
    if dtype in INTEGERS:
        info = torch.iinfo(torch_dtype(dtype))
        x = x.clamp(info.min, info.max)
    return x.to(torch_dtype(dtype))


def _integer_range(values: Values, dims: Mapping[str, int]) -> tuple[int, int]:
    low, high = int(bound(values.low, dims)), int(bound(values.high, dims))
    if high <= low:
        raise TaskError(f"integers in [{low}, {high}) leave nothing to draw at {dict(dims)}")
    return low, high


def _normalised(logits: torch.Tensor, values: Values, dtype: str) -> torch.Tensor:
    if logits.dim() == 0:
        logits = logits.reshape(1)
        return _normalised(logits, values, dtype).reshape(())
    rows = logits.log_softmax(-1) if values.kind == "log_probabilities" else logits.softmax(-1)
    return rows.to(torch_dtype(dtype))


def _sorted(
    values: Values, shape: tuple[int, ...], dims: Mapping[str, int], generator: torch.Generator
) -> torch.Tensor:
    low, high = int(bound(values.low, dims)), int(bound(values.high, dims))
    if high < low:
        raise TaskError(f"sorted values from {values.low} to {values.high} descend at {dict(dims)}")
    x = torch.randint(low, high + 1, shape, generator=generator).sort(-1).values if shape else torch.tensor(low)
    if shape and shape[-1] > 0:
        x[..., -1] = high
        x[..., 0] = low
    return x


def _reals(make: Callable[[tuple[int, ...], torch.Generator], torch.Tensor]) -> Family:
    """A family from a rule for reals; specs with a domain of their own go through ``_within``."""

    def family(
        spec: TensorSpec, sizes: Sequence[int], dtype: str, generator: torch.Generator, dims: Mapping[str, int],
        *, bounded: bool = True,
    ) -> torch.Tensor:  # fmt: skip
        shape, kind = tuple(sizes), spec.values.kind
        if kind in ("permutation", "sorted", "constant", "custom"):
            return draw(spec, sizes, dtype, generator, dims)
        x = make(shape, generator)
        if kind == "uniform" and bounded:
            low, high = bound(spec.values.low, dims), bound(spec.values.high, dims)
            return _below(_within(x.clamp(low, high), spec.values, dtype, dims), low, high)
        return _within(x, spec.values, dtype, dims)

    return family


def _within(x: torch.Tensor, values: Values, dtype: str, dims: Mapping[str, int]) -> torch.Tensor:
    """Reals (float64) bent into the domain of ``values``."""
    if values.kind in ("probabilities", "log_probabilities"):
        return _normalised(x.clamp(-60, 60), values, dtype)
    if values.kind == "bool" or dtype == "bool":
        return (x > 0).to(torch_dtype(dtype))
    if values.kind == "integers":
        low, high = _integer_range(values, dims)
        folded = x.clamp(-1e15, 1e15).round().long()
        return _fit(low + (folded - low) % (high - low), dtype)
    if dtype in INTEGERS:
        return _fit(x.clamp(-1e15, 1e15).round().long(), dtype)
    if dtype.startswith("complex"):
        return x.to(torch_dtype(dtype))
    return _saturate(x, dtype)


def _normal(shape: tuple[int, ...], g: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=g, dtype=torch.float64)


def _constant_rows(shape: tuple[int, ...], g: torch.Generator) -> torch.Tensor:
    return _normal((*shape[:-1], 1), g).expand(shape).contiguous() if shape else _normal(shape, g)


def _one_hot(shape: tuple[int, ...], g: torch.Generator) -> torch.Tensor:
    x = torch.zeros(shape, dtype=torch.float64)
    if not shape or x.numel() == 0:
        return x + 1
    return x.scatter_(-1, torch.randint(0, shape[-1], (*shape[:-1], 1), generator=g), 1.0)


def _peaked(shape: tuple[int, ...], g: torch.Generator) -> torch.Tensor:
    """One element of each row stands 5 to 8 above the others: softmax is near 1 there, and what is left of 1 is lost where
    it is rounded before it is subtracted."""
    height = 5 + 3 * torch.rand((*shape[:-1], 1) if shape else (), generator=g, dtype=torch.float64)
    return _normal(shape, g) * 0.5 + _one_hot(shape, g) * height


def _wide(shape: tuple[int, ...], g: torch.Generator) -> torch.Tensor:
    """Magnitudes from 1e-4 to 1e4, signs at random."""
    exponents = torch.rand(shape, generator=g, dtype=torch.float64) * 8 - 4
    return torch.sign(_normal(shape, g)) * torch.exp(exponents * math.log(10))


def _far(make: Callable[[tuple[int, ...], torch.Generator, str], torch.Tensor]) -> Family:
    """A family for float inputs alone, from a rule that knows the dtype; others are drawn as the task says."""

    def family(
        spec: TensorSpec, sizes: Sequence[int], dtype: str, generator: torch.Generator, dims: Mapping[str, int],
        *, bounded: bool = True,
    ) -> torch.Tensor:  # fmt: skip
        if dtype not in FLOATS:
            return draw(spec, sizes, dtype, generator, dims)
        drawn: Family = _reals(lambda shape, g: make(shape, g, dtype))
        return drawn(spec, sizes, dtype, generator, dims, bounded=bounded)

    return family


def _steps(shape: tuple[int, ...], g: torch.Generator) -> torch.Tensor:
    """1 at one place of each row, 1.25 to 1.875 in eighths elsewhere: exact in every float dtype, and the one that stands
    out does so under any rounding."""
    steps = 1.25 + torch.randint(0, 6, shape, generator=g).double() / 8
    if not shape or steps.numel() == 0:
        return steps
    return steps.scatter_(-1, torch.randint(0, shape[-1], (*shape[:-1], 1), generator=g), 1.0)


def _reach(dtype: str, *depths: float) -> float:
    """The first depth that the dtype holds, with room for a few of them in a sum."""
    return next(d for d in depths if d * 3 < torch.finfo(torch_dtype(dtype)).max or d == depths[-1])


def _deep(shape: tuple[int, ...], g: torch.Generator, dtype: str) -> torch.Tensor:
    """Everything below what commonly stands in for minus infinity: -1e4, -1e9, -1e10."""
    return -_reach(dtype, 2.0**34, 2.0**14, 64.0) * _steps(shape, g)


def _deep_rows(shape: tuple[int, ...], g: torch.Generator, dtype: str) -> torch.Tensor:
    """Some rows, at least one, below -1e30; the others are normal."""
    low = -_reach(dtype, 2.0**103, 2.0**14, 64.0) * _steps(shape, g)
    if not shape or low.numel() == 0:
        return low
    rows = torch.rand((*shape[:-1], 1), generator=g) < 0.5
    rows.view(-1)[int(torch.randint(0, rows.numel(), (1,), generator=g))] = True
    return torch.where(rows, low, _normal(shape, g))


def _opposed(shape: tuple[int, ...], g: torch.Generator, dtype: str) -> torch.Tensor:
    """One sign for the whole tensor, and one magnitude a row, different from those of the rows beside it. Where two
    tensors differ in sign, their products (scores of attention, say) are exact, far below -1e9 throughout, and their
    largest one stands out."""
    sign = 1.0 if int(torch.randint(0, 2, (1,), generator=g)) else -1.0
    size = sign * _reach(dtype, 2.0**17, 2.0**4)
    if len(shape) < 2:
        return size * _steps(shape, g)
    order = torch.rand(shape[:-1], generator=g, dtype=torch.float64).argsort(-1)
    rows = 1 + order.double() / (1 << max(shape[-2] - 1, 1).bit_length())
    return (size * rows[..., None]).expand(shape).contiguous()


DEEP = ("deep", "deep_rows", "opposed")
"""Families so far out that a reference may leave its dtype's range; such cases say nothing."""

FAMILIES: dict[str, Family] = {
    "all_negative": _reals(lambda s, g: -_normal(s, g).abs() - 1e-3),
    "large": _reals(lambda s, g: _normal(s, g) * 1e3),
    "tiny": _reals(lambda s, g: _normal(s, g) * 1e-4),
    "constant_rows": _reals(_constant_rows),
    "one_hot": _reals(_one_hot),
    "peaked": _reals(_peaked),
    "all_equal": _reals(lambda s, g: _normal((), g).expand(s).contiguous()),
    "small_integers": _reals(lambda s, g: torch.randint(-2, 3, s, generator=g).double()),
    "shifted_3": _reals(lambda s, g: _normal(s, g) + 3),
    "shifted_100": _reals(lambda s, g: _normal(s, g) + 100),
    "far_negative": _reals(lambda s, g: _normal(s, g) - 200),
    "wide_range": _reals(_wide),
    "deep": _far(_deep),
    "deep_rows": _far(_deep_rows),
    "opposed": _far(_opposed),
}
