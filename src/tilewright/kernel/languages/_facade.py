"""Façade: answers what public kernels ask of CUDA on a machine that has none, for a declared target.

Tensors stay in host memory; they say that they are on ``cuda:0``, ``device="cuda"`` makes host tensors, ``.cuda()`` gives
the tensor itself, and ``torch.cuda``, ``torch.accelerator`` and Triton's driver answer for the target. So a file written
for a GPU runs unmodified while its launches are evaluated elsewhere. What is not answered here is ``Unsupported``
(``_facade_missing.py``), never a fault of the kernel.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...task.dispatch import DispatchMode
from . import _facade_missing

ENGINE = "_engine_run_backward"  # by which torch runs backward code
CUDA = torch.device("cuda", 0)
_host = torch._C.TensorBase.device.__get__  # type: ignore[attr-defined]
_is_cpu = torch._C.TensorBase.is_cpu.__get__  # type: ignore[attr-defined]
_is_meta = torch._C.TensorBase.is_meta.__get__  # type: ignore[attr-defined]
VIRTUAL = False  # whether tensors have sizes and no memory (torch's meta device)
INSIDE = False  # whether torch itself is asking, in the middle of an operation on such tensors


@dataclass(frozen=True)
class Target:
    """A device to speak for. Sizes in bytes."""

    name: str = "NVIDIA H200"
    capability: tuple[int, int] = (9, 0)
    multiprocessors: int = 132
    shared_memory: int = 232448
    registers: int = 65536
    warp_size: int = 32
    threads: int = 2048
    memory: int = 143771 << 20
    l2: int = 60 << 20
    clock_khz: int = 1980000
    cuda: str = "13.0"


H200 = Target()


def is_host(t: torch.Tensor) -> bool:
    """Whether a tensor lies in host memory, whatever it says of itself."""
    return bool(_is_cpu(t)) or (VIRTUAL and bool(_is_meta(t)))


class HostMode(TorchFunctionMode):
    """Every ``cuda`` among a function's arguments becomes ``cpu``; ``.cuda()`` is the tensor itself."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.get_device:
            return 0
        if func is torch.Tensor.pin_memory:
            return args[0]
        return func(*(host(a) for a in args), **{k: host(v) for k, v in kwargs.items()})


def host(v: Any) -> Any:
    """``cuda`` devices, however written, as ``cpu`` (``meta`` where tensors have no memory)."""
    if isinstance(v, torch.device):
        return torch.device(_place()) if v.type == "cuda" else v
    if isinstance(v, str) and (v == "cuda" or v.startswith("cuda:")):
        return _place()
    return v


def _place() -> str:
    return "meta" if VIRTUAL else "cpu"


