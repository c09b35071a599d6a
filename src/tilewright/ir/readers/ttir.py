"""Triton IR text → Program. The only file that knows how Triton prints its IR (seen: Triton 3.6 and 3.9).

The printed text is read rather than libtriton's bindings: it holds dense constants and array attributes that the
bindings don't give, and IR of a Triton that isn't installed can be read too. Regions are found line by line, as MLIR
prints one operation a line.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from ...errors import Unsupported
from ..program import Block, Function, Op, Program, Region, Type
from .ttir_text import (
    Locations,
    hide_strings,
    matching,
    parse_attr,
    parse_dict,
    parse_type,
    parse_types,
    split_top,
    user_frame,
)

_LOC = re.compile(r"\s*loc\(((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)$")
_HEAD = re.compile(r"^((?:%[\w$.\-]+(?::\d+)?(?:, )?)+) = ")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_WORD = re.compile(r"^(?:[a-z_][\w]*(?:, | |$))+")


def read(text: str) -> Program:
    """Program of one Triton module. Raises Unsupported, with the line of the IR, for text it can't read."""
    return _Reader(text).program()


def sha256(text: str) -> str:
    """Content hash of IR text, blind to locations and to value names derived from them."""
    bare = re.sub(r"^#loc.*$", "", re.sub(r" ?loc\((?:[^()]|\([^()]*\))*\)", "", text), flags=re.M)
    return hashlib.sha256(re.sub(r"\n+", "\n", bare).encode()).hexdigest()


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.locations = Locations(text)
        self.lines = text.split("\n")
        self.at = 0
        self.types: list[Type] = []
        self.scopes: list[dict[str, int]] = []

    def program(self) -> Program:
        functions: dict[str, Function] = {}
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line.startswith("tt.func"):
                f = self.function(line)
                functions[f.name] = f
            else:
                self.at += 1
        public = [f for f in functions.values() if f.public]
        if len(public) != 1:
            raise Unsupported(f"Triton IR with {len(public)} public functions", remedy="pass the IR of one kernel")
        return Program(public[0], functions, tuple(self.types), sha256(self.text), self.text)

    # -- values
    def define(self, name: str, type_: Type) -> int:
        self.types.append(type_)
        self.scopes[-1][name] = len(self.types) - 1
        return len(self.types) - 1

    def lookup(self, name: str) -> int:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise self.unreadable(f"value {name} is not defined")

    def unreadable(self, why: str) -> Unsupported:
        line = self.lines[min(self.at, len(self.lines) - 1)].strip()
        return Unsupported(f"Triton IR can't be read: {why}", where=f"ttir:{self.at + 1}", detail=line[:200])

    # -- functions and blocks
    def function(self, line: str) -> Function:
        hidden, strings = hide_strings(line)
        m = re.match(r"tt\.func (public|private)? ?@(\x00\d+\x00|[\w$.\-]+)\(", hidden)
        if not m:
            raise self.unreadable("function header")
        end = matching(hidden, m.end() - 1)
        self.scopes = [{}]
        names, ids, types, attrs = [], [], [], []
        for part in split_top(hidden[m.end() : end]):
            name, _, rest = part.partition(": ")
            rest = rest.split(" loc(")[0].strip()
            brace = rest.find(" {")
            attrs.append(parse_dict(rest[brace + 2 : -1], strings) if brace >= 0 else {})
            type_ = parse_type(rest[:brace] if brace >= 0 else rest)
            names.append(name.strip().lstrip("%"))
            ids.append(self.define(name.strip(), type_))
            types.append(type_)
        name = strings[int(m.group(2)[1:-1])] if m.group(2).startswith("\x00") else m.group(2)
        self.at += 1
        body, _ = self.region(())
        return Function(name, tuple(names), tuple(ids), tuple(types), body, m.group(1) != "private", tuple(attrs))

    def region(self, args: tuple[tuple[str, Type], ...]) -> tuple[Region, str]:
        """Blocks up to the closing brace, and that brace's line. ``args`` belong to the entry block."""
        self.scopes.append({})
        blocks: list[Block] = []
        label = "^bb0"
        ops: list[Op] = []
        ids = tuple(self.define(n, t) for n, t in args)
        arg_types = tuple(t for _, t in args)
        while True:
            if self.at >= len(self.lines):
                raise self.unreadable("a region isn't closed")
            line = self.lines[self.at].strip()
            if line.startswith("}"):
                break
            if line.startswith("^"):
                if ops or ids:
                    blocks.append(Block(label, ids, arg_types, tuple(ops)))
                label, ids, arg_types = self.label(line)
                ops = []
                self.at += 1
            elif not line or line.startswith("//"):
                self.at += 1
            else:
                ops.append(self.op(line))
        blocks.append(Block(label, ids, arg_types, tuple(ops)))
        self.scopes.pop()
        self.at += 1
        return Region(tuple(blocks)), line

    def label(self, line: str) -> tuple[str, tuple[int, ...], tuple[Type, ...]]:
        line = re.sub(r"\s*//.*$", "", line).rstrip(":").rstrip()
        if "(" not in line:
            return line, (), ()
        start = line.index("(")
        args = []
        for part in split_top(line[start + 1 : matching(line, start)]):
            name, _, type_ = part.partition(": ")
            args.append((name.strip(), parse_type(type_.split(" loc(")[0])))
        return line[:start], tuple(self.define(n, t) for n, t in args), tuple(t for _, t in args)

    # -- operations
    def op(self, line: str) -> Op:
        at = self.at
        opens = line.endswith("{") or line.endswith("({")
        loc = ""
        m = _LOC.search(line)
        if m and not opens:
            loc, line = m.group(1), line[: m.start()]
        line, strings = hide_strings(line)
        head = _HEAD.match(line)
        results = head.group(1).split(", ") if head else []
        rest = line[head.end() :] if head else line
        m = re.match(r"(\x00(\d+)\x00|[\w.]+)", rest)
        if not m:
            raise self.unreadable("no operation name")
        name = strings[int(m.group(2))] if m.group(2) else m.group(1)
        rest = rest[m.end() :].strip()
        self.at += 1
        if opens:
            return self.with_regions(name, results, rest, strings, at)
        operands, types, attrs, successors = self.plain(name, rest, strings, len(results))
        frames = self.locations.frames(loc)
        ids = self.results(results, types)
        return Op(name, operands, ids, tuple(types), attrs, (), user_frame(frames), frames, at + 1, successors)

    def results(self, names: list[str], types: list[Type]) -> tuple[int, ...]:
        ids: list[int] = []
        queue = list(types)
        for name in names:
            base, _, count = name.partition(":")
            for i in range(int(count or 1)):
                if not queue:
                    raise self.unreadable(f"no type for result {name}")
                ids.append(self.define(f"{base}#{i}" if count else base, queue.pop(0)))
        return tuple(ids)

    def plain(self, name: str, rest: str, strings: list[str], count: int) -> tuple[Any, ...]:
        if name == "arith.constant":
            return self.constant(rest, strings)
        attrs: dict[str, Any] = {}
        if name.startswith("cf."):
            return self.branch(name, rest)
        body, types_text = _split_types(rest)
        body = self.take_dicts(body, attrs, strings)
        for m in re.finditer(r"(\w+) = (\x00\d+\x00|[\w.]+)", body):
            attrs[m.group(1)] = parse_attr(m.group(2), strings)
        if name == "tt.call":
            m2 = re.match(r"@(\x00\d+\x00|[\w$.\-]+)", body)
            callee = m2.group(1) if m2 else ""
            attrs["callee"] = strings[int(callee[1:-1])] if callee.startswith("\x00") else callee
            body = body[len(callee) + 1 :]
        words = _WORD.match(body)
        if words:
            attrs["words"] = tuple(w for w in re.split(r"[, ]+", words.group(0)) if w)
        quoted = re.search("(?<!= )\x00(\\d+)\x00", body)
        if quoted:
            attrs["text"] = strings[int(quoted.group(1))]
        for flag in ("allow_reorder", "efficient_layout"):
            if re.search(rf"\b{flag}\b", body):
                attrs[flag] = True
        operands = tuple(self.lookup(v) for v in _VALUE.findall(body))
        if name == "tt.dot_scaled":
            attrs["scaled"] = tuple(re.findall(r"%[\w$.\-#]+( scale)?", body.split(" lhs = ")[0]))
        types = self.result_types(name, types_text, operands, count)
        return operands, types, attrs, ()

    def take_dicts(self, body: str, attrs: dict[str, Any], strings: list[str]) -> str:
        """Body without its ``{…}`` and ``<{…}>``, whose attributes go to ``attrs``."""
        while "{" in body:
            start = body.index("{")
            end = matching(body, start)
            attrs.update(parse_dict(body[start + 1 : end], strings))
            left, right = body[:start], body[end + 1 :]
            if left.endswith("<") and right.startswith(">"):
                left, right = left[:-1], right[1:]
            body = f"{left.rstrip()} {right.lstrip()}".strip()
        return body

    def result_types(self, name: str, text: str, operands: tuple[int, ...], count: int) -> list[Type]:
        if count == 0:
            return []
        arrow = split_top(text, " -> ")
        if len(arrow) == 2:
            types = parse_types(arrow[1])
            return types * count if len(types) == 1 else types
        to = split_top(text, " to ")
        if len(to) == 2:
            return [parse_type(to[1])]
        if name == "tt.make_tensor_descriptor":
            return [parse_type("!tt.tensordesc" + split_top(text)[-1])]
        types = parse_types(text)
        if name == "tt.load" and types:
            return [Type(types[0].pointee, types[0].shape)]
        if name in ("arith.cmpi", "arith.cmpf"):
            return [Type("i1", types[0].shape)]
        if name == "tt.addptr":
            return [types[0]]
        if name.endswith("_extended") and len(types) == 1:
            return [types[0], types[0]]
        if not types:
            raise self.unreadable(f"no result type of {name}")
        return types if len(types) == count and count > 1 else [types[-1]]

    def constant(self, rest: str, strings: list[str]) -> tuple[Any, ...]:
        value, _, type_text = rest.rpartition(" : ")
        if not type_text or not value:
            value, type_text = rest, "i1"
        attrs: dict[str, Any] = {}
        if value.startswith("{"):
            end = matching(value, 0)
            attrs, value = parse_dict(value[1:end], strings), value[end + 1 :].strip()
        if value.startswith("dense<"):
            value = value[6:-1]
            if value.startswith("\x00"):
                value = strings[int(value[1:-1])]
        attrs["value"] = value
        return (), [parse_type(type_text)], attrs, ()

    def branch(self, name: str, rest: str) -> tuple[Any, ...]:
        successors = []
        for m in re.finditer(r"(\^bb\d+)(?:\(([^:)]*)(?: : [^)]*)?\))?", rest):
            values = tuple(self.lookup(v) for v in _VALUE.findall(m.group(2) or ""))
            successors.append((m.group(1), values))
        condition = (self.lookup(_VALUE.findall(rest)[0]),) if name == "cf.cond_br" else ()
        return condition, [], {}, tuple(successors)

    def with_regions(self, name: str, results: list[str], rest: str, strings: list[str], at: int) -> Op:
        head = rest.rstrip("{").rstrip("(").rstrip()
        attrs: dict[str, Any] = {}
        entry: tuple[tuple[str, Type], ...] = ()
        second: tuple[tuple[str, Type], ...] = ()
        types: list[Type] = []
        if name == "scf.for":
            operands, entry, types = self.for_header(head, attrs)
        elif name == "scf.while":
            operands, entry, types = self.while_header(head)
        elif name == "scf.if":
            operands = (self.lookup(_VALUE.findall(head)[0]),)
            arrow = split_top(head, " -> ")
            types = parse_types(arrow[1]) if len(arrow) == 2 else []
        else:
            head = self.take_dicts(head, attrs, strings)
            operands = tuple(self.lookup(v) for v in _VALUE.findall(head))
        regions = []
        region, closing = self.region(entry)
        regions.append(region)
        while closing.endswith("{"):
            region, closing = self.region(second)
            regions.append(region)
        m = _LOC.search(closing)
        loc = m.group(1) if m else ""
        tail = closing[: m.start()] if m else closing
        tail, more = hide_strings(tail)
        if tail.startswith("})"):
            types = self.result_types(name, tail.partition(" : ")[2], operands, max(1, len(results)))
        brace = tail.find("{", 1)
        if brace >= 0:
            attrs.update(parse_dict(tail[brace + 1 : matching(tail, brace)], more))
        frames = self.locations.frames(loc)
        ids = self.results(results, types) if results else ()
        return Op(
            name, operands, ids, tuple(types[: len(ids)]), attrs, tuple(regions), user_frame(frames), frames, at + 1
        )

    def for_header(self, head: str, attrs: dict[str, Any]) -> tuple[Any, ...]:
        m = re.match(r"(unsigned )?(%\S+) = (%\S+) to (%\S+) step (%\S+)(?: iter_args\((.*?)\) -> )?", head)
        if not m:
            raise self.unreadable("header of scf.for")
        attrs["unsigned"] = bool(m.group(1))
        rest = head[m.end() :]
        bounds = tuple(self.lookup(m.group(i)) for i in (3, 4, 5))
        types_text, _, iv = rest.rpartition(" : ") if " : " in rest else (rest, "", "")
        iv_type = parse_type(iv) if iv else self.types[bounds[0]]
        if not m.group(6):
            return bounds, ((m.group(2), iv_type),), []
        pairs = [p.split(" = ") for p in split_top(m.group(6))]
        types = parse_types(types_text)
        entry = ((m.group(2), iv_type), *((n.strip(), t) for (n, _), t in zip(pairs, types, strict=True)))
        return bounds + tuple(self.lookup(v.strip()) for _, v in pairs), entry, types

    def while_header(self, head: str) -> tuple[Any, ...]:
        names: list[str] = []
        values: list[int] = []
        if head.startswith("("):
            end = matching(head, 0)
            for part in split_top(head[1:end]):
                name, _, value = part.partition(" = ")
                names.append(name.strip())
                values.append(self.lookup(value.strip()))
            head = head[end + 1 :]
        _, _, text = head.partition(": ")
        sides = split_top(text, " -> ")
        before, after = (parse_types(sides[0]), parse_types(sides[1])) if len(sides) == 2 else ([], [])
        return tuple(values), tuple(zip(names, before, strict=True)), after


def _split_types(rest: str) -> tuple[str, str]:
    """Body and types of an operation: the types follow the last top-level `` : ``."""
    parts = split_top(f" {rest}", " : ")
    if len(parts) < 2:
        arrow = split_top(f" {rest}", " -> ")
        return (arrow[0], f"() -> {arrow[1]}") if len(arrow) == 2 else (rest, "")
    return " : ".join(parts[:-1]), parts[-1]
