"""A launch's arguments → buffers and values: tensors, numbers, tuples of them, tensor descriptors made on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import KernelError
from .domains.base import Domain
from .memory import Buffer
from .phantom import Phantom
from .program import Program, Type
from .values import ELEM, FLOATS, Desc, Ptr, int_dtype


@dataclass(frozen=True)
class Arg:
    """A pointer argument: ``storage`` is flat (a tensor, or in other domains the domain's one-dimensional value),
    ``offset`` in elements where the argument points, ``dtype`` the element's torch dtype as the kernel sees it.
    Arguments that share a storage pass the same object, or tensors of one memory."""

    storage: Any
    offset: int = 0
    dtype: torch.dtype | None = None

    def data_ptr(self) -> int:
        """As Triton's specialisation asks: alignment of the address, taking storages to be aligned."""
        if self.dtype is None:
            raise KernelError("an argument with a domain's own storage needs its dtype")
        return self.offset * torch.empty(0, dtype=self.dtype).element_size()


def arg(tensor: Tensor) -> Arg:
    """The whole storage behind a tensor, flat, and where the tensor starts in it."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    return Arg(tensor.detach().as_strided((size,), (1,), 0), int(tensor.storage_offset()), tensor.dtype)


def bind(fn: Any, args: tuple[Any, ...] | list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name, defaults included; launch options are left out."""
    names = set(fn.signature.parameters)
    try:
        bound = fn.signature.bind(*args, **{k: v for k, v in kwargs.items() if k in names})
    except TypeError as e:
        raise KernelError(f"arguments don't fit kernel '{fn.__name__}': {e}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def flatten(signature: dict[str, Any], named: dict[str, Any]) -> list[tuple[str, Any]]:
    """(name, value) of each runtime argument as the IR has them: tuples spread out, a descriptor followed by its sizes
    and strides; constexprs left out."""
    out: list[tuple[str, Any]] = []

    def add(name: str, kind: Any, value: Any) -> None:
        if kind == "constexpr":
            return
        if isinstance(kind, tuple | list):
            for i, (k, v) in enumerate(zip(kind, value, strict=True)):
                add(f"{name}.{i}", k, v)
            return
        out.append((name, value))
        if isinstance(kind, str) and kind.startswith("tensordesc"):
            out.extend((f"{name}.shape.{i}", s) for i, s in enumerate(value.shape))
            out.extend((f"{name}.stride.{i}", s) for i, s in enumerate(value.strides))

    for name, kind in signature.items():
        add(name, kind, named.get(name))
    return out


def place(program: Program, names: tuple[str, ...], args: list[Any], domain: Domain, uninitialised: frozenset[str],
          track: bool, reachable: Sequence[Any] = ()) -> tuple[list[Buffer], list[Any]]:  # fmt: skip
    """Buffers of a launch and the values of the entry's arguments. ``reachable`` are further tensors or Args, which the
    kernel reaches through addresses that it loads."""
    buffers: list[Buffer] = []
    values: list[Any] = []
    by_memory: dict[Any, int] = {}
    written = program.written_args
    for i, (name, value, t) in enumerate(zip(names, args, program.entry.arg_types, strict=True)):
        if t.elem not in ("ptr", "desc"):
            values.append(_scalar(name, value, t, domain))
            continue
        base = value.base if t.elem == "desc" and hasattr(value, "base") else value
        number, offset = _buffer(name, base, t, domain, buffers, by_memory)
        buffer = buffers[number]
        if track and (written is None or i in written or name in uninitialised) and not buffer.tracked:
            buffer.tracked = True
        buffer.uninitialised |= name in uninitialised
        pointer = Ptr(number, torch.tensor([offset]), t.pointee)
        values.append(pointer if t.elem == "ptr" else _descriptor(value, pointer, t))
    for i, extra in enumerate(reachable):
        elem = ELEM[extra.dtype]
        number, _ = _buffer(f"reachable.{i}", extra, Type("ptr", (), elem), domain, buffers, by_memory)
        if track and written is None and not buffers[number].tracked:
            buffers[number].tracked = True
    return buffers, values


def _descriptor(value: Any, pointer: Ptr, t: Type) -> Desc:
    sizes = tuple(torch.tensor([int(s)]) for s in value.shape)
    strides = tuple(torch.tensor([int(s)]) for s in value.strides)
    return Desc(pointer, sizes, strides, t.block, str(getattr(value, "padding", "zero")))


def _scalar(name: str, value: Any, t: Type, domain: Domain) -> Any:
    if t.is_float:
        return domain.scalar(value, t)
    if isinstance(value, Tensor):
        return value.reshape(1).to(int_dtype(t.elem))
    try:
        wrapped = int(value)
    except (TypeError, ValueError):
        raise KernelError(f"argument '{name}' is {t.elem} in the kernel, got {type(value).__name__}") from None
    if t.elem != "i1":
        width = 8 * torch.empty(0, dtype=int_dtype(t.elem)).element_size()
        wrapped = (wrapped + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    return torch.tensor([wrapped], dtype=int_dtype(t.elem))


def _buffer(
    name: str, value: Any, t: Type, domain: Domain, buffers: list[Buffer], by_memory: dict[Any, int]
) -> tuple[int, int]:
    """Number of the buffer that an argument points into, and where in it."""
    given = arg(value) if isinstance(value, Tensor) else value
    if not isinstance(given, Arg):
        raise KernelError(f"argument '{name}' is a pointer in the kernel, got {type(value).__name__}")
    storage = given.storage
    key: Any = ("object", id(storage))
    if isinstance(storage, Tensor):
        address = storage.untyped_storage().data_ptr()
        key = ("memory", address) if address else key
        if given.dtype is None:
            given = Arg(storage, given.offset, storage.dtype)
    elem = ELEM.get(given.dtype, t.pointee) if given.dtype is not None else t.pointee
    if key in by_memory:
        buffers[by_memory[key]].names.append(name)
        return by_memory[key], given.offset
    origin = (0, 0)
    if isinstance(storage, Tensor):
        origin = (storage.data_ptr(), storage.data_ptr() + storage.numel() * storage.element_size())
    if isinstance(storage, Tensor | Phantom) and elem not in FLOATS:
        storage = storage.view(int_dtype(elem))
    if elem in FLOATS:
        storage = domain.cast_storage(storage, elem, name)
    buffers.append(Buffer(len(buffers), storage, elem, int(storage.shape[0]), [name], origin=origin))
    by_memory[key] = len(buffers) - 1
    return len(buffers) - 1, given.offset
