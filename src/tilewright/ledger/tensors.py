"""Tensors as blobs, bit for bit: the part of the storage that a view spans, with the view's layout beside it.

``TensorRecord.blob`` is the sha256 of the bytes from the view's first element to its last; ``offset`` is the element
at which they begin in a fresh storage of ``storage_bytes`` bytes. The offset is kept modulo 64 bytes, so that a loaded
tensor has the same alignment as the saved one had, without the megabytes that lay before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from ..errors import LedgerError, Unsupported
from ..prove.finding import TensorRecord

LIMIT = 64 << 20
"""Most bytes that one case may put into the ledger."""
ALIGNMENT = 64
PREVIEW = 6

Put = Callable[[bytes], str]
Get = Callable[[str], bytes]


def save(tensor: torch.Tensor, put: Put, *, limit: int = LIMIT) -> TensorRecord:
    """Record of ``tensor``, its bytes handed to ``put(bytes) -> sha256``.

    Over ``limit`` bytes nothing is kept: ``blob`` is empty and ``preview`` says so; keep the recipe (seed, generator)
    in the case instead. Raises Unsupported for tensors that are no plain strided memory (sparse, quantised, meta).
    """
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise Unsupported(f"a {tensor.layout} tensor on '{tensor.device}' can't be kept in the ledger")
    plain = tensor.detach().resolve_conj().resolve_neg()
    size = plain.element_size()
    offset = int(plain.storage_offset()) % max(1, ALIGNMENT // size)
    length = span(tuple(plain.shape), tuple(plain.stride()))
    record = TensorRecord(
        dtype=str(plain.dtype).removeprefix("torch."), shape=tuple(plain.shape), strides=tuple(plain.stride()),
        offset=offset, storage_bytes=(offset + length) * size, requires_grad=tensor.requires_grad,
    )  # fmt: skip
    if length * size > limit:
        return record.model_copy(update={"preview": not_kept(length * size, limit)})
    return record.model_copy(update={"blob": put(_bytes(plain, length)), "preview": preview(plain)})


def save_case(tensors: Mapping[str, torch.Tensor], put: Put, *, limit: int = LIMIT) -> dict[str, TensorRecord]:
    """Records of all tensors of a case, the smallest first, until ``limit`` bytes are spent."""
    left = limit
    records: dict[str, TensorRecord] = {}
    for name in sorted(tensors, key=lambda n: span(tuple(tensors[n].shape), tuple(tensors[n].stride()))):
        records[name] = save(tensors[name], put, limit=left)
        if records[name].blob:
            left -= records[name].storage_bytes - records[name].offset * tensors[name].element_size()
    return {name: records[name] for name in tensors}


def load(record: TensorRecord, get: Get) -> torch.Tensor:
    """The tensor on the CPU, with the bits, layout and alignment it was saved with.

    Raises LedgerError where the bytes were not kept, or are not as many as the layout needs.
    """
    if not record.blob:
        raise LedgerError(f"the values of this {record.dtype} tensor {record.shape} were not kept",
                          detail=record.preview, remedy="draw them again by the recipe of the case")  # fmt: skip
    dtype = getattr(torch, record.dtype)
    size = dtype.itemsize
    data = get(record.blob)
    wanted = span(record.shape, record.strides) * size
    if len(data) != wanted:
        raise LedgerError(f"a tensor's blob {record.blob[:12]} has {len(data)} bytes, its layout needs {wanted}",
                          remedy="the ledger is damaged; restore it from a copy")  # fmt: skip
    raw = torch.zeros(record.offset * size + len(data), dtype=torch.uint8)
    if data:
        raw[record.offset * size :] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    tensor = raw.view(dtype).as_strided(record.shape, record.strides, record.offset)
    return tensor.requires_grad_() if record.requires_grad else tensor


def span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from a view's first to its last; 0 for an empty one."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def preview(tensor: torch.Tensor) -> str:
    """The first values, for people."""
    flat = [tensor[i].item() for i in _first_indices(tensor)] if tensor.dim() else [tensor.item()]
    shown = ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in flat)
    return f"[{shown}{', …' if tensor.numel() > len(flat) else ''}]"


def not_kept(size: int, limit: int) -> str:
    """What stands for the values of a tensor that is too large to keep."""
    return f"values not kept: {size / 2**20:.1f} MiB is over the {limit / 2**20:g} MiB left for this case"


def _first_indices(tensor: torch.Tensor) -> list[tuple[int, ...]]:
    """Indices of the first elements, without copying a tensor that may be expanded to terabytes."""
    indices = []
    for flat in range(min(PREVIEW, tensor.numel())):
        index: list[int] = []
        for n in reversed(tensor.shape):
            index.append(flat % n)
            flat //= n
        indices.append(tuple(reversed(index)))
    return indices


def _bytes(tensor: torch.Tensor, length: int) -> bytes:
    if length == 0:
        return b""
    size = tensor.element_size()
    start = tensor.storage_offset() * size
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(
        tensor.untyped_storage(), start, (length * size,), (1,)
    )  # fmt: skip
    return raw.cpu().numpy().tobytes()
