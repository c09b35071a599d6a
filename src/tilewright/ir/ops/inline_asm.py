"""Inline PTX over 32-bit floats, element by element: straight-line code with predicates and registers. Anything else
(other types, integers, memory, special registers, branches, several elements packed in one) is Unsupported.

Each instruction is the domain's own function, so inline code has a meaning in every domain. An instruction under a
predicate keeps the old value where the predicate is false.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from ...errors import Unsupported
from ..program import Op, Type
from . import rule

_FLOAT = {"tanh": "tanh", "ex2": "exp2", "lg2": "log2", "rsqrt": "rsqrt", "rcp": "rcp", "sqrt": "sqrt", "sin": "sin",
          "cos": "cos", "add": "add", "sub": "sub", "mul": "mul", "fma": "fma", "div": "div", "max": "maxnum",
          "min": "minnum", "abs": "abs", "neg": "neg"}  # fmt: skip
_COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "one",
            "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "equ": "ueq", "neu": "une"}  # fmt: skip
_TYPES = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64"}
_MODIFIERS = {"approx", "ftz", "rn", "full"}
_LINE = re.compile(r"^(?:@(!?)(\w+)\s+)?(\w+)((?:\.\w+)*)\s+(.+)$")
_LITERAL = re.compile(r"^-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|0[fF][0-9a-fA-F]{8})$")


@rule("tt.elementwise_inline_asm")
def inline_asm(ev: Any, op: Op, *args: Any) -> Any:
    text = " ".join(str(op.attrs.get("asm_string", op.attrs.get("text", ""))).split()).strip(" ;")
    if re.fullmatch(r"cvt\.rna\.tf32\.f32 \$0, \$1", text) and ev.domain.name == "machine":
        from ..domains.machine import tf32_nearest

        return tf32_nearest(args[0])
    if int(op.attrs.get("packed_element", 1)) == 1 and len(op.results) == 1 and op.type.is_float:
        code = Code(ev.domain, op, args)
        lines = [line for line in (part.strip() for part in re.split(r"[;{}]", text)) if line]
        if all(code.run(line) for line in lines) and "$0" in code.registers:
            return code.registers["$0"]
    raise Unsupported(f"inline assembly '{text[:120]}'", where=op.loc)


class Code:
    """Registers by name while inline code runs."""

    def __init__(self, domain: Any, op: Op, args: tuple[Any, ...]):
        self.domain, self.op = domain, op
        self.registers: dict[str, Any] = {f"${i + 1}": a for i, a in enumerate(args)}
        self.predicates: dict[str, Any] = {}

    def run(self, line: str) -> bool:
        """One instruction; False where it has no meaning here."""
        m = _LINE.match(line)
        if m is None:
            return re.match(r"^\.reg \.(pred|f32) [\w, ]+$", line) is not None
        negated, guard, name, rest, operands = m.groups()
        kinds = [k for k in rest.split(".") if k]
        if not kinds or kinds[-1] not in _TYPES or (guard is not None and guard not in self.predicates):
            return False
        type_ = Type(_TYPES[kinds[-1]])
        target, *sources = (s.strip() for s in operands.split(","))
        values = [self.read(s, type_) for s in sources]
        if any(v is None for v in values):
            return False
        if name == "setp" and len(kinds) == 2 and kinds[0] in _COMPARE and guard is None and len(values) == 2:
            self.predicates[target] = self.domain.compare(_COMPARE[kinds[0]], *values, self.op.loc)
            return True
        if name == "mov" and len(values) == 1 and len(kinds) == 1:
            made = values[0]
        elif name in _FLOAT and set(kinds[:-1]) <= _MODIFIERS:
            made = self.domain.apply(_FLOAT[name], type_, tuple(values), self.op.loc)
        else:
            return False
        return self.write(target, made, guard, bool(negated))

    def read(self, name: str, type_: Type) -> Any:
        """A register's value or a literal's."""
        if _LITERAL.match(name):
            number = struct.unpack(">f", bytes.fromhex(name[2:]))[0] if name[:2] in ("0f", "0F") else float(name)
            return self.domain.constant(number, type_, self.op.loc)
        return self.registers.get(name)

    def write(self, target: str, made: Any, guard: str | None, negated: bool) -> bool:
        """Under a predicate, the old value stays where it is false (anything may stand where there was none)."""
        if guard is not None:
            mask = self.predicates[guard]
            old = self.registers.get(target, made)
            made = self.domain.select(mask, old, made) if negated else self.domain.select(mask, made, old)
        self.registers[target] = made
        return True
