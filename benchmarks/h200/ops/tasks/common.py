"""What all tasks of this folder share: bfloat16, contiguous, finite; and the operator's kernel that each is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.task import Contract, Task, TensorSpec, Values, Work

HALF = ("bfloat16",)


THROUGH_AUTOGRAD = """
def timed(x, weight, {more}):
    return kernel(x, weight, {more}, {options})


def timed_step(x, weight, {more}):
    with torch.enable_grad():
        x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
        loss = kernel(x, weight, {more}, {options})
        return loss.detach(), *torch.autograd.grad(loss, (x, weight))
"""
"""Adapter of losses behind a linear layer, ``kernel(x, weight, more, options)``: loss, and loss with both gradients."""


@dataclass(frozen=True)
class Kernel:
    """``entry`` of an operator's kernel file. ``adapter``: source of that entry, put behind the file's own text where it
    has none that takes this task's inputs. ``beside``: files of the folder that it imports."""

    folder: str
    entry: str
    adapter: str = ""
    file: str = "kernel.py"
    beside: tuple[str, ...] = ()


def half(shape: str, **more: Any) -> TensorSpec:
    """A tensor in bfloat16."""
    return TensorSpec(shape, dtypes=HALF, **more)


def wide(shape: str, low: float = 0.5, high: float = 2.0) -> TensorSpec:
    """A number that forward kept for backward, in float32."""
    return TensorSpec(shape, values=Values(kind="uniform", low=low, high=high), dtype_group="kept")


def task(name: str, reference: Any, inputs: dict[str, Any], dims: dict[str, Any], small: list[dict[str, int]], *,
         moved: str, flops: str = "0", peers: tuple[str, ...] = (), **more: Any) -> Task:  # fmt: skip
    """``small``: workloads of the check; those that are timed stand in the file's ``GRID``. ``moved``: compulsory bytes."""
    return Task(
        name=f"bench.{name}", reference=reference, inputs=inputs, dims=dims, workloads=small, baselines=peers,
        contract=Contract(identifier=f"bench.{name}", layouts="excluded", special_values="excluded", empty="excluded"),
        work=Work(bytes=moved, flops=flops), **more,
    )  # fmt: skip
