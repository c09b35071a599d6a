"""Parsing Python source, one thread at a time.

CPython 3.11 counts the depth of its syntax trees per interpreter, not per thread: two threads that parse at once can end in
``SystemError: AST constructor recursion depth mismatch``. Audits work in threads, so every parse goes through here.
"""

from __future__ import annotations

import ast
import threading
import traceback
from functools import lru_cache

_lock = threading.Lock()


def parse(source: str, filename: str = "<source>") -> ast.Module:
    """Syntax tree of a module. Raises SyntaxError."""
    with _lock:
        return ast.parse(source, filename=filename)


@lru_cache(maxsize=4096)
def expression(source: str) -> ast.expr:
    """Syntax tree of one expression; shared, so not to be changed. Raises SyntaxError."""
    with _lock:
        return ast.parse(source, mode="eval").body


def shown(error: SyntaxError) -> str:
    """The line at fault with a caret under the place, as Python shows it; empty where the line is not known."""
    lines = traceback.format_exception_only(error)
    return "".join(lines[1:-1]).rstrip("\n")
