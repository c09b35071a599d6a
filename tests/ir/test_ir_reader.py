"""The reader on IR printed by Triton 3.6 and 3.9, whichever is installed, and on the text's awkward corners."""

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tilewright.errors import Unsupported
from tilewright.ir import launch
from tilewright.ir.domains.machine import Machine
from tilewright.ir.readers import ttir
from tilewright.ir.readers.ttir_text import parse_attr, parse_type, split_top

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.ttir"))
VERSIONS = sorted(p.name for p in GOLDEN.glob("triton-*"))


def read(version, name):
    return ttir.read((GOLDEN / version / f"{name}.ttir").read_text())


def run(program, grid, *args):
    names = program.entry.arg_names
    result = launch.evaluate(program, names, grid, list(args), Machine())
    assert result.clean or result.sequential
    return result


def test_both_versions_are_there():
    assert VERSIONS == ["triton-3.6", "triton-3.9"]
    assert len(FILES) == 31


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_operation_is_read_and_has_a_rule(path):
    from tilewright.ir.evaluate import _CONTROL, _ENDS
    from tilewright.ir.ops import load

    program = ttir.read(path.read_text())
    assert program.entry.name == path.stem
    known = set(load()) | set(_CONTROL) | set(_ENDS) | {"cf.br", "cf.cond_br"}
    assert {op.name for op in program.ops()} <= known
    located = [op for op in program.ops() if op.name != "arith.constant"]
    assert all(op.loc.split(":")[0] == "ir_kernels.py" for op in located if op.loc)
    assert sum(1 for op in located if op.loc) >= 0.9 * len(located)


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_ir_computes(version):
    torch.manual_seed(0)
    x, y = torch.randn(7, 100), torch.zeros(7, 100)
    run(read(version, "softmax"), (7, 1, 1), x, y, 100, 100)
    assert torch.allclose(y, x.softmax(-1), atol=1e-6)

    q, k, v = (torch.randn(1, 100, 64).half() for _ in range(3))
    o = torch.full_like(q, math.nan)
    run(read(version, "attention"), (2, 1, 1), q, k, v, o, 100, 0.125)
    expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    assert torch.allclose(o.float(), expected, atol=3e-3)

    h, w, b = torch.randn(5, 100).half(), torch.randn(100), torch.randn(100)
    z = torch.zeros_like(h)
    run(read(version, "layernorm"), (5, 1, 1), h, w, b, z, 100, 1e-5)
    assert torch.allclose(z.float(), F.layer_norm(h.float(), (100,), w, b), atol=5e-3)

    target, loss = torch.tensor([1, -100, 7, 99, 0]), torch.full((5,), math.nan)
    run(read(version, "cross_entropy"), (5, 1, 1), h, target, loss, 100)
    assert torch.allclose(loss, F.cross_entropy(h.float(), target, reduction="none"), atol=1e-4)

    s, t = torch.randn(4, 32), torch.zeros(4, 32)
    run(read(version, "sort_rows"), (4, 1, 1), s, t)
    assert torch.equal(t, s.sort(1).values)

    x, y = torch.randn(100, 64), torch.zeros(100, 64)
    run(read(version, "descriptor_add"), (4, 2, 1), x, y, 100, 64)
    assert torch.equal(y, x + 1)

    x, total, lock = torch.randn(100), torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    run(read(version, "lock_sum"), (4, 1, 1), x, total, lock, 100)
    assert torch.allclose(total, x.sum(), atol=1e-4)


def test_versions_agree_on_what_softmax_is():
    a, b = (read(v, "softmax") for v in VERSIONS)
    assert [o.name for o in a.ops()] == [o.name for o in b.ops()]
    assert a.written_args == b.written_args == {1}


def test_the_hash_is_blind_to_locations_only():
    text = (GOLDEN / "triton-3.9" / "softmax.ttir").read_text()
    assert ttir.sha256(text) == ttir.sha256(text.replace("ir_kernels.py", "elsewhere.py").replace(":14:", ":99:"))
    assert ttir.sha256(text) != ttir.sha256(text.replace("arith.divf", "arith.mulf"))


def test_locations_follow_the_inlining_to_the_users_line():
    program = read("triton-3.9", "softmax")
    reduce = next(op for op in program.ops() if op.name == "tt.reduce")
    assert reduce.loc.startswith("ir_kernels.py:")
    assert reduce.frames[0].startswith("triton/language/standard.py:")


def test_written_arguments_are_found_through_loops_branches_and_calls():
    wanted = {"attention": {3}, "cross_entropy": {2}, "histogram_atomic": {1, 2}, "scalar_branches": {1}, "calls": {1}}
    for version in VERSIONS:
        for name, expected in wanted.items():
            assert read(version, name).written_args == expected


def test_types():
    t = parse_type("tensor<64x1x!tt.ptr<f16>>")
    assert (t.elem, t.shape, t.pointee, t.numel) == ("ptr", (64, 1), "f16", 64)
    assert parse_type("!tt.tensordesc<tensor<16x32xbf16>>") == parse_type("!tt.tensordesc<16x32xbf16>")
    assert parse_type("tensor<8xf8E4M3FN>").is_float
    assert str(parse_type("tensor<4x8xi1>")) == "4x8xi1"


def test_attributes_and_splitting():
    assert parse_attr("array<i32: 1, 0>", []) == (1, 0)
    assert parse_attr("-3 : i32", []) == -3
    assert parse_attr("true", []) is True
    assert split_top("a, b<c, d>, (e -> f), g") == ["a", "b<c, d>", "(e -> f)", "g"]


def test_text_that_is_no_triton_ir_is_unsupported():
    with pytest.raises(Unsupported, match="0 public functions"):
        ttir.read("module {\n}\n")
    broken = "module {\n  tt.func public @k(%n: i32) {\n    %r = arith.addi %n, %missing : i32\n    tt.return\n  }\n}"
    with pytest.raises(Unsupported, match="value %missing is not defined") as e:
        ttir.read(broken)
    assert e.value.where == "ttir:3" or e.value.where == "ttir:4"
    with pytest.raises(Unsupported, match="a region isn't closed"):
        ttir.read("module {\n  tt.func public @k(%n: i32) {\n    tt.return\n")