class Frank(DispatchMode):
    """Tensors without memory tell torch's own implementations the truth about where they are."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        global INSIDE
        outer, INSIDE = INSIDE, True
        try:
            return func(*args, **(kwargs or {}))
        finally:
            INSIDE = outer


@contextlib.contextmanager
def virtual() -> Iterator[None]:
    """Within it, new tensors have sizes and no memory, and say that they are on the target."""
    global VIRTUAL
    VIRTUAL = True
    try:
        with torch.device("meta"), Frank():
            yield
    finally:
        VIRTUAL = False


class Stream:
    """A stream that is always done."""

    def __init__(self, *args: Any, **kwargs: Any):
        self.cuda_stream, self.device, self.stream_id = 0, CUDA, 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None: ...

    def synchronize(self) -> None: ...

    def wait_stream(self, other: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or Event()


class Event:
    """An event without a clock: kernels may record and wait, but nothing can be timed here."""

    def __init__(self, *args: Any, **kwargs: Any): ...

    def record(self, stream: Any = None) -> None: ...

    def wait(self, stream: Any = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        raise _facade_missing.missing("torch.cuda.Event.elapsed_time")


class Guard:
    """``torch.cuda.device(i)``, ``torch.cuda.device_of(x)``, ``torch.cuda.stream(s)``."""

    def __init__(self, *args: Any, **kwargs: Any): ...

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None: ...


def properties(t: Target) -> Any:
    """As ``torch.cuda.get_device_properties`` answers."""
    return types.SimpleNamespace(
        name=t.name, major=t.capability[0], minor=t.capability[1], total_memory=t.memory, L2_cache_size=t.l2,
        multi_processor_count=t.multiprocessors, warp_size=t.warp_size, max_threads_per_multi_processor=t.threads,
        shared_memory_per_block_optin=t.shared_memory, shared_memory_per_multiprocessor=t.shared_memory + 1024,
        shared_memory_per_block=48 << 10, regs_per_multiprocessor=t.registers, is_integrated=0, is_multi_gpu_board=0,
        gcnArchName="",
    )  # fmt: skip


def answers(t: Target) -> dict[str, Any]:
    """Names of ``torch.cuda`` and what they give."""

    def nothing(*args: Any, **kwargs: Any) -> None: ...

    def always(value: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: value

    given = {
        "is_available": always(True),
        "is_initialized": always(False),
        "init": nothing,
        "manual_seed": nothing,
        "manual_seed_all": nothing,
        "device_count": always(1),
        "current_device": always(0),
        "set_device": nothing,
        "get_device_name": always(t.name),
        "get_device_capability": always(t.capability),
        "get_device_properties": always(properties(t)),
        "current_stream": always(Stream()),
        "default_stream": always(Stream()),
        "Stream": Stream,
        "Event": Event,
        "stream": Guard,
        "device": Guard,
        "device_of": Guard,
        "synchronize": nothing,
        "empty_cache": nothing,
        "is_current_stream_capturing": always(False),
        "is_bf16_supported": always(True),
        "get_arch_list": always([f"sm_{t.capability[0]}{t.capability[1]}"]),
        "mem_get_info": always((t.memory, t.memory)),
        "memory_allocated": always(0),
        "max_memory_allocated": always(0),
        "memory_reserved": always(0),
        "reset_peak_memory_stats": nothing,
        "ipc_collect": nothing,
    }
    return {n: own(v) for n, v in given.items()}


def own(answer: Any) -> Any:
    """A copy for one name: Dynamo keeps a table by object and refuses one that stands under two names."""
    if isinstance(answer, types.FunctionType):
        code, bound = answer.__code__, answer.__closure__
        return types.FunctionType(code, answer.__globals__, answer.__name__, answer.__defaults__, bound)
    return answer


def triton_driver(t: Target) -> Any:
    """A driver for ``triton.runtime.driver.active`` that knows the target and can launch nothing."""
    from triton.backends.compiler import GPUTarget

    limits = {
        "max_shared_mem": t.shared_memory,
        "max_num_regs": t.registers,
        "multiprocessor_count": t.multiprocessors,
        "warpSize": t.warp_size,
        "sm_clock_rate": t.clock_khz,
        "mem_clock_rate": 3201000,
        "mem_bus_width": 6144,
    }
    target = GPUTarget("cuda", t.capability[0] * 10 + t.capability[1], t.warp_size)
    return types.SimpleNamespace(
        get_current_device=lambda: 0,
        set_current_device=lambda device: None,
        get_current_stream=lambda device=0: 0,
        get_current_target=lambda: target,
        get_active_torch_device=lambda: CUDA,
        get_device_interface=lambda: torch.cuda,
        get_device_capability=lambda device=0: t.capability,
        is_active=lambda: True,
        utils=types.SimpleNamespace(get_device_properties=lambda device=0: dict(limits)),
        get_empty_cache_for_benchmark=lambda: torch.empty(1),
        clear_cache=lambda cache: None,
        map_python_to_cpp_type=lambda ty: ty,
        binary_ext="cubin",
    )


def install(target: Target = H200) -> None:
    """Put the façade up in this process, for good."""
    given = answers(target)
    for name, value in given.items():
        setattr(torch.cuda, name, value)
    _facade_missing.install(set(given))
    torch.version.cuda = target.cuda
    torch.set_default_device = lambda device: None  # type: ignore[assignment]
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        for name, value in (
            ("is_available", lambda: True),
            ("current_accelerator", lambda *a, **k: torch.device("cuda")),
            ("device_count", lambda: 1),
            ("current_device_index", lambda: 0),
            ("synchronize", lambda *a, **k: None),
        ):
            setattr(accelerator, name, value)
    torch.Tensor.device = property(lambda self: CUDA if is_host(self) and not INSIDE else _host(self))  # type: ignore[assignment]
    torch.Tensor.is_cuda = property(lambda self: not INSIDE)  # type: ignore[assignment]
    torch.Tensor.is_cpu = property(lambda self: False)  # type: ignore[assignment]
    with contextlib.suppress(ImportError):
        from triton.runtime import driver

        driver.set_active(triton_driver(target))
    _reach_backwards()
    HostMode().__enter__()


def _reach_backwards() -> None:
    """A mode rests while what it intercepted runs, so ``loss.backward()`` would run backward code without it: enter
    it again around the engine."""

    def wrapped(engine: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            with HostMode():
                return engine(*args, **kwargs)

        return run

    for module in (torch.autograd, torch.autograd.graph):
        if hasattr(module, ENGINE):
            setattr(module, ENGINE, wrapped(getattr(module, ENGINE)))
