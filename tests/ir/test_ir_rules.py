"""One law for each rule of arithmetic and shape, checked element by element in plain Python, and a mutant against it.

A mutant is a plausible mistake: the rule of a neighbouring operation, or the same rule read signed for unsigned. The
test runs the law with the mutant in place of the rule and wants it to fail.
"""

import math
import random
import struct
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from tilewright.ir import launch
from tilewright.ir.domains.machine import Machine
from tilewright.ir.ops import RULES, load
from tilewright.ir.readers import ttir

load()
N = 256
WIDEN = f"    %r = arith.extui %m : tensor<{N}xi1> to tensor<{N}xi8>"
TORCH = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
         "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}  # fmt: skip


def program(ins, out, line):
    """A kernel that loads its inputs, does one operation and stores the result."""
    args = "".join(f"%p{i}: !tt.ptr<{t}>, " for i, t in enumerate(ins)) + f"%po: !tt.ptr<{out}>"
    text = [f"module {{\n  tt.func public @k({args}) attributes {{noinline = false}} {{"]
    text.append(f"    %i = tt.make_range {{end = {N} : i32, start = 0 : i32}} : tensor<{N}xi32>")
    for name, t in [*((f"p{i}", t) for i, t in enumerate(ins)), ("po", out)]:
        ptr = f"tensor<{N}x!tt.ptr<{t}>>"
        text.append(f"    %s{name} = tt.splat %{name} : !tt.ptr<{t}> -> {ptr}")
        text.append(f"    %a{name} = tt.addptr %s{name}, %i : {ptr}, tensor<{N}xi32>")
        if name != "po":
            text.append(f"    %{'abc'[int(name[1:])]} = tt.load %a{name} : {ptr}")
    text.append(line)
    text.append(f"    tt.store %apo, %r : tensor<{N}x!tt.ptr<{out}>>\n    tt.return\n  }}\n}}")
    return ttir.read("\n".join(text))


def evaluate(ins, out, line, values, rules=None):
    p = program(ins, out, line)
    storages = [torch.tensor(v, dtype=TORCH[t]) for v, t in zip(values, ins, strict=True)]
    result = torch.zeros(N, dtype=TORCH[out])
    before = dict(RULES)
    RULES.update(rules or {})
    try:
        launch.evaluate(p, (*"abcd"[: len(ins)], "o"), (1, 1, 1), [*storages, result], Machine())
    finally:
        RULES.clear()
        RULES.update(before)
    return storages, result


def wrap(x, width):
    return (x + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)


def u(x, width):
    return x % 2**width


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def numbers(t, seed):
    r = random.Random(seed)
    if t[0] == "i":
        width = int(t[1:])
        edges = [-(2 ** (width - 1)), 2 ** (width - 1) - 1, -1, 1, 2, 3, -7]
        out = [r.choice([r.randrange(-(2 ** (width - 1)), 2 ** (width - 1)), r.randrange(-9, 10)]) for _ in range(N)]
    else:
        edges = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.5, -2.5, 2.5, 0.5, -0.5, 1e30 if t != "f16" else 6e4]
        out = [r.gauss(0, 1) * 10 ** r.randrange(-3, 4) for _ in range(N)]
    return [x if x else 1 for x in (edges + out)[:N]] if t[0] == "i" else (edges + out)[:N]


@dataclass
class Law:
    """``line`` computes %r from %a, %b (and %c); ``python`` says what it is for one element."""

    name: str
    ins: tuple[str, ...]
    out: str
    line: str
    python: Any
    mutant: str | Any


def binary(op, t, python, mutant, out=None, words=""):
    return Law(op, (t, t), out or t, f"    %r = {op}{words} %a, %b : tensor<{N}x{t}>", python, mutant)


def compare(word, t, python, mutant_word):
    line = f"    %m = arith.cmpi {word}, %a, %b : tensor<{N}x{t}>\n{WIDEN}"

    def mutant(ev, op, a, b):
        return BEFORE["arith.cmpi"](ev, replace(op, attrs={"words": (mutant_word,)}), a, b)

    return Law("arith.cmpi", (t, t), "i8", line, python, mutant)


def compare_float(word, python, mutant_word):
    line = f"    %m = arith.cmpf {word}, %a, %b : tensor<{N}xf32>\n{WIDEN}"
    law = compare("eq", "i32", python, "ne")

    def mutant(ev, op, a, b):
        return ev.domain.compare(mutant_word, a, b, op.loc)

    return Law("arith.cmpf", ("f32", "f32"), "i8", line, law.python, mutant)


def cast(op, source, target, python, mutant):
    return Law(
        op, (source,), target, f"    %r = {op} %a : tensor<{N}x{source}> to tensor<{N}x{target}>", python, mutant
    )


def shift(python, width):
    return lambda a, b: wrap(python(a, u(b, width)), width)


def f32(x):
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def saturate(x, low, high):
    return 0 if math.isnan(x) else int(max(low, min(high, x if math.isinf(x) else math.trunc(x))))


def maxnum(a, b):
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b)


