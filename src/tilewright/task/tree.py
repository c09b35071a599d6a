"""Nested arguments and results as data: a tree of lists, tuples and dicts whose tensors are named leaves.

``flatten((x, {"a": 1}), "out")`` → ``({"tuple": [{"$": "out.0"}, {"dict": {"a": {"=": 1}}}]}, {"out.0": x})``.
The tree is JSON; the tensors travel beside it as raw buffers. Nothing is ever pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

Tree = dict[str, Any]


def flatten(value: Any, name: str = "out") -> tuple[Tree, dict[str, torch.Tensor]]:
    """Structure and named tensors of a nested value. Other leaves are kept if JSON has them, else by their type name."""
    leaves: dict[str, torch.Tensor] = {}

    def walk(v: Any, at: str) -> Tree:
        if isinstance(v, torch.Tensor):
            leaves[at] = v
            return {"$": at}
        if isinstance(v, tuple | list):
            return {
                type(v).__name__ if type(v) in (tuple, list) else "tuple": [
                    walk(x, f"{at}.{i}") for i, x in enumerate(v)
                ]
            }
        if isinstance(v, Mapping):
            return {"dict": {str(k): walk(x, f"{at}.{k}") for k, x in v.items()}}
        if isinstance(v, torch.dtype | torch.device):
            return {type(v).__name__: str(v).removeprefix("torch.")}
        if v is None or isinstance(v, bool | int | str):
            return {"=": v}
        if isinstance(v, float):
            return {"=": v} if v == v and abs(v) != float("inf") else {"float": repr(v)}
        return {"?": type(v).__name__}

    return walk(value, name), leaves


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
