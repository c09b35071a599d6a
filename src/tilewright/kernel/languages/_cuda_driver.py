"""Loading machine code and launching kernels through the CUDA driver, in the process's own context."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch

SHARED_WITHOUT_ASKING = 48 << 10
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class LaunchFault(RuntimeError):
    """The driver refuses a launch."""

    tilewright_kind = "launch"


@functools.cache
def driver() -> Any:
    """The driver's library, with torch's context current."""
    torch.cuda.init()
    torch.ones(1, device="cuda")
    return ctypes.CDLL("libcuda.so.1")


def checked(code: int, what: str) -> None:
    """Raise LaunchFault with the driver's name for the error."""
    if code:
        name = ctypes.c_char_p()
        driver().cuGetErrorName(code, ctypes.byref(name))
        said = name.value.decode() if name.value else f"status {code}"
        raise LaunchFault(f"{what}: {said}")


class Module:
    """Loaded machine code."""

    def __init__(self, cubin: bytes):
        self.handle = ctypes.c_void_p()
        checked(driver().cuModuleLoadData(ctypes.byref(self.handle), cubin), "loading the compiled kernel")
        self.functions: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        """A kernel by name. Raises LaunchFault where there is none."""
        if name not in self.functions:
            found = ctypes.c_void_p()
            checked(driver().cuModuleGetFunction(ctypes.byref(found), self.handle, name.encode()), f"kernel '{name}'")
            self.functions[name] = found
        return self.functions[name]

    def launch(self, name: str, grid: list[int], block: list[int], shared: int, arguments: list[Any]) -> None:
        """Launch on torch's current stream. ``arguments``: ctypes values. A grid of 0 launches nothing."""
        if not all(grid):
            return
        function = self.function(name)
        if shared > SHARED_WITHOUT_ASKING:
            code = driver().cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, shared)
            checked(code, f"launching {name}: {shared} bytes of shared memory")
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(a) for a in arguments))
        g, b = ([*sizes, 1, 1][:3] for sizes in (grid, block))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        code = driver().cuLaunchKernel(function, *g, *b, shared, stream, pointers, None)
        checked(code, f"launching {name} with grid {tuple(g)}, block {tuple(b)}, {shared} bytes of shared memory")
