"""What a piece of C reads and writes: arrays with their subscripts as polynomials, scalars by name.

Where that can't be told for certain (a pointer that moves, a call of something unknown, a jump) ``trouble`` says so, and
a rewrite that needs to know is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ._c import Node, Source, bare, enclosing, walk
from ._poly import Poly, poly

PURE = {"exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "fabs", "fmax", "fmin", "tanh", "erf", "pow", "fma",
        "sin", "cos", "floor", "ceil", "round", "copysign", "isnan", "isinf", "isfinite", "signbit"}  # fmt: skip
JUMPS = {"break_statement", "continue_statement", "goto_statement", "return_statement", "while_statement",
         "do_statement", "switch_statement", "preproc_if", "preproc_ifdef"}  # fmt: skip


@dataclass(frozen=True)
class Access:
    """One read or write of an array element; ``index`` is None where it is no polynomial. ``op``: ``=``, ``+=``, …"""

    array: str
    index: Poly | None
    write: bool
    op: str
    node: Node


@dataclass
class Facts:
    """``changed``: scalars that are assigned and were declared outside; ``own``: names declared inside."""

    accesses: list[Access] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    trouble: str = ""

    def arrays(self, write: bool) -> set[str]:
        return {a.array for a in self.accesses if a.write == write}


def facts(source: Source, *nodes: Node) -> Facts:
    """What the nodes read and write."""
    seen = _Reader(source)
    for n in nodes:
        seen.declare(n)
    for n in nodes:
        seen.visit(n)
    seen.out.changed -= seen.out.own
    return seen.out


class _Reader:
    def __init__(self, source: Source):
        self.source = source
        self.out = Facts()
        self.known: dict[str, Poly] = {}
        self.varied: set[str] = set()

    def declare(self, node: Node) -> None:
        for n in walk(node):
            if n.type == "init_declarator" or (n.type == "identifier" and n.parent and n.parent.type == "declaration"):
                d = n.child_by_field_name("declarator") if n.type == "init_declarator" else n
                names = [x for x in walk(d) if x.type == "identifier"]
                if names:
                    self.out.own.add(self.source.text(names[0]))
            elif n.type in ("assignment_expression", "update_expression"):
                field_ = "left" if n.type == "assignment_expression" else "argument"
                self.varied.add(self.source.text(n.child_by_field_name(field_)))
            elif n.type == "array_declarator":
                self.out.own.add(self.source.text(n.child_by_field_name("declarator")))

    def trouble(self, node: Node, words: str) -> None:
        self.out.trouble = self.out.trouble or f"line {self.source.line(node)}: {words}"

    def visit(self, node: Node) -> None:
        text = self.source.text
        if node.type in JUMPS:
            self.trouble(node, f"'{text(node).split(maxsplit=1)[0]}' leaves the straight path")
        elif node.type == "assignment_expression":
            left, op = node.child_by_field_name("left"), text(node.child_by_field_name("operator"))
            self.target(left, op)
            self.visit(node.child_by_field_name("right"))  # type: ignore[arg-type]
        elif node.type == "update_expression":
            self.target(node.child_by_field_name("argument"), "+=")
        elif node.type == "subscript_expression" or _star(text, node):
            self.element(node, write=False, op="")
        elif node.type == "call_expression":
            self.call(node)
        elif node.type == "init_declarator":
            self.made(node)
        elif node.type == "pointer_expression":
            self.trouble(node, f"the address in '{text(node)}' is not followed")
        elif node.type == "identifier":
            self.name(node)
        elif node.type != "preproc_call":
            for c in node.named_children:
                self.visit(c)

    def name(self, node: Node) -> None:
        name = self.source.text(node)
        self.out.read.add(name)
        if is_pointer(self.source, node, name):
            self.trouble(node, f"the pointer '{name}' is used other than by a subscript")

    def made(self, node: Node) -> None:
        """A declaration with a value: whole numbers are followed into subscripts."""
        declared, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if declared is None or value is None:
            return
        if declared.type == "pointer_declarator":
            return
        self.visit(value)
        name = self.source.text(declared)
        if name not in self.varied and (p := poly(self.source, value, self.known)) is not None:
            self.known[name] = p

    def target(self, node: Node | None, op: str) -> None:
        node = bare(node)
        if node is None:
            return
        if node.type == "identifier":
            name = self.source.text(node)
            if is_pointer(self.source, node, name):
                self.trouble(node, f"the pointer '{name}' moves")
            self.out.changed.add(name)
            if op != "=":
                self.out.read.add(name)
        elif node.type == "subscript_expression" or _star(self.source.text, node):
            self.element(node, write=True, op=op)
        else:
            self.trouble(node, f"'{self.source.text(node)}' is assigned to")

    def element(self, node: Node, *, write: bool, op: str) -> None:
        base = bare(node.child_by_field_name("argument"))
        inside = node.child_by_field_name("index")
        if base is None or base.type != "identifier":
            return self.trouble(node, f"'{self.source.text(node)}' is not a name with one subscript")
        found = resolve(self.source, node, self.source.text(base))
        if isinstance(found, str):
            return self.trouble(node, found)
        index = Poly.constant(0) if inside is None else poly(self.source, inside, self.known)
        if index is not None:
            index = index + found[1]
        if index is None or index.names & (self.varied | self._unknown()):
            index = None
        self.out.accesses.append(Access(found[0], index, write, op, node))
        if inside is not None:
            self.visit(inside)

    def _unknown(self) -> set[str]:
        """Names declared inside whose value is not followed, variables of inner loops among them."""
        return {n for n in self.out.own if n not in self.known}

    def call(self, node: Node) -> None:
        callee = self.source.text(node.child_by_field_name("function"))
        if not pure(self.source, callee):
            self.trouble(node, f"'{callee}' is called, which is not known to be free of effects")
        for a in node.child_by_field_name("arguments").named_children:  # type: ignore[union-attr]
            self.visit(a)


def _star(text: object, node: Node) -> bool:
    return node.type == "pointer_expression" and node.children[0].type == "*"


def pure(source: Source, name: str) -> bool:
    """Whether a call has no effect but its result: known functions, and own ones that touch nothing but their values."""
    if name.removesuffix("f") in PURE or name in PURE:
        return True
    for n in source.root.children:
        if n.type == "preproc_function_def" and source.text(n.child_by_field_name("name")) == name:
            body = source.text(n.child_by_field_name("value"))
            return not re.search(r"(?<![=<>!])=(?!=)|\+\+|--|\w\s*\(|\[", body)
    function = source.functions.get(name)
    if function is None or any(p.pointer for p in source.parameters(function)):
        return False
    return not any(n.type in ("subscript_expression", "pointer_expression", "storage_class_specifier", "goto_statement")
                   or (n.type == "call_expression" and not _other_pure(source, n, name))
                   for n in walk(function.child_by_field_name("body"))) and not _globals(source, function)  # fmt: skip


def _other_pure(source: Source, node: Node, name: str) -> bool:
    callee = source.text(node.child_by_field_name("function"))
    return callee != name and pure(source, callee)


def _globals(source: Source, function: Node) -> set[str]:
    """Names that a function assigns and does not declare."""
    own = {p.name for p in source.parameters(function)}
    reader = _Reader(source)
    body = function.child_by_field_name("body")
    reader.declare(body)  # type: ignore[arg-type]
    changed = {source.text(n.child_by_field_name("left")) for n in walk(body) if n.type == "assignment_expression"}
    return changed - own - reader.out.own


def is_pointer(source: Source, node: Node, name: str) -> bool:
    found = resolve(source, node, name)
    return isinstance(found, str) or found[0] != "" if found is not None else False


def resolve(source: Source, node: Node, name: str) -> tuple[str, Poly] | str:
    """Base array and offset that a pointer stands for at a place, ("", 0) for what is no pointer, or why it can't be
    told. ``const float *row = x + i * N`` → ``("x", i*N)``."""
    made = _declaration(source, node, name)
    if made is None:
        return ("", Poly.constant(0)) if not name else _outer(source, node, name)
    if made.type == "array_declarator":
        return name, Poly.constant(0)
    declared = made.child_by_field_name("declarator")
    if declared is not None and declared.type == "array_declarator":
        return name, Poly.constant(0)
    if declared is None or declared.type != "pointer_declarator":
        return "", Poly.constant(0)
    if _moves(source, enclosing(node), name):
        return f"the pointer '{name}' moves"
    return _offset(source, made.child_by_field_name("value"), name)


def _offset(source: Source, value: Node | None, name: str) -> tuple[str, Poly] | str:
    value = bare(value)
    unknown = f"where the pointer '{name}' points to is not followed"
    if value is None:
        return unknown
    if value.type == "identifier":
        return resolve(source, value, source.text(value))
    if value.type == "pointer_expression" and value.children[0].type == "&":
        inner = bare(value.child_by_field_name("argument"))
        if inner is None or inner.type != "subscript_expression":
            return unknown
        left, right = inner.child_by_field_name("argument"), inner.child_by_field_name("index")
    elif value.type == "binary_expression" and source.text(value.child_by_field_name("operator")) == "+":
        left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
    else:
        return unknown
    base, more = _offset(source, left, name), poly(source, right)
    if isinstance(base, str) or more is None or not base[0]:
        return base if isinstance(base, str) else unknown
    return base[0], base[1] + more


def _outer(source: Source, node: Node, name: str) -> tuple[str, Poly]:
    pointers = {p.name for p in source.parameters(enclosing(node)) if p.pointer}
    return (name if name in pointers else "", Poly.constant(0))


def _declaration(source: Source, node: Node, name: str) -> Node | None:
    """The nearest declarator of a name before a place, in the blocks and loops around it."""
    here: Node | None = node
    while here is not None and here.parent is not None and here.type != "function_definition":
        found = None
        for c in here.parent.children:
            if c.start_byte >= here.start_byte:
                break
            if c.type == "declaration":
                for d in c.children:
                    names = [x for x in walk(d) if x.type == "identifier"] if "declarator" in d.type else (
                        [d] if d.type == "identifier" else [])  # fmt: skip
                    if names and source.text(names[0]) == name:
                        found = d
        if found is not None:
            return found
        here = here.parent
    return None


def _moves(source: Source, function: Node, name: str) -> bool:
    return any(
        (n.type == "assignment_expression" and source.text(n.child_by_field_name("left")) == name)
        or (n.type == "update_expression" and source.text(n.child_by_field_name("argument")) == name)
        for n in walk(function)
    )
