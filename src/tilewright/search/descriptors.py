"""What a kernel is like, as a few numbers and words: from its text alone, so that they cost nothing.

Declared parameters are descriptors; so is what the text says of vectors, tiles, unrolling, launches and memory. Never the
length of the text: archives over that keep long and short programs, not different kernels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from .tree import Node, Proposal, Scalar

MOST = 8
PATTERNS: dict[str, dict[str, str]] = {
    "native": {
        "loops": r"\bfor\s*\(", "vector": r"vector_size|_mm\d*_|#pragma\s+omp\s+simd|#pragma\s+GCC\s+ivdep",
        "wide": r"__m512|_mm512|vector_size\s*\(\s*64", "restrict": r"\brestrict\b|__restrict",
        "unroll": r"#pragma\s+GCC\s+unroll", "tile": r"\b[A-Z]*(?:TILE|BLOCK)\w*\b", "scratch": r"\b(?:malloc|alloca)\s*\(",
    },
    "triton": {
        "kernels": r"@triton\.jit", "dot": r"tl\.dot\b", "atomic": r"tl\.atomic_", "persistent": r"num_programs",
        "loops": r"\bfor\b[^:\n]+\b(?:range|static_range)\(", "exp2": r"\bexp2\b", "evict": r"eviction_policy",
        "block_pointer": r"make_block_ptr|make_tensor_descriptor",
    },
}  # fmt: skip
PATTERNS["torch"] = PATTERNS["triton"]


def describe(proposal: Proposal, language: str) -> dict[str, Scalar]:
    """At most eight descriptors: declared parameters first, then counts of what the text uses (comments left out)."""
    found: dict[str, Scalar] = dict(proposal.parameters)
    text = _bare(proposal.source, language)
    for name, pattern in PATTERNS.get(language, {}).items():
        if name not in found:
            found[name] = len(re.findall(pattern, text))
    return dict(list(found.items())[:MOST])


def axes(nodes: Iterable[Node], limit: int) -> list[str]:
    """The descriptors in which these nodes differ most, in the order of their names."""
    bins: dict[str, set[object]] = {}
    for n in nodes:
        for name, value in n.descriptors.items():
            bins.setdefault(name, set()).add(_bin(value))
    wide = sorted((n for n in bins if len(bins[n]) > 1), key=lambda n: (-len(bins[n]), n))
    return sorted(wide[:limit])


def cell(descriptors: Mapping[str, Scalar], over: Iterable[str]) -> tuple[object, ...]:
    """The archive's cell: words as they are, numbers by the power of two below them; None for what is not known."""
    return tuple(_bin(descriptors[name]) if name in descriptors else None for name in over)


def _bin(value: Scalar) -> object:
    if isinstance(value, str | bool):
        return value
    return 0 if value == 0 else int(math.copysign(1 + math.floor(math.log2(abs(value))), value))


def _bare(source: str, language: str) -> str:
    if language == "native":
        return re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    return re.sub(r"#[^\n]*", " ", source)
