"""Operator: what the builder needs to know to make a PyTorch operator from one folder. Imports torch alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Like:
    """Shape and dtype of a result. It is contiguous and lies on the device of the first tensor argument."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Pair:
    """What ``tilewright check --strict PROBLEM KERNEL`` is given: files of the folder, and the kernel's entry."""

    task: str
    entry: str
    kernel: str = "kernel.py"


@dataclass(frozen=True)
class Call:
    """One call of the public function for the hazard suite: ``make(dtype, device)`` gives its arguments by name."""

    name: str
    make: Callable[[torch.dtype, str], dict[str, Any]]


@dataclass(frozen=True)
class Operator:
    """One operator.

    ``schema``: arguments and results as ``torch.library`` writes them, public results first:
    ``"(Tensor x, Tensor? mask, int axis) -> Tensor"``. Arguments have no defaults: those stand in the public function.

    ``results(*arguments) -> list[Like]``: one for each result. ``public``: how many of them users see; the others are kept
    for backward and are empty on the reference route.

    ``forward(*arguments) -> tuple`` and ``backward(grads, saved, options, needs) -> dict`` launch the kernel; they import it
    inside, so that importing the operator stays cheap. ``grads``: one gradient (or None) for each public result;
    ``saved``: the tensors named in ``saves`` (arguments or results) by name; ``options``: the arguments that are no tensors;
    ``needs``: the names in ``differentiable`` whose gradient is wanted. A gradient has its argument's shape and dtype and is
    contiguous; where the argument itself is not saved, ``gradient_like`` names a saved tensor of its shape and dtype.

    ``reference(*arguments)`` gives the public results in PyTorch; it is also what runs where there is no kernel.
    ``function`` is the name of the public function in ``api.py``. ``check(*arguments)`` raises ``ArgumentError``.
    ``outside(*arguments)`` says why the kernel does not take a call that the contract allows (the reference runs then), or
    returns None. ``copies`` says which layouts are copied first (``_builder.copies`` counts them).

    ``mutates``: arguments written in place by contract. The schema marks them and has no results
    (``"(Tensor(a!) q, Tensor cos) -> ()"``), ``results`` and ``forward`` give none, the reference returns what is to be
    written, and there is no backward: an argument that requires a gradient is refused.
    """

    name: str
    summary: str
    schema: str
    reference: Callable[..., Any]
    results: Callable[..., list[Like]]
    forward: Callable[..., Tensors]
    function: str
    folder: Path
    check: Callable[..., None] = lambda *_: None
    backward: Callable[..., dict[str, torch.Tensor]] | None = None
    differentiable: tuple[str, ...] = ()
    saves: tuple[str, ...] = ()
    gradient_like: dict[str, str] = field(default_factory=dict)
    result_names: tuple[str, ...] = ("y",)
    public: int = 1
    mutates: tuple[str, ...] = ()
    outside: Callable[..., str | None] = lambda *_: None
    pairs: tuple[Pair, ...] = ()
    calls: tuple[Call, ...] = ()
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")
    determinism: Literal["bitwise", "none"] = "bitwise"
    double_backward: Literal["refused"] = "refused"
    autocast: str = "keeps the dtype of its inputs"
    memory: str = ""
    copies: str = "none: strides are arguments of the kernel"
    error_bound: str = ""
    notes: tuple[str, ...] = field(default=())
