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
            yield Site(call.lineno, "warps and stages as parameters", _named(module, call))


def _named(module: Module, call: ast.Call) -> str:
    """The options on lines of their own, after what the call is given; comments there stay where they are."""
    close = module.span(call)[1] - 1
    given = [*call.args, *(k.value for k in call.keywords)]
    last = max((module.span(a)[1] for a in given), default=close)
    tail = module.text[last:close]
    comma = "" if not given or "," in tail.partition("#")[0] else ","
    pad = "\n" + " " * (call.col_offset + 4)
    lines = "".join(f"{pad}{n}={v}" for n, v in OPTIONS.items()) + "\n" + " " * call.col_offset
    return module.edit((last, close, comma + tail.rstrip() + lines))


SKILL = Launch()
