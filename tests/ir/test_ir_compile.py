"""Compiling without a GPU: the specialisation of a real launch, errors with a line, the cache."""

from pathlib import Path

import ir_kernels as K
import pytest
import torch

from tilewright.errors import KernelError
from tilewright.ir import compile as C


def test_specialises_as_a_launch_would():
    x, y = torch.zeros(1024), torch.zeros(1024)
    aligned = C.compile(K.read_back, (x, y, 96, 32))
    assert [a.get("tt.divisibility") for a in aligned.program.entry.arg_attrs] == [16, 16, 16]
    odd = C.compile(K.read_back, (x[1:], y, 97, 32))
    assert [a.get("tt.divisibility") for a in odd.program.entry.arg_attrs] == [None, 16, None]
    one = C.compile(K.read_back, (x, y, 1, 32))
    assert one.names == ("x", "y")
    assert one.constexprs == {"n": 1, "BLOCK": 32}


def test_a_pointer_stands_for_a_tensor():
    p = C.Pointer(torch.float16)
    compiled = C.compile(K.softmax, (p, C.Pointer(torch.float32, aligned=False), 1000, 1000, 1024))
    assert compiled.signature["x"] == "*fp16"
    assert [a.get("tt.divisibility") for a in compiled.program.entry.arg_attrs][:2] == [16, None]


def test_positions_names_and_options_all_bind():
    x = torch.zeros(128)
    a = C.compile(K.read_back, (x, x), {"n": 100, "BLOCK": 32, "num_warps": 8})
    b = C.compile(K.read_back, (x, x, 100, 32), {"num_warps": 1})
    assert a.program.sha256 == b.program.sha256


def test_the_same_launch_is_compiled_once():
    x = torch.zeros(128)
    assert C.compile(K.read_back, (x, x, 100, 32)) is C.compile(K.read_back, (x, x, 100, 32))
    assert C.compile(K.read_back, (x, x, 100, 32)) is not C.compile(K.read_back, (x, x, 100, 64))


def test_the_disk_cache_is_read(tmp_path):
    x = torch.zeros(128)
    C._memory.clear()
    first = C.compile(K.read_back, (x, x, 101, 32), cache=tmp_path)
    C._memory.clear()
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text().replace("arith.addf", "arith.subf"))
    second = C.compile(K.read_back, (x, x, 101, 32), cache=tmp_path)
    C._memory.clear()
    assert first.program.sha256 != second.program.sha256


def test_a_kernel_that_does_not_compile_names_its_line():
    with pytest.raises(KernelError, match="kernel 'does_not_compile' doesn't compile") as e:
        C.compile(K.does_not_compile, (torch.zeros(64), 64))
    assert e.value.where.endswith(f"ir_kernels.py:{_line(K.does_not_compile, 'tl.dot')}")


def test_a_missing_overload_is_told_by_its_kind():
    with pytest.raises(KernelError, match=r"KeyError: .*float16"):
        C.compile(K.tanh_of_half, (torch.zeros(64).half(), 64))


def _line(fn, text):
    code = fn.fn.__code__
    lines = Path(code.co_filename).read_text().split("\n")
    return 1 + next(i for i in range(code.co_firstlineno - 1, len(lines)) if text in lines[i])


def test_unknown_options_and_missing_arguments_are_refused():
    x = torch.zeros(128)
    with pytest.raises(KernelError, match="speed was specified but unrecognised"):
        C.compile(K.read_back, (x, x, 100, 32), {"speed": 11})
    with pytest.raises(KernelError, match="missing"):
        C.compile(K.read_back, (x, x))
    with pytest.raises(KernelError, match=r"is no @triton\.jit function"):
        C.unwrap(len)


@pytest.mark.slow
def test_the_whole_pipeline_gives_a_cubin():
    x = torch.zeros(128)
    compiled = C.compile(K.read_back, (x, x, 100, 32), {"num_warps": 8})
    binary = C.binary(compiled)
    assert {"ttgir", "ptx", "cubin"} <= set(binary.asm)
    assert binary.metadata.num_warps == 8
