"""Launch options: warps a program and stages of the software pipeline become declared parameters of the launch.

``f[grid](x, y)`` → ``f[grid](x, y, num_warps=4, num_stages=3)``, each on a line with its choices.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._python import Module, TritonSkill
from ._skill import Found, Refusal, Site

OPTIONS = {"num_warps": "4,  # knob: 1 2 4 8 16", "num_stages": "3,  # knob: 1 2 3 4 5"}


class Launch(TritonSkill):
    name = "t-launch"
    what = "warps and pipeline stages become parameters of the launch"
    holds = "one launch, which does not name them, of a function that no tuner configures"
    keeps = "each value up to the order in which the compiler adds"
    source = "Triton documentation, triton.Config"
    example = ("row_softmax.py", "softmax_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        found = module.launches(function.name)
        line = function.lineno
        if len(found) != 1:
            if found:
                yield Refusal(line, f"'{function.name}' is launched at {len(found)} places")
            return
        call = found[0]
        named = {k.arg for k in call.keywords}
        if any("autotune" in ast.unparse(d) for d in function.decorator_list) or None in named:
            yield Refusal(line, f"'{function.name}' is configured elsewhere")
        elif named & set(OPTIONS):
            yield Refusal(call.lineno, "the launch names its options already")
        else:
            start, end = module.span(call)
            pad = " " * (call.col_offset + 4)
            body = module.text[start : end - 1].rstrip()
            text = body + ("" if body.endswith((",", "(")) else ",") + "".join(
                f"\n{pad}{n}={v}" for n, v in OPTIONS.items()) + "\n" + " " * call.col_offset + ")"  # fmt: skip
            yield Site(call.lineno, "warps and stages as parameters", module.edit((start, end, text)))


SKILL = Launch()
