"""Argument checks. A message names the operator, the argument, what was got, what is wanted, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...errors import UserError


class ArgumentError(UserError, ValueError):
    """An argument of an operator that its contract does not allow."""


def wrong(op: str, argument: str, got: object, wanted: str, remedy: str) -> ArgumentError:
    """The error, to be raised by the caller."""
    return ArgumentError(f"{op}: {argument} is {got}, expected {wanted}", remedy=remedy)


def short(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def floating(op: str, argument: str, t: torch.Tensor, dtypes: Sequence[str]) -> None:
    """``t`` has one of the dtypes that the contract names."""
    if short(t.dtype) not in dtypes:
        raise wrong(
            op, argument, f"a tensor of {short(t.dtype)}", " or ".join(dtypes), f"{argument}.to(torch.{dtypes[0]})"
        )


def same_dtype(op: str, argument: str, t: torch.Tensor | None, like: torch.Tensor, of: str) -> None:
    """``t`` has the dtype of another argument: mixed dtypes are refused, never converted in silence."""
    if t is not None and t.dtype != like.dtype:
        raise wrong(
            op, argument, f"a tensor of {short(t.dtype)}", f"{short(like.dtype)} as {of}", f"{argument}.to({of}.dtype)"
        )


def same_device(op: str, argument: str, t: torch.Tensor | None, like: torch.Tensor, of: str) -> None:
    """``t`` lies on the device of another argument."""
    if t is not None and t.device != like.device:
        raise wrong(op, argument, f"on {t.device}", f"on {like.device} as {of}", f"{argument}.to({of}.device)")


def shape(op: str, argument: str, t: torch.Tensor, wanted: Sequence[int], why: str) -> None:
    """``t`` has this shape."""
    if tuple(t.shape) != tuple(wanted):
        raise wrong(
            op, argument, f"of shape {tuple(t.shape)}", f"{tuple(wanted)} ({why})", f"reshape or expand {argument}"
        )


def axis(op: str, argument: str, value: int, dims: int) -> int:
    """``value`` as a dim counted from the front."""
    if not -max(dims, 1) <= value < max(dims, 1):
        raise wrong(op, argument, value, f"between {-max(dims, 1)} and {max(dims, 1) - 1} for {dims} dims",
                    f"choose a dim of the tensor for {argument}")  # fmt: skip
    return value % max(dims, 1)
