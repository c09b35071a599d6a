"""What a sealed child would import or work out anew after each fork is fetched before it: once, in the fork server.

Modules only, and Triton's hash of itself (it reads its own library of some hundred megabytes): no tensor is made here.
What most children do without comes later (``later``), piece by piece, when nobody waits for the server.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator

import torch

TRITON = (
    "triton.compiler.code_generator",
    "triton.language.extra.libdevice",
    "triton.experimental.gluon",
    "triton.experimental.gluon.nvidia.hopper",
    "triton.experimental.gluon.nvidia.blackwell",
    "triton.experimental.gluon.amd.gfx1250",
)
LATER = ("sympy", "torch.fx.experimental.symbolic_shapes", "torch._numpy", "torch._dynamo")
"""For tensors without memory (trial runs of a problem file) and ``torch.compile``; in the order of what needs what."""
OURS = ("tilewright.ir.ops", "tilewright.ir.torch_ops", "tilewright.task.readers")
generator = torch.default_generator
cuda_started = torch.cuda.is_initialized


def preload() -> None:
    """Import all of it; what a version of Triton does not have is left out."""
    for folder in OURS:
        for module in pkgutil.iter_modules(importlib.import_module(folder).__path__, f"{folder}."):
            importlib.import_module(module.name)
    importlib.import_module("numpy.testing.overrides")
    if importlib.util.find_spec("triton"):
        for name in TRITON:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def later(many: Callable[[], bool]) -> Iterator[None]:
    """The rest, a piece at a time: what one check takes, and what more of them do once ``many`` says that there are more.
    A child that needs a piece before it is there fetches it itself."""
    if importlib.util.find_spec("triton"):
        with contextlib.suppress(ImportError, AttributeError, OSError):
            importlib.import_module("triton.runtime.cache").triton_key()
        yield
    for name in LATER:
        while not many():
            yield
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
        yield


def seed(number: int) -> None:
    """``torch.manual_seed`` without its notes to back-ends that are not there, which cost a millisecond a call."""
    generator.manual_seed(number)
    if cuda_started():
        torch.cuda.manual_seed_all(number)
