"""Laws: relations between results of one kernel that hold without knowing the right result.

A law is a function ``law(run, inputs) -> bool`` in a task file. ``run(x=...)`` calls the kernel on the inputs of the
case with some replaced and returns what it returns; ``run.gradient("x", cotangent, ...)`` returns the gradient that
reaches ``x``. The kernel lives in another process, so a law may be started several times: each time it gets one more
result. It must therefore ask for the same runs in the same order each time (the seed of torch is set). An
``AssertionError`` counts as a law that does not hold, and its text is shown.

>>> from tilewright.task import laws
>>> law = laws.shift_invariant("x", by=3.0)        # softmax(x + 3) == softmax(x)

Source of the idea: metamorphic testing (Chen, Cheung, Yiu, 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Law = Callable[[Any, dict[str, Any]], bool]
MOST_RUNS = 12
EPSILONS = 64.0


class Needed(BaseException):
    """A law asks for a result that isn't known yet. No Exception, so that user code does not swallow it."""

    def __init__(self, inputs: dict[str, Any], gradient: tuple[str, ...], cotangents: dict[str, torch.Tensor]):
        self.inputs, self.gradient, self.cotangents = inputs, gradient, cotangents


class Runner:
    """What a law gets as ``run``. ``known``: results of earlier attempts; ``local``: compute here instead."""

    def __init__(
        self, inputs: Mapping[str, Any], known: list[Any], local: Callable[[dict[str, Any]], Any] | None = None
    ):
        self.inputs, self.known, self.local, self.count = dict(inputs), known, local, 0

    def __call__(self, *given: Any, **changed: Any) -> Any:
        """The kernel's result on the inputs, some replaced by name (or by position)."""
        return self._next(self._inputs(given, changed), (), {})

    def gradient(self, of: str, cotangent: torch.Tensor | Mapping[str, torch.Tensor], **changed: Any) -> torch.Tensor:
        """The gradient that reaches input ``of``. ``cotangent``: for the only output, or by output name (``out.0``)."""
        cotangents = dict(cotangent) if isinstance(cotangent, Mapping) else {"out": cotangent}
        got = self._next(self._inputs((), changed), (of,), cotangents)
        found: torch.Tensor = got[of]
        return found

    def _inputs(self, given: tuple[Any, ...], changed: dict[str, Any]) -> dict[str, Any]:
        for n in changed:
            if n not in self.inputs:
                raise TypeError(f"run() got '{n}', which is no input; inputs: {', '.join(self.inputs)}")
        return {**self.inputs, **dict(zip(self.inputs, given, strict=False)), **changed}

    def _next(self, inputs: dict[str, Any], gradient: tuple[str, ...], cotangents: dict[str, torch.Tensor]) -> Any:
        at, self.count = self.count, self.count + 1
        if at >= MOST_RUNS:
            raise RuntimeError(f"a law may run the kernel {MOST_RUNS} times")
        if self.local is not None:
            return self._here(inputs, gradient, cotangents)
        if at < len(self.known):
            return self.known[at]
        raise Needed(inputs, gradient, cotangents)

    def _here(self, inputs: dict[str, Any], gradient: tuple[str, ...], cotangents: dict[str, torch.Tensor]) -> Any:
        assert self.local is not None
        if not gradient:
            return self.local(inputs)
        own = {
            n: v.detach().clone().requires_grad_(n in gradient)
            if isinstance(v, torch.Tensor) and v.is_floating_point()
            else v
            for n, v in inputs.items()
        }
        with torch.enable_grad():
            got = self.local(own)
            outputs = [got] if isinstance(got, torch.Tensor) else list(got)
            found = torch.autograd.grad(outputs, [own[n] for n in gradient], list(cotangents.values()))
        return dict(zip(gradient, found, strict=True))


def close(a: torch.Tensor, b: torch.Tensor, *, epsilons: float = EPSILONS) -> bool:
    """Equal up to ``epsilons`` roundings of the coarser dtype, relative to the larger of the element and the root mean
    square; NaN equals NaN, infinities equal themselves."""
    if a.shape != b.shape:
        return False
    if not a.is_floating_point() or not b.is_floating_point():
        return torch.equal(a, b)
    eps = max(torch.finfo(a.dtype).eps, torch.finfo(b.dtype).eps)
    x, y = a.double(), b.double()
    finite = y[torch.isfinite(y)]
    scale = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    return torch.allclose(x, y, rtol=epsilons * eps, atol=epsilons * eps * scale, equal_nan=True)


def _leaves(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in (result.values() if isinstance(result, Mapping) else result) for t in _leaves(part)]


def permutes(*names: str, axis: int = 0, out_axis: int | None = None) -> Law:
    """Permuting ``names`` along ``axis`` permutes the result along ``out_axis`` (the same axis if not given)."""

    def law(run: Any, inputs: dict[str, Any]) -> bool:
        order = torch.randperm(inputs[names[0]].shape[axis])
        moved = run(**{n: inputs[n].index_select(axis, order) for n in names})
        to = axis if out_axis is None else out_axis
        return all(close(y, x.index_select(to, order)) for y, x in zip(_leaves(moved), _leaves(run()), strict=True))

    return law


def invariant_to_order(*names: str, axis: int = 0) -> Law:
    """Permuting ``names`` along ``axis`` changes nothing (a sum, a maximum, attention over keys)."""

    def law(run: Any, inputs: dict[str, Any]) -> bool:
        order = torch.randperm(inputs[names[0]].shape[axis])
        moved = run(**{n: inputs[n].index_select(axis, order) for n in names})
        return all(close(y, x) for y, x in zip(_leaves(moved), _leaves(run()), strict=True))

    return law


def shift_invariant(name: str, by: float = 4.0) -> Law:
    """Adding a constant to ``name`` changes nothing (softmax, layer norm). Powers of two round least."""

    def law(run: Any, inputs: dict[str, Any]) -> bool:
        x = inputs[name]
        grain = 2.0 ** -(2 if x.dtype in (torch.float16, torch.bfloat16) else 10)
        x = (x / grain).round() * grain  # so that x + by is exact, and only the kernel rounds
        return all(close(y, z) for y, z in zip(_leaves(run(**{name: x + by})), _leaves(run(**{name: x})), strict=True))

    return law


def scales(name: str, factor: float = 2.0, power: int = 1) -> Law:
    """Multiplying ``name`` by ``factor`` multiplies the result by ``factor ** power`` (0: changes nothing)."""

    def law(run: Any, inputs: dict[str, Any]) -> bool:
        more = _leaves(run(**{name: inputs[name] * factor}))
        return all(close(y, x * factor**power) for y, x in zip(more, _leaves(run()), strict=True))

    return law


def sums_to(value: float, axis: int = -1) -> Law:
    """Each row of the first output sums to ``value`` (1 for a softmax)."""

    def law(run: Any, inputs: dict[str, Any]) -> bool:
        y = _leaves(run())[0]
        return close(y.double().sum(axis).to(y.dtype), torch.full(y.sum(axis).shape, value, dtype=y.dtype))

    return law


def gradient_sums_to_zero(name: str, axis: int = -1) -> Law:
    """Rows of the gradient of ``name`` sum to zero (cross entropy, softmax, layer norm), for a random cotangent."""

    def law(run: Any, inputs: dict[str, Any]) -> bool:
        y = _leaves(run())[0]
        g = run.gradient(name, torch.randn(y.shape).to(y.dtype))
        eps = torch.finfo(g.dtype).eps
        size = g.double().abs().sum(axis)
        return bool((g.double().sum(axis).abs() <= EPSILONS * eps * size + torch.finfo(g.dtype).tiny).all())

    return law
