"""Problem files that say ``device="cuda"`` on a machine without CUDA: the device argument is mapped to the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

NO_CUDA = ("not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver", "CUDA driver", "CUDA error",
           "no CUDA-capable device", "Cannot access accelerator device", "cudart")  # fmt: skip


def _to_cpu(value: Any) -> Any:
    """``"cuda:0"`` or ``torch.device("cuda")`` → the CPU; anything else as it is."""
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


class _CpuInstead(TorchFunctionMode):
    """Rewrites device arguments of every torch function; ``.cuda()`` is the tensor itself."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if "device" in kwargs:
            kwargs = {**kwargs, "device": _to_cpu(kwargs["device"])}
        if func is torch.Tensor.to or getattr(func, "__name__", "") == "new_empty":
            args = (args[0], *(_to_cpu(a) for a in args[1:]))
        if "pin_memory" in kwargs:
            kwargs = {**kwargs, "pin_memory": False}
        return func(*args, **kwargs)


class _CpuGenerator(torch.Generator):
    def __new__(cls, device: Any = "cpu") -> _CpuGenerator:
        return super().__new__(cls, device=_to_cpu(device))  # type: ignore[call-arg]


def _module_to(original: Any) -> Any:
    def to(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        places = [_to_cpu(a) for a in (*args, *kwargs.values())]
        if len(places) == 1 and isinstance(places[0], str | torch.device) and torch.device(places[0]).type == "cpu":
            # All is on the CPU already; converting fake parameters would fail.
            return self
        if "device" in kwargs:
            kwargs["device"] = _to_cpu(kwargs["device"])
        return original(self, *(_to_cpu(a) for a in args), **kwargs)

    return to


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


@contextmanager
def on_this_machine() -> Iterator[None]:
    """Run user code with CUDA devices mapped to the CPU; where CUDA is present, as it is."""
    if torch.cuda.is_available():
        yield
        return
    with (
        mock.patch.object(torch, "Generator", _CpuGenerator),
        mock.patch.object(torch.nn.Module, "cuda", lambda self, device=None: self),
        mock.patch.object(torch.nn.Module, "to", _module_to(torch.nn.Module.to)),
        mock.patch.object(torch.cuda, "synchronize", _nothing),
        _CpuInstead(),
    ):
        yield
