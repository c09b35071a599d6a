"""What a model is told: the task, the kernel, what was found and measured, and how it came here, within a token budget.

Parts are ranked. The kernel and what it must compute always stand; the others are shortened from the least important up.
Nothing of the hidden workloads is in a Context, so nothing of them is here; of the problem's file only the reference is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...prove.verdict import Verdict
from ...task.tensors import TensorSpec
from ..tree import Context, Node

LETTERS = 3.5  # a token, on the safe side for code
SMALLEST = 200  # letters; a part that would be shorter is left out


@dataclass(frozen=True)
class Part:
    """``rank`` 0 is never shortened."""

    name: str
    text: str
    rank: int


def fitted(parts: Sequence[Part], tokens: int) -> str:
    """All parts in their order, in tags, the unimportant ones cut so that they fit. Raises ValueError if rank 0 alone
    does not fit."""
    room = tokens * LETTERS - sum(len(p.name) * 2 + 8 for p in parts)
    kept: dict[str, str] = {}
    for p in sorted(parts, key=lambda p: p.rank):
        if p.rank == 0 and len(p.text) > room:
            raise ValueError(f"'{p.name}' alone needs more than {tokens} tokens")
        if len(p.text) <= room:
            kept[p.name] = p.text
        elif room >= SMALLEST:
            kept[p.name] = p.text[: int(room) - 10] + "\n[cut]"
        room -= len(kept.get(p.name, ""))
    return "\n\n".join(f"<{p.name}>\n{kept[p.name]}\n</{p.name}>" for p in parts if p.name in kept)


def parts(context: Context, advice: str = "") -> list[Part]:
    """Everything there is to say about the parent, most of it only if there is room."""
    verdict = context.verdict()
    return [p for p in (
        Part("task", task(context), 0),
        Part("kernel", context.source, 0),
        Part("advice", advice, 1),
        Part("findings", findings(context.parent, verdict), 1),
        Part("measured", measured(context.parent), 2),
        Part("explained", context.explain(), 3),
        Part("lineage", lineage(context), 4),
        Part("failures", failures(context), 4),
        Part("others", "\n\n".join(f"#{n.number} ({speed(n)}):\n{n.source}" for n in context.others), 5),
    ) if p.text]  # fmt: skip


def task(context: Context) -> str:
    """What must be computed, for whom, and on what."""
    sheet = context.sheet
    lines = [f"name: {sheet.name}", f"language of the kernel: {context.language}; entry: {context.entry}"]
    for name, spec in {**sheet.inputs, **(sheet.outputs or {})}.items():
        if isinstance(spec, TensorSpec):
            lines.append(f"{name}: [{spec.shape}] {', '.join(spec.dtypes)}")
    lines += [f"{n}: {d.low}..{d.high}" for n, d in sheet.dims.items()]
    lines += [f"workload: {w.dims} {w.dtype or ''}".rstrip() for w in context.develop]
    return "\n".join(lines) + "\n\n" + reference(context)


def reference(context: Context) -> str:
    """The text of the reference alone: a problem file may say more than a search should know."""
    path = Path(context.problem.partition("::")[0])
    try:
        tree = ast.parse(text := path.read_text())
    except (OSError, SyntaxError, ValueError):
        return ""
    names = {context.sheet.entry, context.problem.partition("::")[2], "reference", "Model", "ref_kernel", "run"}
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name in names]
    return "\n\n".join(ast.get_source_segment(text, n) or "" for n in found)


def findings(node: Node, verdict: Verdict | None) -> str:
    """Why a kernel was turned down: each finding with its place, its smallest case and what was expected."""
    lines = [f"{node.failure.kind}: {node.failure.message}"] if node.failure else []
    for f in verdict.findings if verdict else ():
        lines.append(f"{f.gate} ({f.cls}) {f.where}: {f.summary}")
        lines += [f"  {what}: {text}" for what, text in (
            ("smallest case", ", ".join(f"{n}={v}" for n, v in f.case.dims.items())), ("expected", f.expected),
            ("got", f.got), ("detail", f.detail[:600])) if text]  # fmt: skip
    if not lines and node.failure:
        lines += list(node.failure.findings)
    return "\n".join(lines)


def speed(node: Node) -> str:
    """A trial's place in the run in a few words."""
    if node.timing is not None:
        t = node.timing
        return f"{t.ratio:.3g} times as fast as the start ({t.low:.3g} to {t.high:.3g})"
    return node.failure.kind if node.failure else "not measured"


def measured(node: Node) -> str:
    if node.timing is None:
        return ""
    each = "; ".join(f"{w}: {s * 1e6:.3g} us" for w, s in node.timing.workloads.items())
    facts = "; ".join(f"{n}: {v}" for n, v in node.descriptors.items())
    return "\n".join(x for x in (f"{node.timing.seconds * 1e6:.4g} us; {speed(node)}", each, facts) if x)


def lineage(context: Context) -> str:
    """What was changed on the way here, and what each step gave."""
    steps = context.lineage[1:]
    return "\n".join(f"#{n.number} {n.proposal.title or n.proposal.skill or n.proposal.proposer}: {speed(n)}\n"
                     f"{context.tree.diff(n.number)}" for n in steps[::-1])  # fmt: skip


def failures(context: Context) -> str:
    return "\n".join(f"#{n.number} {n.proposal.title or n.proposal.proposer}: {n.failure.kind}: {n.failure.message}"
                     for n in context.failures() if n.failure)  # fmt: skip
