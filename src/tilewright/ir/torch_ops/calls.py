"""Calling an aten operation on Values: by its rule, on plain integers as torch does it, or lowered to other
operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from ...errors import Unsupported
from ..domains.base import Domain
from ..readers import fx
from ..values import struct
from . import load
from .context import TORCH_FLOATS, Context, Expected, Value

RANDOM = ("rand", "bernoulli", "normal", "uniform", "dropout", "multinomial", "exponential", "cauchy", "geometric",
          "poisson", "log_normal", "rrelu")  # fmt: skip
_graphs: dict[Any, fx.Graph] = {}


class Calls(Context):
    """A Context that can also be asked for whole operations. ``func`` and ``name`` are the present operation's."""

    def __init__(self, domain: Domain):
        super().__init__(domain)
        self.rules = load()
        self.func: Any = None
        self.name = ""

    def call(self, func: Any, args: list[Any], kwargs: Mapping[str, Any], out: tuple[Expected, ...]) -> list[Value]:
        """Results of the functional form of ``func``. Raises Unsupported with its name and the source line."""
        name = base_name(func)
        held = (self.func, self.name, self.out)
        self.func, self.name, self.out = functional(func), name, out
        try:
            return self._call(name, args, dict(kwargs), out)
        except Unsupported as e:
            raise e if e.where else Unsupported(e.what, where=self.where or None) from e
        except NotImplementedError as e:
            raise Unsupported(f"aten.{name}: {e}", where=self.where or None) from e
        finally:
            self.func, self.name, self.out = held

    def _call(self, name: str, args: list[Any], kwargs: dict[str, Any], out: tuple[Expected, ...]) -> list[Value]:
        if any(name.startswith(r) or name.startswith(f"native_{r}") for r in RANDOM):
            raise Unsupported(f"random numbers (aten.{name})", where=self.where or None)
        tensors = [v for v in walk([args, list(kwargs.values())]) if isinstance(v, Value)]
        if not any(v.is_float for v in tensors) and all(e.dtype not in TORCH_FLOATS for e in out):
            return self.concrete(args, kwargs)
        rule = self.rules.get(name)
        if rule is not None:
            for layout in ("layout", "device", "pin_memory", "memory_format", "non_blocking"):
                kwargs.pop(layout, None)
            return self.shaped(rule(self, *args, **kwargs), out)
        if self.domain.name == "real":
            return self.doubled(args, kwargs, out)
        return self.lowered(args, kwargs, out)

    def shaped(self, result: Any, out: tuple[Expected, ...]) -> list[Value]:
        """What a rule gave, in the sizes and dtypes expected."""
        results = list(result) if isinstance(result, tuple | list) else [result]
        values = []
        for data, e in zip(results, out, strict=False):
            if data is None:
                continue
            is_float = e.dtype in TORCH_FLOATS
            if not is_float and isinstance(data, torch.Tensor) and data.dtype != e.dtype:
                data = data.to(e.dtype)
            if tuple(data.shape) != e.shape:
                if data.shape.numel() not in (1, torch.Size(e.shape).numel()) and len(data.shape) > len(e.shape):
                    raise Unsupported(f"aten.{self.name} (its rule gives sizes {tuple(data.shape)})")
                data = struct(data, lambda t: _fit(t, e.shape))  # noqa: B023
            values.append(Value(data, e.dtype))
        return values

    def concrete(self, args: list[Any], kwargs: dict[str, Any]) -> list[Value]:
        """On integers and booleans: torch's own operation."""
        result = self.func(*[_raw(a) for a in args], **{k: _raw(v) for k, v in kwargs.items() if k != "device"})
        results = result if isinstance(result, tuple | list) else (result,)
        return [Value(r, r.dtype) for r in results if isinstance(r, torch.Tensor)]

    def doubled(self, args: list[Any], kwargs: dict[str, Any], out: tuple[Expected, ...]) -> list[Value]:
        """In the real domain without a rule: torch's own operation in float64."""
        try:
            result = self.func(*[_raw(a) for a in args], **{k: _raw(v) for k, v in kwargs.items() if k != "device"})
        except (RuntimeError, TypeError) as e:
            raise Unsupported(
                f"aten.{self.name} in float64 ({str(e).splitlines()[0]})", where=self.where or None
            ) from e
        return self.shaped(result, out)

    def lowered(self, args: list[Any], kwargs: dict[str, Any], out: tuple[Expected, ...]) -> list[Value]:
        """Through the operation's decomposition."""
        key = (self.func, repr(_metas(args)), repr(_metas(kwargs)))
        if key not in _graphs:
            _graphs[key] = fx.lower(self.func, tuple(_metas(args)), _metas(kwargs))
        graph = _graphs[key]
        values: dict[int, list[Value]] = {}
        tensors = [v for v in walk([args, list(kwargs.values())]) if isinstance(v, Value)]
        values.update({i: [v] for i, v in enumerate(tensors)})
        for number, t in graph.constants.items():
            values[number] = [Value(self.exact(t) if t.dtype in TORCH_FLOATS else t, t.dtype)]

        def get(v: Any) -> Any:
            if isinstance(v, fx.Ref):
                return values[v.number][v.part or 0]
            return [get(x) for x in v] if isinstance(v, list | tuple) else v

        for node in graph.nodes:
            expected = tuple(Expected(s, d) for s, d in node.out)
            values[node.number] = self.call(node.op, [get(a) for a in node.args],
                                            {k: get(v) for k, v in node.kwargs.items()}, expected)  # fmt: skip
        return [get(r) for r in graph.outputs if r is not None]


def _fit(t: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    if t.numel() == torch.Size(shape).numel():
        return t.reshape(shape)
    return t.expand(shape)


def walk(v: Any) -> Any:
    """Leaves of nested lists."""
    if isinstance(v, list | tuple):
        for x in v:
            yield from walk(x)
    else:
        yield v


def _raw(v: Any) -> Any:
    if isinstance(v, Value):
        return v.data
    if isinstance(v, torch.dtype) and v in TORCH_FLOATS:
        return torch.float64
    return [_raw(x) for x in v] if isinstance(v, list | tuple) else v


def _metas(v: Any) -> Any:
    """Arguments with Meta for tensors (contiguous: the replay's own layout)."""
    if isinstance(v, Value):
        shape = tuple(v.shape)
        return fx.Meta(shape, torch.empty(shape, device="meta").stride(), v.dtype)
    if isinstance(v, dict):
        return {k: _metas(x) for k, x in v.items()}
    return [_metas(x) for x in v] if isinstance(v, list | tuple) else v


def base_name(func: Any) -> str:
    """``aten.add_.Tensor`` → ``add``."""
    name = func._schema.name.partition("::")[2]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


@cache
def functional(func: Any) -> Any:
    """The overload that gives new tensors, of one that writes into its arguments."""
    if not func._schema.is_mutable:
        return func
    packet = getattr(torch.ops.aten, base_name(func), None)
    if packet is None:
        raise Unsupported(f"{func} has no form without side effects")
    wanted = [a.name for a in func._schema.arguments if not (a.is_out and a.kwarg_only)]
    overload = func._overloadname
    names = packet.overloads()
    if overload in names and not getattr(packet, overload)._schema.is_mutable:
        return getattr(packet, overload)
    for n in names:
        other = getattr(packet, n)
        if not other._schema.is_mutable and [a.name for a in other._schema.arguments] == wanted:
            return other
    raise Unsupported(f"{func} has no form without side effects")
