"""One tensor of a safetensors file: eight bytes of header length, a JSON header, raw little-endian data."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch

from ...errors import TaskError, Unsupported

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
           "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
           "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}  # fmt: skip


def read_tensor(path: Path, key: str) -> torch.Tensor:
    """Raises TaskError for a missing or damaged file or key, Unsupported for a dtype."""
    if not path.is_file():
        raise TaskError(f"stored input '{path}' does not exist", remedy="fetch the trace set's tensor files")
    with path.open("rb") as f:
        size = path.stat().st_size
        length = int.from_bytes(f.read(8), "little")
        if not 2 <= length <= size - 8:
            raise TaskError("not a safetensors file: header length out of range", where=str(path))
        try:
            header = json.loads(f.read(length))
        except ValueError:
            raise TaskError("not a safetensors file: its header is not JSON", where=str(path)) from None
        if key not in header:
            known = ", ".join(k for k in header if k != "__metadata__")
            raise TaskError(f"no tensor '{key}' in {path.name}", where=str(path), detail=f"it has: {known}")
        entry = header[key]
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise Unsupported(f"tensor '{key}' has safetensors dtype {entry['dtype']}", where=str(path))
        start, end = entry["data_offsets"]
        if end - start != math.prod(entry["shape"]) * dtype.itemsize or 8 + length + end > size:
            raise TaskError(f"tensor '{key}' does not fill its place in the file", where=str(path))
        f.seek(8 + length + start)
        raw = bytearray(f.read(end - start))
    if not raw:
        return torch.empty(entry["shape"], dtype=dtype)
    return torch.frombuffer(raw, dtype=dtype).reshape(entry["shape"])
