"""The denominator: every ``@triton.jit`` function of the packages, counted in their source, whether anything uses it or not."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PACKAGES = {
    "liger-kernel": "liger_kernel",
    "fla-core": "fla",
    "conch-triton-kernels": "conch",
    "flash-maxsim": "flash_maxsim",
}


@dataclass(frozen=True)
class Function:
    """A device function: ``file`` within the packages' folder, lines of its definition, how many other definitions of
    its file bear the name, and whether any other line of its package says it."""

    package: str
    file: str
    name: str
    line: int
    end: int
    twins: int
    mentioned: bool
    launched: bool

    @property
    def id(self) -> str:
        return f"{self.file}:{self.line} {self.name}"


def is_triton(decorator: ast.expr) -> bool:
    """``@triton.jit``, called or not. CuTe's, Gluon's and TileLang's ``jit`` are other languages."""
    return ast.unparse(decorator).split("(")[0] in ("triton.jit", "jit", "tl.jit", "triton.runtime.jit")


def functions(site: Path) -> list[Function]:
    """Every Triton function below ``site``, by file and line."""
    return [f for package, folder in PACKAGES.items() for f in _package(site, package, folder)]


def _package(site: Path, package: str, folder: str) -> Iterator[Function]:
    texts = {p: p.read_text() for p in sorted((site / folder).rglob("*.py"))}
    words, defined, launched = Counter(), Counter(), set()
    for text in texts.values():
        words.update(re.findall(r"\w+", text))
        defined.update(re.findall(r"\bdef (\w+)", text))
        launched.update(re.findall(r"(\w+)\s*\[", text))
    for path, text in texts.items():
        found = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)
                 and any(is_triton(d) for d in n.decorator_list)]  # fmt: skip
        for n in sorted(found, key=lambda n: n.lineno):
            yield Function(
                package,
                str(path.relative_to(site)),
                n.name,
                n.lineno,
                n.end_lineno or n.lineno,
                sum(m.name == n.name for m in found) - 1,
                words[n.name] > defined[n.name],
                n.name in launched,
            )


def table(site: Path) -> list[dict[str, object]]:
    """As data."""
    return [{**asdict(f), "id": f.id} for f in functions(site)]
