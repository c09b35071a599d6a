"""Nested arguments and results: lists, tuples and dicts with named leaves, here and on their way to another process.

On the wire: ``flatten((x, {"a": 1}), "out")`` → ``({"tuple": [{"$": "out.0"}, {"dict": {"a": {"=": 1}}}]}, {"out.0": x})``.
The tree is JSON; the tensors travel beside it as raw buffers. Nothing is ever pickled.

Within a process: ``leaves((a, {"k": b}))`` is ``{"out.0": a, "out.1.k": b}``; ``rebuild`` puts leaves back into a tree of
that form. There named tuples and dataclass instances are branches too; all else, None included, is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from ..errors import TaskError, Unsupported

Tree = dict[str, Any]


def _branches(value: Any) -> list[tuple[str, Any]] | None:
    """Named children, or None for a leaf."""
    if isinstance(value, Mapping):
        return [(str(k), v) for k, v in value.items()]
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return [(str(i), v) for i, v in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init]
    return None


def _node(value: Any, at: str, leaf: Callable[[Any, str], Tree]) -> Tree:
    """The tree of a value; ``leaf(value, path)`` gives what stands for all but lists, tuples and dicts."""
    if isinstance(value, Mapping):
        return {"dict": {n: _node(v, f"{at}.{n}", leaf) for n, v in _branches(value) or ()}}
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        items = [_node(v, f"{at}.{n}", leaf) for n, v in _branches(value) or ()]
        return {"list" if type(value) is list else "tuple": items}
    return leaf(value, at)


def flatten(value: Any, name: str = "out") -> tuple[Tree, dict[str, torch.Tensor]]:
    """Structure and named tensors of a nested value. Other leaves are kept if JSON has them, else by their type name."""
    tensors: dict[str, torch.Tensor] = {}

    def leaf(v: Any, at: str) -> Tree:
        if isinstance(v, torch.Tensor):
            tensors[at] = v
            return {"$": at}
        if isinstance(v, torch.Size):
            return {"tuple": [{"=": n} for n in v]}
        if isinstance(v, torch.dtype | torch.device):
            return {type(v).__name__: str(v).removeprefix("torch.")}
        if v is None or isinstance(v, bool | int | str):
            return {"=": v}
        if isinstance(v, float):
            return {"=": v} if v == v and abs(v) != float("inf") else {"float": repr(v)}
        return {"?": type(v).__name__}

    return _node(value, name, leaf), tensors


def unflatten(tree: Tree, leaves: Mapping[str, torch.Tensor]) -> Any:
    """The nested value again. Raises KeyError for a tensor that is not among ``leaves``."""
    ((kind, body),) = tree.items()
    if kind == "$":
        return leaves[body]
    if kind == "=":
        return body
    if kind == "float":
        return float(body)
    if kind == "dtype":
        return getattr(torch, body)
    if kind == "device":
        return torch.device(body)
    if kind in ("tuple", "list"):
        items = [unflatten(x, leaves) for x in body]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {k: unflatten(x, leaves) for k, x in body.items()}
    raise ValueError(f"a value of type {body} can't be passed between processes")


def shape_of(tree: Tree) -> Any:
    """The structure alone, with every leaf's kind: what two results must share to be comparable."""
    ((kind, body),) = tree.items()
    if kind in ("tuple", "list"):
        return ["sequence", *[shape_of(x) for x in body]]
    if kind == "dict":
        return {"dict": {k: shape_of(x) for k, x in sorted(body.items())}}
    if kind == "$":
        return "tensor"
    return "float" if kind == "float" else type(body).__name__ if kind == "=" else kind


def leaves(value: Any, root: str = "out") -> dict[str, Any]:
    """All leaves by path, in order, whatever they are: ``root`` itself for a lone leaf, else ``root.0``, ``root.key``,
    ``root.0.key``. ``rebuild`` puts them back."""
    branches = _branches(value)
    if branches is None:
        return {root: value}
    found: dict[str, Any] = {}
    for name, child in branches:
        found.update(leaves(child, f"{root}.{name}"))
    return found


def rebuild(given: Mapping[str, Any], like: Any, root: str = "out") -> Any:
    """A tree of the form of ``like`` with its leaves taken from ``given`` by path.

    Raises TaskError for a path that ``given`` lacks.
    """
    branches = _branches(like)
    if branches is None:
        if root not in given:
            raise TaskError(f"no value for '{root}'", detail=f"given: {', '.join(given) or 'nothing'}")
        return given[root]
    children = [rebuild(given, child, f"{root}.{name}") for name, child in branches]
    if isinstance(like, Mapping):
        plain = dict(zip(like, children, strict=True))
        return plain if type(like) is dict else type(like)(plain)  # type: ignore[call-arg]
    if hasattr(like, "_fields"):
        return type(like)(*children)
    if isinstance(like, list | tuple):
        return type(like)(children)
    return dataclasses.replace(like, **dict(zip((n for n, _ in branches), children, strict=True)))


def flatten_arguments(args: Iterable[Any], names: list[str]) -> dict[str, Any]:
    """Positional arguments under parameter names (``arg3`` beyond them): ``[x, (a, b)]`` with ``["x", "pair"]`` is
    ``{"x": x, "pair.0": a, "pair.1": b}``."""
    found: dict[str, Any] = {}
    for i, value in enumerate(args):
        found.update(leaves(value, names[i] if i < len(names) else f"arg{i}"))
    return found


def unflatten_arguments(given: Mapping[str, Any], like: list[Any], names: list[str]) -> list[Any]:
    """Inverse of ``flatten_arguments``."""
    return [rebuild(given, v, names[i] if i < len(names) else f"arg{i}") for i, v in enumerate(like)]


def structure(args: list[Any], names: list[str]) -> Tree:
    """Positional arguments as a tree over the names of ``flatten_arguments``. Raises Unsupported for a dataclass."""

    def leaf(v: Any, at: str) -> Tree:
        if _branches(v) is not None:
            raise Unsupported(f"input '{at}' is a {type(v).__name__}, which can't be passed between processes",
                              remedy="pass its fields as a tuple or a dict")  # fmt: skip
        return {"$": at}

    return {"list": [_node(v, names[i] if i < len(names) else f"arg{i}", leaf) for i, v in enumerate(args)]}


def map_leaves(f: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with ``f`` applied to each leaf."""
    return rebuild({k: f(v) for k, v in leaves(tree).items()}, tree)


def clone(tree: Any) -> Any:
    """The same tree with tensors copied, strides kept."""
    return map_leaves(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, tree)


def equal(a: Any, b: Any, slack: float = 0.0) -> bool:
    """Whether two trees have the same leaves: bitwise, NaN equal to NaN; ``slack`` relative to the largest value."""
    left, right = leaves(a), leaves(b)
    return left.keys() == right.keys() and all(_same(left[k], right[k], slack) for k in left)


def _same(a: Any, b: Any, slack: float) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b) and (a == b or a != a)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point() and not a.is_complex():
        return bool((a == b).all())
    if a.itemsize == 1:
        return bool((a.view(torch.uint8) == b.view(torch.uint8)).all())
    same = (a == b) | (a.isnan() & b.isnan())
    if slack and not bool(same.all()):
        finite = a[a.isfinite()].abs()
        scale = float(finite.max()) if finite.numel() else 0.0
        same = same | ((a - b).abs() <= slack * scale)
    return bool(same.all())
