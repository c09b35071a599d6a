"""``load_inline`` in a child: what it compiled is kept by content, so that a later child of the same kernel loads it."""

from __future__ import annotations

import functools
import hashlib
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

AROUND: Callable[..., Any] | None = None  # ``(name, call, arguments, skip)``: set by who watches launches


def folder() -> Path:
    """Where compiled modules lie: in the child's scratch folder."""
    return Path(os.environ.get("TRITON_CACHE_DIR", os.environ.get("TMPDIR", "/tmp"))) / "extensions"


def keep_compiled() -> None:
    """Put the keeping ``load_inline`` in place of torch's."""
    from torch.utils import cpp_extension

    original = cpp_extension.load_inline
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", capability())
    os.environ.setdefault("MAX_JOBS", "4")

    def load_inline(name: str, *args: Any, **kwargs: Any) -> Any:
        key = hashlib.sha256(repr((name, args, sorted(kwargs.items()))).encode()).hexdigest()[:24]
        kept = folder() / key / f"{name}.so"
        if kept.is_file() and kwargs.get("is_python_module", True):
            return Watched(name, cpp_extension._import_module_from_library(name, str(kept.parent), True))
        build = folder() / "build" / key
        build.mkdir(parents=True, exist_ok=True)
        made = original(name, *args, **{**kwargs, "build_directory": str(build)})
        if (built := build / f"{name}.so").is_file():
            kept.parent.mkdir(parents=True, exist_ok=True)
            os.replace(built, kept)
        return Watched(name, made) if isinstance(made, types.ModuleType) else made

    cpp_extension.load_inline = load_inline  # type: ignore[assignment]


class Watched(types.ModuleType):
    """A compiled module whose functions are called through ``AROUND``, where that is set."""

    def __init__(self, name: str, module: Any):
        super().__init__(name, getattr(module, "__doc__", None))
        self.__dict__["_compiled"] = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["_compiled"], name)
        return called(name, found) if callable(found) and not isinstance(found, type) else found


def called(name: str, function: Any) -> Any:
    """The function, called through ``AROUND``."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return around(name, lambda: function(*args, **kwargs), (*args, *kwargs.values()))

    return call


def around(name: str, call: Callable[[], Any], arguments: Any, skip: Callable[[], Any] | None = None) -> Any:
    """A launch, by way of who watches it."""
    return call() if AROUND is None else AROUND(name, call, arguments, skip)


def capability() -> str:
    """The device's own, so that nothing is compiled for others."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}"
