"""Rules: one function an operation, found by name. Every module of this folder is read; to add an operation, write

    @rule("math.exp2")
    def exp2(ev, op, x): ...

in the file of its family. A rule gets the evaluator, the operation and the operands' values and returns the result, or
a tuple of them where there are several, or None. Control flow is in evaluate.py.
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
                raise ValueError(f"two rules for {name}")
            RULES[name] = fn
        return fn

    return register


def load() -> dict[str, Rule]:
    """All rules, after reading every module of this folder."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return RULES
