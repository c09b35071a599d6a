"""Writes the golden IR of the installed Triton: run it once under each version that is supported.

python tests/ir/golden/regenerate.py
"""

import re
import sys
from pathlib import Path

import torch
import triton

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import ir_kernels as K  # noqa: E402

from tilewright.ir.compile import compile  # noqa: E402


def cases():
    f32, f16, i32 = torch.zeros(16384), torch.zeros(16384).half(), torch.zeros(1024, dtype=torch.int32)
    f8, f85, u8 = (torch.zeros(8192, dtype=t) for t in (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint8))
    i64 = torch.zeros(64, dtype=torch.int64)
    yield K.softmax, (f32, f32, 100, 100, 128)
    yield K.attention, (f16, f16, f16, f16, 100, 0.125, 64, 64, 64, True, 0)
    yield K.layernorm, (f16, f32, f32, f16, 100, 1e-5, 128)
    yield K.cross_entropy, (f16, i64, f32, 100, 32)
    yield K.cumsum, (f32, f32, f32, 100, 128, True)
    yield K.histogram_atomic, (i32, i32, i32, 100, 32)
    yield K.descriptor_add, (f32, f32, 100, 64, 32, 32)
    yield K.sort_rows, (f32, f32, 32, False)
    yield K.gather_rows, (f32, i32, f32, 64, 32)
    yield K.scalar_branches, (f32, f32, 10)
    yield K.calls, (f32, f32, 100, 64), {"debug": True}
    yield K.lock_sum, (f32, f32, i32, 100, 32)
    yield K.dot_scaled, (f8, u8, f85, u8, f32, 128, 64, 64)
    yield K.split_pairs, (f32, f32, 64)
    yield K.math_table, (f32, f32, 10, 64)
    if K.HAS_BLOCK_POINTERS:
        yield K.block_pointer_transpose, (f32, f32, 100, 70, 32, 32)


def main():
    folder = HERE / ("triton-" + ".".join(triton.__version__.split(".")[:2]))
    folder.mkdir(exist_ok=True)
    for fn, args, *options in cases():
        text = compile(fn, args, options[0] if options else None).program.text
        text = re.sub(r'"/[^"]*/(triton/[^"]*|ir_kernels\.py)"', r'"\1"', text)
        (folder / f"{fn.__name__}.ttir").write_text(text)


if __name__ == "__main__":
    main()
