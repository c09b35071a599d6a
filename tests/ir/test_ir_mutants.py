"""Each rule of shape, memory, reduction and control against a plausible mistake: a kernel's test must see it."""

import pytest
import test_ir_kernels as T
import torch

from tilewright.errors import Unsupported
from tilewright.ir.ops import RULES, load
from tilewright.ir.program import Type
from tilewright.ir.values import Ptr, struct

load()
RIGHT = dict(RULES)


def swapped(ev, op, a, b):
    return RIGHT[op.name](ev, op, b, a)


def without_mask(ev, op, ptr, mask=None, other=None):
    inside = Ptr(ptr.buf, ptr.off.clamp(0, ev.memory.buffers[ptr.buf].size - 1), ptr.elem)
    return RIGHT["tt.load"](ev, op, inside)


def store_all(ev, op, ptr, value, mask=None):
    inside = Ptr(ptr.buf, ptr.off.clamp(0, ev.memory.buffers[ptr.buf].size - 1), ptr.elem)
    return RIGHT["tt.store"](ev, op, inside, value)


def last_axis_first(ev, op, x):
    return struct(x, lambda t: t.reshape(t.shape[0], *op.type.shape))


def first_half(ev, op, *args):
    axis = op.attrs["axis"] + 1
    return RIGHT[op.name](ev, op, *[struct(x, lambda t: t.narrow(axis, 0, t.shape[axis] // 2)) for x in args])


def forward(ev, op, *args):
    from dataclasses import replace

    return RIGHT[op.name](ev, replace(op, attrs={**op.attrs, "reverse": not op.attrs.get("reverse", False)}), *args)


def no_accumulator(ev, op, a, b, c):
    return RIGHT["tt.dot"](ev, op, a, b, torch.zeros_like(c))


def zero_old(ev, op, *args):
    return torch.zeros_like(RIGHT[op.name](ev, op, *args))


def shifted(ev, op, x, index):
    return RIGHT["tt.gather"](ev, op, x, (index + 1) % x.shape[1])


def next_bin(ev, op, x, mask=None):
    return RIGHT["tt.histogram"](ev, op, x + 1, mask)


def one_axis(ev, op):
    return ev.program_id(0)


def value_cast(ev, op, x):
    t = ev.types[op.operands[0]]
    if t.elem == "f32" and op.type.elem == "i32":
        return x.to(torch.int32)
    return RIGHT["tt.bitcast"](ev, op, x)


def exp2(ev, op, x):
    return ev.domain.apply("exp2", op.type, (x,), op.loc)


def unclamped(ev, op, x, low, high):
    return x


def other_scale(ev, op, *args):
    return RIGHT["tt.dot_scaled"](ev, op, args[0], args[1] + 1, *args[2:])


def whole_block(ev, op, desc, *starts):
    from dataclasses import replace

    sizes = tuple(s + 1 for s in desc.sizes)
    return RIGHT[op.name](ev, op, replace(desc, sizes=sizes), *starts)


def no_libdevice(ev, op, *args):
    return args[0]


def unrounded(ev, op, x):
    return ev.domain.apply("abs", Type(op.type.elem, op.type.shape), (x,), op.loc).to(torch.float16)


MUTANTS = [
    ("tt.trans", last_axis_first, T.test_rope_with_join_and_trans, ()),
    ("tt.join", swapped, T.test_rope_with_join_and_trans, ()),
    ("tt.cat", swapped, T.test_split_and_cat, ()),
    ("tt.split", lambda ev, op, x: RIGHT["tt.split"](ev, op, x)[::-1], T.test_split_and_cat, ()),
    ("tt.reduce", first_half, T.test_softmax, (1000,)),
    ("tt.reduce", first_half, T.test_reduce_over_both_axes, ()),
    ("tt.scan", forward, T.test_scans, (True,)),
    ("tt.gather", shifted, T.test_gather, ()),
    ("tt.histogram", next_bin, T.test_histogram, ()),
    ("tt.load", without_mask, T.test_softmax, (100,)),
    ("tt.store", store_all, T.test_softmax, (100,)),
    ("tt.atomic_rmw", zero_old, T.test_histogram_by_atomics_hands_out_each_old_value_once, ()),
    ("tt.dot", no_accumulator, T.test_matmul_is_as_exact_as_its_dtype, (torch.float16, (100, 90, 77))),
    ("tt.dot_scaled", other_scale, T.test_dot_scaled, ()),
    ("tt.get_program_id", one_axis, T.test_matmul_is_as_exact_as_its_dtype, (torch.float16, (100, 90, 77))),
    ("tt.bitcast", value_cast, T.test_casts_saturate_in_fp8_and_round_elsewhere, ()),
    ("arith.select", lambda ev, op, m, a, b: RIGHT["arith.select"](ev, op, m, b, a), T.test_attention, (False, 500)),
    ("math.exp", exp2, T.test_softmax, (100,)),
    ("tt.clampf", unclamped, T.test_math, ()),
    ("tt.extern_elementwise", no_libdevice, T.test_math, ()),
    ("tt.mulhiui", lambda ev, op, a, b: a * b, T.test_dropout_draws_philox, ()),
    ("tt.descriptor_load", whole_block, T.test_tensor_descriptors_clip_at_their_shape, ()),
    ("arith.xori", lambda ev, op, a, b: a | b, T.test_sort, (False,)),
    ("arith.truncf", unrounded, T.test_layernorm_with_welford, ()),
]


@pytest.mark.parametrize(("name", "mutant", "test", "args"), MUTANTS, ids=lambda v: v if isinstance(v, str) else "")
def test_the_kernels_test_sees_the_mutant(name, mutant, test, args, monkeypatch):
    torch.manual_seed(0)
    test(*args)
    monkeypatch.setitem(RULES, name, mutant)
    torch.manual_seed(0)
    with pytest.raises((AssertionError, Unsupported)):
        test(*args)
