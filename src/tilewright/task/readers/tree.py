"""Trees of values: what references take and return, as named leaves.

``flatten((a, {"k": b}))`` is ``{"out.0": a, "out.k": b}``; ``unflatten`` puts leaves back into a tree of that form.
Tuples, lists, dicts, named tuples and dataclass instances are branches; all else, None included, is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from ...errors import TaskError, Unsupported


def _branches(tree: Any) -> list[tuple[str, Any]] | None:
    """Named children, or None for a leaf."""
    if isinstance(tree, Mapping):
        return [(str(k), v) for k, v in tree.items()]
    if isinstance(tree, list | tuple) and not isinstance(tree, torch.Size):
        return [(str(i), v) for i, v in enumerate(tree)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(f.name, getattr(tree, f.name)) for f in dataclasses.fields(tree) if f.init]
    return None


def flatten(tree: Any, root: str = "out") -> dict[str, Any]:
    """Leaves by path, in order: ``root`` itself for a lone leaf, else ``root.0``, ``root.key``, ``root.0.key``."""
    branches = _branches(tree)
    if branches is None:
        return {root: tree}
    leaves: dict[str, Any] = {}
    for name, child in branches:
        leaves.update(flatten(child, f"{root}.{name}"))
    return leaves


def unflatten(leaves: Mapping[str, Any], like: Any, root: str = "out") -> Any:
    """A tree of the form of ``like`` with its leaves taken from ``leaves`` by path.

    Raises TaskError for a path that ``leaves`` lacks.
    """
    branches = _branches(like)
    if branches is None:
        if root not in leaves:
            raise TaskError(f"no value for '{root}'", detail=f"given: {', '.join(leaves) or 'nothing'}")
        return leaves[root]
    children = [unflatten(leaves, child, f"{root}.{name}") for name, child in branches]
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
    leaves: dict[str, Any] = {}
    for i, value in enumerate(args):
        leaves.update(flatten(value, names[i] if i < len(names) else f"arg{i}"))
    return leaves


def unflatten_arguments(leaves: Mapping[str, Any], like: list[Any], names: list[str]) -> list[Any]:
    """Inverse of ``flatten_arguments``."""
    return [unflatten(leaves, v, names[i] if i < len(names) else f"arg{i}") for i, v in enumerate(like)]


def structure(args: list[Any], names: list[str]) -> dict[str, Any]:
    """Positional arguments as a wire tree over the names of ``flatten_arguments`` (see ``task/tree.py``)."""

    def node(value: Any, path: str) -> dict[str, Any]:
        branches = _branches(value)
        if branches is None:
            return {"$": path}
        if isinstance(value, Mapping):
            return {"dict": {n: node(v, f"{path}.{n}") for n, v in branches}}
        if isinstance(value, list | tuple):
            return {"list" if type(value) is list else "tuple": [node(v, f"{path}.{n}") for n, v in branches]}
        raise Unsupported(f"input '{path}' is a {type(value).__name__}, which can't be passed between processes",
                          remedy="pass its fields as a tuple or a dict")  # fmt: skip

    return {"list": [node(v, names[i] if i < len(names) else f"arg{i}") for i, v in enumerate(args)]}


def map_leaves(f: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with ``f`` applied to each leaf."""
    return unflatten({k: f(v) for k, v in flatten(tree).items()}, tree)


def clone(tree: Any) -> Any:
    """The same tree with tensors copied, strides kept."""
    return map_leaves(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, tree)


def equal(a: Any, b: Any, slack: float = 0.0) -> bool:
    """Whether two trees have the same leaves: bitwise, NaN equal to NaN; ``slack`` relative to the largest value."""
    left, right = flatten(a), flatten(b)
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
