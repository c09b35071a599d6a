"""Tensors as lines of Python: a formula where the values are simple, else their bytes. Always bit for bit.

before: ``TensorRecord(dtype="float32", shape=(2, 3), …)`` with eleven zeros and a one in its blob
after: ``x = torch.full((2, 3), 0.0, dtype=torch.float32)`` and ``x[1, 0] = 1.0``

Every formula is evaluated and compared with the recorded bytes before it is used, so that a NaN with a payload or a
negative zero is never rounded to something prettier.
"""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Callable
from typing import Any

import torch

from ..errors import Unsupported
from .finding import TensorRecord

Get = Callable[[str], bytes]
LITERAL = 24
EXCEPTIONS = 6
LARGEST = 4 << 20
WIDTH = 100


def lines(name: str, record: TensorRecord, get: Get) -> list[str]:
    """Statements that build the tensor ``name``. Raises Unsupported where the values were not kept, or are many."""
    if not record.blob:
        raise Unsupported(f"the values of '{name}' were not kept, so no script can show them: {record.preview}",
                          remedy="use `tilewright replay`, which draws them again")  # fmt: skip
    data = get(record.blob)
    made = _values(name, record, data)
    if _dense(record):
        return made
    shape, strides = _tuple(record.shape), _tuple(record.strides)
    if record.offset:
        made.append(f"{name} = torch.cat([{name}.new_zeros({record.offset}), {name}])")
    return [*made, f"{name} = {name}.as_strided({shape}, {strides}, {record.offset})"]


def _dense(record: TensorRecord) -> bool:
    """Whether the storage in order is the tensor in order, so that it can be built in its shape at once."""
    plain = torch.empty(record.shape, device="meta").stride()
    return record.offset == 0 and 0 not in record.shape and tuple(record.strides) == tuple(plain)


def _span(record: TensorRecord) -> int:
    """Elements of the storage from the view's first to its last."""
    if 0 in record.shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(record.shape, record.strides, strict=True))


def _values(name: str, record: TensorRecord, data: bytes) -> list[str]:
    dtype = getattr(torch, record.dtype)
    shape = record.shape if _dense(record) else (_span(record),)
    if not data:
        return [f"{name} = torch.empty({_tuple(shape)}, dtype={dtype})"]
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype)
    for candidate in (_constant, _sequence, _literal):
        made = candidate(name, flat, shape, dtype)
        if made and _evaluates_to(made, name, data):
            return made
    return _packed(name, data, shape, dtype)


def _constant(name: str, flat: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> list[str] | None:
    """All equal, but for a few elements."""
    raw = flat.view(torch.uint8).reshape(flat.numel(), -1)
    common = raw[0] if flat.numel() < 3 else raw.mode(0).values
    others = (raw != common).any(1).nonzero().flatten().tolist()
    if len(others) > min(EXCEPTIONS, flat.numel() // 4):
        return None
    fill = next(i for i in range(flat.numel()) if i not in others) if len(others) < flat.numel() else 0
    made = [f"{name} = torch.full({_tuple(shape)}, {_number(flat[fill])}, dtype={dtype})"]
    for i in others:
        index = ", ".join(str(int(j)) for j in torch.unravel_index(torch.tensor(i), shape)) if shape else "()"
        made.append(f"{name}[{index}] = {_number(flat[i])}")
    return made


def _sequence(name: str, flat: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> list[str] | None:
    if flat.numel() < 3 or dtype.is_complex or dtype is torch.bool:
        return None
    first, step = float(flat[0]), float(flat[1]) - float(flat[0])
    if not (step == step and abs(step) < 2**40 and step == int(step) and first == int(first) and step):
        return None
    end = int(first) + int(step) * flat.numel()
    made = f"torch.arange({int(first)}, {end}, {int(step)}).to({dtype})"
    return [f"{name} = {made}" + (f".reshape({_tuple(shape)})" if len(shape) != 1 else "")]


def _literal(name: str, flat: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> list[str] | None:
    if flat.numel() > LITERAL or (dtype.itemsize == 1 and dtype.is_floating_point):
        return None
    numbers = [_number(v) for v in flat]
    text = _nested(numbers, shape)
    return _wrapped(f"{name} = torch.tensor({text}, dtype={dtype})")


def _nested(numbers: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return numbers[0]
    if len(shape) == 1:
        return "[" + ", ".join(numbers) + "]"
    part = len(numbers) // shape[0]
    return "[" + ", ".join(_nested(numbers[i * part : (i + 1) * part], shape[1:]) for i in range(shape[0])) + "]"


def _packed(name: str, data: bytes, shape: tuple[int, ...], dtype: torch.dtype) -> list[str]:
    text = base64.b64encode(zlib.compress(data, 9)).decode()
    if len(text) > LARGEST:
        raise Unsupported(f"'{name}' has {len(data) / 2**20:.1f} MiB of values, too many for a script",
                          remedy="use `tilewright replay`")  # fmt: skip
    chunks = "\n".join(f'    "{line}"' for line in textwrap.wrap(text, WIDTH))
    return [f"{name} = unpack(", *chunks.split("\n"), f"    , {_tuple(shape)}, {dtype})"]


def _evaluates_to(made: list[str], name: str, data: bytes) -> bool:
    scope: dict[str, Any] = {"torch": torch, "nan": float("nan"), "inf": float("inf")}
    try:
        exec("\n".join(made), scope)
    except (RuntimeError, ValueError, OverflowError, TypeError, NotImplementedError, NameError):
        return False
    return bool(scope[name].reshape(-1).view(torch.uint8).numpy().tobytes() == data)


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH + 10, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _number(value: torch.Tensor) -> str:
    return repr(value.item())


def _tuple(values: tuple[int, ...]) -> str:
    return repr(tuple(values))
