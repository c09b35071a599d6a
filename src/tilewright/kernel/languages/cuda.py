"""Kernels in CUDA C++. Without a GPU they are compiled and not run (``prove/gates/compile.py``); with one they run.

A ``.cu`` file exports ``extern "C" __global__`` functions and says in a comment how they are launched
(``_cuda_launch.py``); it is compiled by nvcc or NVRTC for the device at hand. A Python file uses
``torch.utils.cpp_extension.load_inline`` (as KernelBench answers do), ``torch.cuda._compile_kernel`` or CuPy's
``RawKernel``, and is run as it is.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ...task.calling import Calling
from ...task.tensors import evaluate
from . import _cuda_compile, _cuda_driver, _cuda_extension, _cuda_launch
from ._cuda_sources import NeedsDevice
from ._python import KernelFault, PythonLoaded

NEEDS = "CUDA C++ needs a GPU to run; without one it is compiled and not called"


def prepare() -> None:
    """Before the candidate's file runs: what is compiled is kept, so that the next child need not compile again."""
    if torch.cuda.is_available():
        _cuda_extension.keep_compiled()


class Loaded:
    """A kernel file in CUDA C++."""

    def __init__(self, kernel: dict[str, Any], evaluator: Any = None):
        self.kernel = kernel
        self.python: PythonLoaded | None = None
        self.made: Any = None
        if not torch.cuda.is_available():
            return
        if kernel["path"].endswith(".py"):
            self.python = PythonLoaded(kernel, evaluator)
        else:
            self.plan = _cuda_launch.plan(kernel["text"], Path(kernel["path"]).name)
            self.made = _cuda_driver.Module(compiled(kernel))

    def build(self, how: Calling, state: dict[str, torch.Tensor]) -> Callable[[dict[str, Any]], Any]:
        """The callable over named inputs; for a ``.cu`` file ``how.outputs`` lists its outputs, and inputs named ``dim.*``
        carry the dims."""
        if self.python is not None:
            return self.python.build(how, state)
        if self.made is None:
            return _refuse
        return lambda inputs: call(self.made, self.plan, how, inputs)


def _refuse(inputs: dict[str, Any]) -> Any:
    raise NeedsDevice(NEEDS)


def compiled(kernel: dict[str, Any]) -> bytes:
    """Machine code for the device at hand; kept by content. Raises KernelFault with the compiler's words."""
    major, minor = torch.cuda.get_device_capability()
    target, name = f"sm_{major}{minor}", Path(kernel["path"]).name
    key = hashlib.sha256(f"{kernel['text']}\0{target}".encode()).hexdigest()[:24]
    kept = Path(os.environ.get("TRITON_CACHE_DIR", "/nonexistent"), f"{key}.cubin")
    if kept.is_file():
        return kept.read_bytes()
    made = _cuda_compile.compile_source(kernel["text"], name, target, ("-lineinfo",))
    if not made.ok:
        first = next((m for m in made.messages if "error" in m.kind), made.messages[0])
        raise KernelFault(f"does not compile for {target}: {name}:{first.line}: {first.text}")
    if kept.parent.is_dir():
        kept.write_bytes(made.cubin)
    return made.cubin


def call(module: Any, plan: _cuda_launch.Plan, how: Calling, inputs: dict[str, Any]) -> Any:
    """All launches of the plan; the outputs."""
    dims = {n.removeprefix("dim."): v for n, v in inputs.items() if n.startswith("dim.")}
    plain = {n: v for n, v in inputs.items() if not n.startswith("dim.")}
    tensors = {n: v for n, v in plain.items() if isinstance(v, torch.Tensor)}
    for n, t in tensors.items():
        if not t.is_contiguous():
            raise KernelFault(f"CUDA kernels in .cu files take contiguous buffers; '{n}' has strides {t.stride()}")
    main = next((name(t.dtype) for t in tensors.values() if t.is_floating_point()), "float32")
    outputs = {o["name"]: fresh(o, main, dims) for o in how.outputs}
    buffers = {n: fresh(b, main, dims) for n, b in plan.buffers.items()}
    values = {**plain, **outputs, **buffers, **{d: v for d, v in dims.items() if d not in plain}}
    usual = [("", n) for n in (*tensors, *outputs, *(n for n in plain if n not in tensors), *dims)]
    for launch in plan.launches:
        arguments = [argument(kind, n, values) for kind, n in (usual if launch.arguments is None else launch.arguments)]
        launched(module, launch, main, dims, arguments, values)
    results = tuple(outputs.values())
    return results[0] if len(results) == 1 else results


def launched(module: Any, launch: _cuda_launch.Launch, main: str, dims: dict[str, int], arguments: list[Any],
             values: dict[str, Any]) -> None:  # fmt: skip
    """One launch of the plan."""
    kernel, shared = launch.kernel.replace("{dtype}", main), evaluate(launch.shared, dims)
    grid, block = [evaluate(g, dims) for g in launch.grid], [evaluate(b, dims) for b in launch.block]
    _cuda_extension.around(kernel, lambda: module.launch(kernel, grid, block, shared, arguments), values.values(),
                           lambda: None)  # fmt: skip


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def fresh(o: dict[str, Any], main: str, dims: dict[str, int]) -> torch.Tensor:
    """An output or scratch buffer, as empty as ``torch.empty`` leaves it."""
    dtype = getattr(torch, main if o["dtype"] == "main" else o["dtype"])
    return torch.empty([evaluate(s, dims) for s in o["shape"]], dtype=dtype, device="cuda")


def argument(kind: str, n: str, values: dict[str, Any]) -> Any:
    """A launch argument as the driver takes it. Raises KernelFault for a name that the task does not know."""
    if n not in values:
        raise KernelFault(
            f"launch argument '{n}' is no input, output, buffer, dim or scalar (known: {', '.join(values)})"
        )
    v = values[n]
    if isinstance(v, torch.Tensor):
        return ctypes.c_void_p(v.data_ptr())
    if kind:
        return _cuda_launch.TYPES[kind](v)
    return ctypes.c_double(v) if isinstance(v, float) else ctypes.c_int64(int(v))