def with_nan(fn):
    return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else fn(a, b)


BEFORE = dict(RULES)
LAWS = [
    binary("arith.addi", "i32", lambda a, b: wrap(a + b, 32), "arith.subi"),
    binary("arith.subi", "i64", lambda a, b: wrap(a - b, 64), "arith.addi"),
    binary("arith.muli", "i32", lambda a, b: wrap(a * b, 32), "arith.addi"),
    binary("arith.muli", "i8", lambda a, b: wrap(a * b, 8), "arith.andi"),
    binary("arith.andi", "i32", lambda a, b: a & b, "arith.ori"),
    binary("arith.ori", "i32", lambda a, b: a | b, "arith.xori"),
    binary("arith.xori", "i32", lambda a, b: a ^ b, "arith.ori"),
    binary("arith.divsi", "i32", lambda a, b: wrap(trunc_div(a, b), 32), "arith.floordivsi"),
    binary("arith.remsi", "i32", lambda a, b: a - trunc_div(a, b) * b, lambda ev, op, a, b: torch.remainder(a, b)),
    binary("arith.divui", "i32", lambda a, b: wrap(u(a, 32) // u(b, 32), 32), "arith.divsi"),
    binary("arith.divui", "i64", lambda a, b: wrap(u(a, 64) // u(b, 64), 64), "arith.divsi"),
    binary("arith.remui", "i32", lambda a, b: wrap(u(a, 32) % u(b, 32), 32), "arith.remsi"),
    binary("arith.remui", "i64", lambda a, b: wrap(u(a, 64) % u(b, 64), 64), "arith.remsi"),
    binary("arith.floordivsi", "i16", lambda a, b: wrap(a // b, 16), "arith.divsi"),
    binary("arith.ceildivsi", "i16", lambda a, b: wrap(-(-a // b), 16), "arith.divsi"),
    binary("arith.shli", "i32", shift(lambda a, n: a << n if n < 32 else 0, 32), "arith.shrui"),
    binary("arith.shrsi", "i32", shift(lambda a, n: a >> min(n, 31), 32), "arith.shrui"),
    binary("arith.shrui", "i32", shift(lambda a, n: u(a, 32) >> n if n < 32 else 0, 32), "arith.shrsi"),
    binary("arith.shrui", "i64", shift(lambda a, n: u(a, 64) >> n if n < 64 else 0, 64), "arith.shrsi"),
    binary("arith.maxsi", "i32", max, "arith.maxui"),
    binary("arith.minsi", "i32", min, "arith.minui"),
    binary("arith.maxui", "i32", lambda a, b: max(a, b, key=lambda x: u(x, 32)), "arith.maxsi"),
    binary("arith.minui", "i64", lambda a, b: min(a, b, key=lambda x: u(x, 64)), "arith.minsi"),
    binary("tt.mulhiui", "i32", lambda a, b: wrap(u(a, 32) * u(b, 32) >> 32, 32), "arith.muli"),
    binary("tt.mulhiui", "i64", lambda a, b: wrap(u(a, 64) * u(b, 64) >> 64, 64), "arith.muli"),
    compare("slt", "i32", lambda a, b: int(a < b), "ult"),
    compare("sge", "i64", lambda a, b: int(a >= b), "sgt"),
    compare("ult", "i32", lambda a, b: int(u(a, 32) < u(b, 32)), "slt"),
    compare("uge", "i64", lambda a, b: int(u(a, 64) >= u(b, 64)), "sge"),
    compare("eq", "i8", lambda a, b: int(a == b), "sle"),
    compare_float("olt", lambda a, b: int(a < b), "ult"),
    compare_float("une", lambda a, b: int(a != b), "one"),
    compare_float("ugt", lambda a, b: int(not a <= b), "ogt"),
    compare_float("one", lambda a, b: int(a < b or a > b), "une"),
    compare_float("uno", lambda a, b: int(a != a or b != b), "ord"),
    cast("arith.extsi", "i8", "i32", lambda a: a, "arith.extui"),
    cast("arith.extui", "i8", "i32", lambda a: u(a, 8), "arith.extsi"),
    cast("arith.extui", "i32", "i64", lambda a: u(a, 32), "arith.extsi"),
    cast("arith.trunci", "i32", "i8", lambda a: wrap(a, 8), lambda ev, op, x: x.clamp(-128, 127).to(torch.int8)),
    cast("arith.sitofp", "i32", "f32", lambda a: f32(float(a)), "arith.uitofp"),
    cast("arith.uitofp", "i32", "f64", lambda a: float(u(a, 32)), "arith.sitofp"),
    cast("arith.uitofp", "i64", "f64", lambda a: float(u(a, 64)), "arith.sitofp"),
    cast("arith.fptosi", "f32", "i32", lambda a: saturate(a, -(2**31), 2**31 - 1), "arith.fptoui"),
    cast("arith.fptosi", "f64", "i64", lambda a: saturate(a, -(2**63), 2**63 - 1), "arith.fptoui"),
    cast("arith.fptoui", "f32", "i32", lambda a: wrap(saturate(a, 0, 2**32 - 1), 32), "arith.fptosi"),
    cast("arith.truncf", "f64", "f32", f32, lambda ev, op, x: ev.domain.cast(x, *_types(ev, op), "rtz", "")),
    cast("arith.extf", "f32", "f64", lambda a: a, lambda ev, op, x: x.half().double()),
    binary("arith.addf", "f32", lambda a, b: f32(a + b), "arith.subf"),
    binary("arith.subf", "f32", lambda a, b: f32(a - b), "arith.addf"),
    binary("arith.mulf", "f32", lambda a, b: f32(a * b), "arith.divf"),
    binary("arith.divf", "f32", with_nan(lambda a, b: f32(_div(a, b))), "arith.mulf"),
    binary("arith.remf", "f64", with_nan(lambda a, b: _fmod(a, b)), lambda ev, op, a, b: torch.remainder(a, b)),
    binary("arith.maxnumf", "f32", maxnum, "arith.maximumf"),
    binary("arith.minnumf", "f32", lambda a, b: -maxnum(-a, -b), "arith.minimumf"),
    binary("arith.maximumf", "f32", with_nan(max), "arith.maxnumf"),
    binary("arith.minimumf", "f32", with_nan(min), "arith.minnumf"),
]


def _types(ev, op):
    return ev.types[op.operands[0]], op.type


def _div(a, b):
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _fmod(a, b):
    return math.nan if math.isinf(a) or b == 0 else math.fmod(a, b)


def holds(law, rules=None):
    values = [numbers(t, f"{law.name}{i}") for i, t in enumerate(law.ins)]
    if len(law.ins) == 2 and "sh" in law.name:
        values[1] = [x % 70 for x in values[1]]
    elif len(law.ins) == 2:
        values[1] = values[1][1:] + values[1][:1]
    inputs, got = evaluate(law.ins, law.out, law.line, values, rules)
    for row in zip(*(t.tolist() for t in inputs), got.tolist(), strict=True):
        expected = law.python(*row[:-1])
        same = row[-1] == expected or (row[-1] != row[-1] and expected != expected)
        if not same:
            return f"{law.name}{row[:-1]} gave {row[-1]}, expected {expected}"
    return ""


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.name}-{law.ins[0]}-{law.line.split()[3].strip(',%')}")
def test_law_holds_and_mutant_breaks_it(law):
    assert holds(law) == ""
    assert holds(law, {law.name: as_rule(law.mutant)}) != ""


def as_rule(mutant):
    """The rule of another operation, made to believe that it was asked for."""
    if not isinstance(mutant, str):
        return mutant
    rule = BEFORE[mutant]
    return lambda ev, op, *args: rule(ev, replace(op, name=mutant), *args)


def test_division_by_zero_is_recorded_and_does_not_crash():
    p = program(("i32", "i32"), "i32", f"    %r = arith.divsi %a, %b : tensor<{N}xi32>")
    a, b, o = (
        torch.full((N,), 7, dtype=torch.int32),
        torch.arange(N, dtype=torch.int32),
        torch.zeros(N, dtype=torch.int32),
    )
    result = launch.evaluate(p, ("a", "b", "o"), (1, 1, 1), [a, b, o], Machine())
    assert [(x.kind, x.count) for x in result.undefined] == [("integer division by zero", 1)]
    assert o[1:9].tolist() == [7, 3, 2, 1, 1, 1, 1, 0]


def test_smallest_integer_over_minus_one_wraps():
    _, out = evaluate(
        ("i32", "i32"), "i32", f"    %r = arith.divsi %a, %b : tensor<{N}xi32>", [[-(2**31)] * N, [-1] * N]
    )
    assert out[0] == -(2**31)


def test_truncation_toward_zero_in_every_narrow_type():
    for target, step in (("f16", 2.0**-10), ("bf16", 2.0**-7)):
        line = f"    %r = tt.fp_to_fp %a, rounding = rtz : tensor<{N}xf32> -> tensor<{N}x{target}>"
        values = [1 + 0.9 * step, -1 - 0.9 * step] * (N // 2)
        _, out = evaluate(("f32",), target, line, [values])
        assert out[:2].tolist() == [1.0, -1.0]


def test_bf16_and_f16_arithmetic_rounds_once_an_operation():
    for t in ("f16", "bf16"):
        values = [numbers("f32", s)[11:] + [1.0] * 11 for s in "xy"]
        inputs, out = evaluate((t, t), t, f"    %r = arith.mulf %a, %b : tensor<{N}x{t}>", values)
        assert torch.equal(out, (inputs[0].double() * inputs[1].double()).to(TORCH[t]))


def test_an_unknown_operation_is_unsupported_with_its_line():
    from tilewright.errors import Unsupported

    with pytest.raises(Unsupported, match=r"operation arith\.frobnicate") as e:
        evaluate(("i32",), "i32", f"    %r = arith.frobnicate %a : tensor<{N}xi32>", [[1] * N])
    assert e.value.where == "ttir:9"
