"""C source as a syntax tree with the place of each node, so that a rewrite changes the text where it means to and leaves
comments, macros and layout alone.

Tree-sitter is the parser: it keeps every byte, reads a file that was not preprocessed, and says where it was not sure.
(pycparser wants preprocessed text and prints the file anew, without comments and macros, which is where parameters are
declared.) Files in which it met an error are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...errors import EnvironmentProblem

if TYPE_CHECKING:
    from tree_sitter import Node
else:
    Node = Any


def parser() -> Any:
    """Raises EnvironmentProblem where tree-sitter is not installed."""
    try:
        import tree_sitter_c
        from tree_sitter import Language, Parser
    except ImportError:
        raise EnvironmentProblem("rewriting C needs tree-sitter, which is not installed",
                                 remedy="pip install 'tilewright[search]'") from None  # fmt: skip
    return Parser(Language(tree_sitter_c.language()))


class Source:
    """A parsed C file."""

    def __init__(self, text: str):
        self.raw = text.encode()
        self.tree = parser().parse(self.raw)
        self.root: Node = self.tree.root_node

    @property
    def readable(self) -> bool:
        return not self.root.has_error

    def text(self, node: Node | None) -> str:
        return "" if node is None else self.raw[node.start_byte : node.end_byte].decode()

    def line(self, node: Node) -> int:
        return int(node.start_point[0]) + 1

    def indent(self, node: Node) -> str:
        start = self.raw.rfind(b"\n", 0, node.start_byte) + 1
        return re.match(r"[ \t]*", self.raw[start : node.start_byte].decode())[0]  # type: ignore[index]

    def edit(self, *edits: tuple[int, int, str]) -> str:
        """The text with spans (bytes) replaced; they must not overlap."""
        raw = self.raw
        for start, end, new in sorted(edits, reverse=True):
            raw = raw[:start] + new.encode() + raw[end:]
        return raw.decode()

    @cached_property
    def functions(self) -> dict[str, Node]:
        found = {}
        for f in self.root.children:
            if f.type == "function_definition":
                names = [n for n in walk(f.child_by_field_name("declarator")) if n.type == "identifier"]
                found[self.text(names[0])] = f
        return found

    def exported(self) -> list[Node]:
        """Functions that are not ``static``: those that a kernel file is called by."""
        return [f for f in self.functions.values() if not any(self.text(c) == "static" for c in f.children)]

    def parameters(self, function: Node) -> list[Parameter]:
        head = next(n for n in walk(function.child_by_field_name("declarator")) if n.type == "parameter_list")
        return [self._parameter(p) for p in head.children if p.type == "parameter_declaration"]

    def _parameter(self, node: Node) -> Parameter:
        inner = [n for n in walk(node) if n.type == "identifier"]
        stars = [n for n in walk(node) if n.type == "*"]
        return Parameter(self.text(inner[-1]) if inner else "", self.text(node.child_by_field_name("type")),
                         bool(stars), any(self.text(c) == "const" for c in node.children),
                         "restrict" in self.text(node), node)  # fmt: skip

    def head_end(self, node: Node) -> int:
        """The byte behind the closing parenthesis of a loop's head."""
        return int(next(c.end_byte for c in node.children if c.type == ")"))

    def fresh(self, name: str) -> str:
        """A name that the file does not use yet."""
        taken = {self.text(n) for n in walk(self.root) if n.type in ("identifier", "type_identifier")}
        return next(n for n in (name, *(f"{name}_{i}" for i in range(2, 1000))) if n not in taken)

    def renamed(self, node: Node, names: dict[str, str]) -> str:
        """The node's text with identifiers replaced."""
        start = node.start_byte
        raw = self.raw[start : node.end_byte]
        for n in sorted((n for n in walk(node) if n.type == "identifier"), key=lambda n: -n.start_byte):
            if (new := names.get(self.text(n))) is not None:
                raw = raw[: n.start_byte - start] + new.encode() + raw[n.end_byte - start :]
        return raw.decode()

    def top(self) -> int:
        """Where new file-level definitions go: behind the last ``#include``, at the start of a line."""
        ends = [n.end_byte for n in self.root.children if n.type == "preproc_include"]
        return ends[-1] if ends else 0


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function. ``const``: what it points to is only read."""

    name: str
    type: str
    pointer: bool
    const: bool
    restrict: bool
    node: Node


def walk(node: Node | None) -> Iterator[Node]:
    """The node and all below it, in the order of the text."""
    if node is None:
        return
    yield node
    for c in node.children:
        yield from walk(c)


def bare(node: Node | None) -> Node | None:
    """Without the parentheses and casts around it."""
    while node is not None and node.type in ("parenthesized_expression", "cast_expression"):
        inner = node.child_by_field_name("value") if node.type == "cast_expression" else node.named_children[0]
        node = inner
    return node


def statements(body: Node) -> list[Node]:
    """Statements of a block, or the statement itself; comments left out."""
    if body.type == "compound_statement":
        return [c for c in body.named_children if c.type != "comment"]
    return [body]


@dataclass(frozen=True)
class Loop:
    """``for (TYPE var = low; var < high; var += step) body``; bounds as text."""

    node: Node
    type: str
    var: str
    low: str
    high: str
    step: str
    body: Node
    high_node: Node
    low_node: Node

    @property
    def unit(self) -> bool:
        return self.step == "1"

    def head(self, low: str = "", high: str = "", step: str = "", var: str = "") -> str:
        v, s = var or self.var, step or self.step
        update = f"{v}++" if s == "1" else f"{v} += {s}"
        return f"for ({self.type} {v} = {low or self.low}; {v} < {high or self.high}; {update})"


def loop(source: Source, node: Node) -> Loop | str:
    """A ``for`` in the form that rewrites understand, or why it isn't."""
    text = source.text
    start, test, update = (node.child_by_field_name(n) for n in ("initializer", "condition", "update"))
    body = node.child_by_field_name("body")
    if start is None or start.type != "declaration":
        return "the loop does not declare its variable (for (int64_t i = …))"
    made = start.child_by_field_name("declarator")
    if made is None or made.type != "init_declarator":
        return "the loop gives its variable no value to start from"
    var = text(made.child_by_field_name("declarator"))
    if test is None or test.type != "binary_expression" or text(test.child_by_field_name("left")) != var:
        return f"the loop does not end by comparing '{var}'"
    if text(test.child_by_field_name("operator")) != "<":
        return f"the loop compares by '{text(test.child_by_field_name('operator'))}', not by '<'"
    step = _step(source, update, var)
    if not step:
        return f"the loop changes '{var}' by '{text(update)}', which is no step up"
    if body is None or any(_assigned(source, n) == var for n in walk(body)):
        return f"the loop's body changes '{var}'"
    high = test.child_by_field_name("right")
    low = made.child_by_field_name("value")
    if high is None or low is None:
        return "the loop has no bounds"
    return Loop(node, text(start.child_by_field_name("type")), var, text(low), text(high), step, body, high, low)


