"""What distribution the inputs of a problem have: the factory calls of ``get_inputs`` are recorded.

``torch.rand(4, 8) * 2 - 1`` is followed to ``uniform(-1, 1)``, ``torch.randint(0, V, (4,))`` to ``integers(0, V)``.
Operations outside of the table make a value ``custom``: then the task's own code draws it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..tensors import Values

UNWRITTEN = Values(kind="constant", value=float("nan"))
CUSTOM = Values(kind="custom", generator="get_inputs")


def unwritten(values: Values) -> bool:
    """Whether a tensor came from ``torch.empty`` and was not written since."""
    return values.kind == "constant" and values.value != values.value


_SAME = {"reshape", "view", "contiguous", "clone", "detach", "unsqueeze", "squeeze", "flatten", "to", "float", "double",
         "half", "bfloat16", "requires_grad_", "cpu", "cuda", "permute", "transpose", "t", "type", "view_as",
         "reshape_as", "unflatten"}  # fmt: skip
_CAST = {"long", "int", "short", "bool"}


class Recorder(TorchFunctionMode):
    """Within: tensors made by torch functions are known by ``values(tensor)``."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[torch.Tensor, Values]] = {}

    def values(self, tensor: torch.Tensor) -> Values:
        """How ``tensor`` was drawn; ``custom`` if it can't be told."""
        known = self._known.get(id(tensor))
        return known[1] if known else CUSTOM

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        self._written(name, args, kwargs)
        if isinstance(result, torch.Tensor):
            try:
                values = self._follow(name, args, kwargs, result)
            except (TypeError, ValueError, IndexError, KeyError):
                values = CUSTOM
            # The tensor is kept alive, or its id could be given to another one.
            self._known[id(result)] = (result, values)
        return result

    def _written(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A tensor written to, or the one that it is a view of, is no longer what its factory made."""
        target = kwargs.get("out")
        if args and (name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))):
            target = args[0]
        if isinstance(target, torch.Tensor):
            for t in (target, target._base):
                if t is not None and id(t) in self._known:
                    self._known[id(t)] = (t, CUSTOM)

    def _follow(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> Values:
        if name in _FACTORIES:
            return _FACTORIES[name](args, kwargs)
        if name in _IN_PLACE:
            return _IN_PLACE[name](args[1:], kwargs)
        if not args or not isinstance(args[0], torch.Tensor | float | int):
            return CUSTOM
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if len(tensors) != 1 or tensors[0].numel() > result.numel() > 0:
            return CUSTOM
        before = self.values(tensors[0])
        if name in _SAME:
            return _recast(before, tensors[0], result)
        numbers = [a for a in args if isinstance(a, int | float) and not isinstance(a, bool)]
        if name in ("softmax", "log_softmax"):
            return _rows(name, before, args, kwargs, result)
        if name in _CAST and name != "bool":
            return before if before.kind in ("integers", "bool", "constant", "permutation") else CUSTOM
        if name in ("lt", "__lt__", "le", "gt", "__gt__", "ge") and len(numbers) == 1:
            return _compare(name, before, float(numbers[0]))
        if name == "bool" and before.kind == "integers" and (before.low, before.high) == (0, 2):
            return Values(kind="bool", p=0.5)
        return _affine(name, before, numbers, first_is_number=not isinstance(args[0], torch.Tensor))


def _number(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str, default: float) -> float:
    value = args[position] if len(args) > position else kwargs.get(name, default)
    return float(value)


def _randint(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
    numbers = [a for a in args if isinstance(a, int)]
    low, high = kwargs.get("low", 0), kwargs.get("high")
    if len(numbers) == 2:
        low, high = numbers
    elif len(numbers) == 1:
        low, high = (numbers[0], high) if high is not None and "low" not in kwargs else (low, numbers[0])
    if high is None:
        return CUSTOM
    return Values(kind="integers", low=int(low), high=int(high))


def _normal(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
    return Values(kind="normal", mean=_number(args, kwargs, 0, "mean", 0.0), std=_number(args, kwargs, 1, "std", 1.0))


def _full(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
    return Values(kind="constant", value=_number(args, kwargs, 1, "fill_value", 0.0))


def _plain(**fields: Any) -> Callable[[tuple[Any, ...], dict[str, Any]], Values]:
    return lambda args, kwargs: Values(**fields)


_FACTORIES: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], Values]] = {
    "rand": _plain(kind="uniform", low=0.0, high=1.0), "rand_like": _plain(kind="uniform", low=0.0, high=1.0),
    "randn": _plain(kind="normal"), "randn_like": _plain(kind="normal"),
    "zeros": _plain(kind="constant", value=0.0), "zeros_like": _plain(kind="constant", value=0.0),
    "ones": _plain(kind="constant", value=1.0), "ones_like": _plain(kind="constant", value=1.0),
    "empty": lambda a, k: UNWRITTEN, "empty_like": lambda a, k: UNWRITTEN,
    "full": _full, "full_like": _full, "normal": _normal, "randint": _randint,
    "randint_like": lambda args, kwargs: _randint(args[1:], kwargs),
    "randperm": _plain(kind="permutation"),
}  # fmt: skip
_IN_PLACE: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], Values]] = {
    "normal_": _normal, "zero_": _plain(kind="constant", value=0.0),
    "uniform_": lambda a, k: Values(
        kind="uniform", low=_number(a, k, 0, "from", 0.0), high=_number(a, k, 1, "to", 1.0)),
    "fill_": lambda a, k: Values(kind="constant", value=_number(a, k, 0, "value", 0.0)),
    "random_": lambda a, k: Values(kind="integers", low=int(a[0]) if len(a) == 2 else 0, high=int(a[-1])),
}  # fmt: skip


def _recast(before: Values, old: torch.Tensor, new: torch.Tensor) -> Values:
    """A cast to integers rounds towards zero: real draws become something else."""
    if old.is_floating_point() and not new.is_floating_point() and before.kind not in ("constant",):
        return CUSTOM
    if before.kind in ("probabilities", "log_probabilities", "permutation") and old.shape[-1:] != new.shape[-1:]:
        return CUSTOM
    return before


def _rows(name: str, before: Values, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> Values:
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if before.kind != "custom" and dim in (-1, result.dim() - 1):
        return Values(kind="probabilities" if name == "softmax" else "log_probabilities")
    return CUSTOM


def _compare(name: str, before: Values, threshold: float) -> Values:
    if before.kind != "uniform" or isinstance(before.low, str) or isinstance(before.high, str):
        return CUSTOM
    below = min(1.0, max(0.0, (threshold - before.low) / (before.high - before.low)))
    return Values(kind="bool", p=below if name.strip("_") in ("lt", "le") else 1 - below)


def _affine(name: str, before: Values, numbers: list[Any], *, first_is_number: bool) -> Values:
    """Scaling and shifting by a number."""
    if len(numbers) != 1 or before.kind not in ("uniform", "normal", "constant"):
        return CUSTOM
    c, name = float(numbers[0]), name.strip("_")
    table = {"mul": (c, 0.0), "rmul": (c, 0.0), "add": (1.0, c), "radd": (1.0, c), "rsub": (-1.0, c),
             "sub": (-1.0, c) if first_is_number else (1.0, -c)}  # fmt: skip
    if name in ("div", "truediv") and not first_is_number and c != 0:
        table[name] = (1 / c, 0.0)
    if name not in table:
        return CUSTOM
    scale, shift = table[name]
    if before.kind == "normal":
        return before.model_copy(update={"mean": before.mean * scale + shift, "std": before.std * abs(scale)})
    if before.kind == "constant":
        return before.model_copy(update={"value": before.value * scale + shift})
    ends = sorted((float(before.low) * scale + shift, float(before.high) * scale + shift))
    return before.model_copy(update={"low": ends[0], "high": ends[1]})
