"""Rules for torch operations over a domain: one function an operation, found by its aten name without overload.

    @rule("rsqrt")
    def rsqrt(c, x): return c.apply("rsqrt", x)

``c`` is a Context: the domain's arithmetic, the source line, and the sizes and dtypes of the results. A rule gets
Values and plain Python arguments in the order of the aten schema, and returns float data (or integer tensors), one or
a tuple. The same rules serve kernels and references. What has no rule is lowered by ``readers/fx.py`` to operations
that have one; what has none then is Unsupported.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function as the rule of the named operations."""

    def register(fn: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two rules for aten.{name}")
            RULES[name] = fn
        return fn

    return register


def load() -> dict[str, Rule]:
    """All rules, after reading every module of this folder."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return RULES