def _step(source: Source, update: Node | None, var: str) -> str:
    if update is None:
        return ""
    if update.type == "update_expression":
        same = source.text(update.child_by_field_name("argument")) == var
        return "1" if same and source.text(update.child_by_field_name("operator")) == "++" else ""
    if update.type == "assignment_expression" and source.text(update.child_by_field_name("operator")) == "+=":
        return source.text(update.child_by_field_name("right")) if source.text(update.children[0]) == var else ""
    return ""


def _assigned(source: Source, node: Node) -> str:
    """The variable that an expression changes."""
    if node.type == "assignment_expression":
        return source.text(node.child_by_field_name("left"))
    return source.text(node.child_by_field_name("argument")) if node.type == "update_expression" else ""


def loops(source: Source, within: Node | None = None) -> list[Node]:
    """All ``for`` statements of exported functions, outer ones first."""
    roots: Sequence[Node] = source.exported() if within is None else [within]
    return [n for r in roots for n in walk(r) if n.type == "for_statement"]


def innermost(node: Node) -> bool:
    return not any(
        n.type in ("for_statement", "while_statement", "do_statement") for n in walk(node) if n.id != node.id
    )


def enclosing(node: Node, kind: str = "function_definition") -> Node:
    """The function (or other kind of node) around a node."""
    while node.type != kind and node.parent is not None:
        node = node.parent
    return node
