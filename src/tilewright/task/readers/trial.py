"""One trial: the problem run once at some sizes, under fake tensors, to know shapes, dtypes, bytes and operations.

Nothing is allocated: a problem with gigabytes of input is understood in milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils.flop_counter import FlopCounterMode

from .. import tree
from ..tensors import Values
from .device import on_this_machine
from .record import Recorder

Coordinate = tuple[str, str, int]


class Subject(Protocol):
    """A problem whose integers (``knobs``) can be changed: KernelBench constants, GPU MODE's test arguments."""

    knobs: Mapping[str, int]

    def parts(self, values: Mapping[str, int], seed: int) -> Parts:
        """Namespace executed with these knobs, as callables."""


@dataclass
class Parts:
    """``inputs()`` gives named leaves, ``build()`` the module or None, ``run(module, leaves)`` the output tree."""

    inputs: Callable[[], dict[str, Any]]
    build: Callable[[], torch.nn.Module | None]
    run: Callable[[torch.nn.Module | None, dict[str, Any]], Any]
    init: Callable[[], Any] = lambda: ()


@dataclass
class Leaf:
    """One tensor seen in a trial."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    contiguous: bool = True
    requires_grad: bool = False
    values: Values = field(default_factory=Values)


@dataclass
class Trial:
    """What one run showed. ``reason``: why fake tensors could not be used, if so."""

    inputs: dict[str, Leaf]
    scalars: dict[str, Any]
    outputs: dict[str, Leaf]
    plain_outputs: dict[str, Any]
    state: dict[str, Leaf]
    init: str
    bytes: int
    flops: int
    reason: str = ""

    def coordinates(self) -> dict[Coordinate, int]:
        """Every integer that a size can move: axes of inputs, outputs and state, and upper bounds of indices."""
        found: dict[Coordinate, int] = {}
        for kind, leaves in (("in", self.inputs), ("out", self.outputs), ("state", self.state)):
            for name, leaf in leaves.items():
                found.update({(kind, name, i): s for i, s in enumerate(leaf.shape)})
        for name, leaf in self.inputs.items():
            if leaf.values.kind == "integers":
                found[("bound", name, 0)] = int(leaf.values.high)
        for name, value in self.scalars.items():
            if isinstance(value, int) and not isinstance(value, bool):
                found[("scalar", name, 0)] = value
        return found

    def form(self) -> tuple[Any, ...]:
        """What must not change between trials: names, ranks, dtypes."""
        groups = (self.inputs, self.outputs, self.state)
        return tuple((n, len(v.shape), v.dtype) for g in groups for n, v in g.items())


_FAKE_LIMITS = ("FakeTensor", "fake tensor", "numpy()", "Couldn't swap", "meta tensor")


class NeedsValues(Exception):
    """The problem looks at values, which fake tensors don't have."""


def dtype_name(dtype: torch.dtype) -> str:
    """``torch.float16`` → ``"float16"``."""
    return str(dtype).removeprefix("torch.")


def leaf_of(t: torch.Tensor, values: Values | None = None) -> Leaf:
    """A tensor as a ``Leaf``."""
    return Leaf(tuple(int(s) for s in t.shape), dtype_name(t.dtype), t.numel() * t.itemsize, t.is_contiguous(),
                t.requires_grad, values or Values())  # fmt: skip


def run_trial(subject: Subject, values: Mapping[str, int], *, real: bool = False) -> Trial:
    """Run ``subject`` once with these knobs, under fake tensors unless ``real``.

    Raises NeedsValues where fake tensors don't reach, and whatever the user code raises.
    """
    if real:
        return _run(subject, values)
    # A refused size is an answer, not an error to be logged.
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL + 1)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return _run(subject, values)
    except (DataDependentOutputException, DynamicOutputShapeException) as e:
        raise NeedsValues(f"{e.func} depends on values") from e
    except Exception as e:
        cause: BaseException | None = e
        while cause is not None:
            if isinstance(cause, DataDependentOutputException | DynamicOutputShapeException):
                raise NeedsValues(f"{cause.func} depends on values") from e
            if any(sign in str(cause) for sign in _FAKE_LIMITS):
                raise NeedsValues(str(cause).splitlines()[0]) from e
            cause = cause.__cause__ or cause.__context__
        raise


def _run(subject: Subject, values: Mapping[str, int]) -> Trial:
    recorder = Recorder()
    torch.manual_seed(0)
    parts = subject.parts(values, 0)
    with on_this_machine(), recorder:
        leaves = parts.inputs()
    tensors = {k: v for k, v in leaves.items() if isinstance(v, torch.Tensor)}
    inputs = {k: leaf_of(v, recorder.values(v)) for k, v in tensors.items()}
    with on_this_machine(), FlopCounterMode(display=False) as counter:
        module = parts.build()
        state = {} if module is None else {k: leaf_of(v) for k, v in tensors_of(module).items()}
        outputs = tree.leaves(parts.run(module, leaves))
    out = {k: leaf_of(v) for k, v in outputs.items() if isinstance(v, torch.Tensor)}
    total = sum(leaf.bytes for group in (inputs, state, out) for leaf in group.values())
    return Trial(
        inputs, {k: v for k, v in leaves.items() if k not in tensors}, out,
        {k: v for k, v in outputs.items() if k not in out}, state, repr(parts.init()), total, counter.get_total_flops(),
    )  # fmt: skip


def tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name."""
    return {k: v.detach() for k, v in (*module.named_parameters(), *module.named_buffers())}
