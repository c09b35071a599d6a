"""Inline PTX of one instruction, element by element. Anything longer is Unsupported."""

from __future__ import annotations

import re
from typing import Any

from ...errors import Unsupported
from ..program import Op
from . import rule

_FLOAT = {"tanh": "tanh", "ex2": "exp2", "lg2": "log2", "rsqrt": "rsqrt", "rcp": "rcp", "sqrt": "sqrt", "sin": "sin",
          "cos": "cos", "add": "add", "sub": "sub", "mul": "mul", "fma": "fma", "div": "div", "max": "maxnum",
          "min": "minnum", "abs": "abs", "neg": "neg"}  # fmt: skip
_SHAPE = re.compile(r"^(\w+)((?:\.\w+)*)\.(f16|bf16|f32|f64) \$0((?:, \$\d+)+)$")
_MODIFIERS = {"approx", "ftz", "rn", "full"}


@rule("tt.elementwise_inline_asm")
def inline_asm(ev: Any, op: Op, *args: Any) -> Any:
    text = " ".join(str(op.attrs.get("asm_string", op.attrs.get("text", ""))).split()).rstrip(";").strip()
    m = _SHAPE.match(text)
    pack = int(op.attrs.get("packed_element", 1))
    if m and pack == 1 and m.group(1) in _FLOAT and set(m.group(2).split(".")) - {""} <= _MODIFIERS:
        order = [int(i) - 1 for i in re.findall(r"\$(\d+)", m.group(4))]
        if max(order) < len(args):
            return ev.domain.apply(_FLOAT[m.group(1)], op.type, tuple(args[i] for i in order), op.loc)
    if re.fullmatch(r"cvt\.rna\.tf32\.f32 \$0, \$1", text) and ev.domain.name == "machine":
        from ..domains.machine import tf32_nearest

        return tf32_nearest(args[0])
    raise Unsupported(f"inline assembly '{text[:120]}'", where=op.loc)
