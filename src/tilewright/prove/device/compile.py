"""A sealed child that compiles CUDA C++ and tells what each kernel needs. No GPU is used, and nothing is launched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...kernel.languages import _cuda_compile, _cuda_sources
from ..child.transport import Bundle


class Role:
    """Requests: ``sources`` (device code of a kernel file), ``compile`` (one source for one target)."""

    def __init__(self, others: list[Any]): ...

    def on_sources(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Device sources of the file, with the line at which each begins. A Python file is run for them, with torch's
        compiling functions replaced by ones that note what they are given."""
        kernel = head["kernel"]
        found = _cuda_sources.of_file(Path(kernel["path"]), kernel["text"])
        return {"sources": [vars(s) for s in found]}, []

    def on_compile(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """``text`` for ``target``: whether it compiles, messages with lines, and needs by kernel."""
        made = _cuda_compile.compile_source(head["text"], head["name"], head["target"], tuple(head.get("flags", ())))
        return {"result": made.told()}, []
