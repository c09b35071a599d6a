"""Kernels in C: one exported function, compiled by the system compiler, called through ctypes.

``void kernel(const T *input..., T *output..., double|int64_t scalar..., int64_t dim...)``: contiguous inputs in task
order, outputs in the order of the task's ``outputs``, scalars, then all dims in task order. A task with several dtypes
may export ``kernel_float32``, ``kernel_float64``, …; a plain ``kernel`` serves the only one.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ...errors import EnvironmentProblem
from ...task.calling import Calling
from ...task.tensors import evaluate
from ._python import KernelFault

FLAGS = ("-O2", "-fPIC", "-shared", "-std=c11", "-Wall", "-lm")


def compiler() -> str:
    """The system's C compiler. Raises EnvironmentProblem where there is none."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise EnvironmentProblem("no C compiler found (tried $CC, cc, gcc, clang)", remedy="install gcc or set CC")


def compile_c(text: str, name: str) -> str:
    """Path of the shared library made from ``text``; cached by content. Raises KernelFault with the compiler's words."""
    cc = compiler()
    key = hashlib.sha256("\0".join((text, cc, *FLAGS)).encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir())
    target = folder / f"tw-{key}.so"
    source = folder / f"tw-{key}-{os.getpid()}.c"
    source.write_text(text)
    made = folder / f"tw-{key}-{os.getpid()}.so"
    try:
        done = subprocess.run([cc, str(source), "-o", str(made), *FLAGS], capture_output=True, text=True)
    finally:
        source.unlink(missing_ok=True)
    if done.returncode != 0:
        raise KernelFault(f"{name} does not compile:\n" + done.stderr.replace(str(source), name)[-2000:])
    os.replace(made, target)
    return str(target)


class Loaded:
    """A compiled C kernel."""

    def __init__(self, kernel: dict[str, Any], evaluator: Any = None):
        self.kernel = kernel
        self.library = ctypes.CDLL(compile_c(kernel["text"], Path(kernel["path"]).name))

    def _function(self, dtype: str) -> Any:
        entry = self.kernel["entry"]
        for name in (f"{entry}_{dtype}", entry):
            if hasattr(self.library, name):
                function = getattr(self.library, name)
                function.restype = None
                return function
        raise KernelFault(f"{Path(self.kernel['path']).name} exports neither '{entry}_{dtype}' nor '{entry}'")

    def build(self, how: Calling, state: dict[str, torch.Tensor]) -> Callable[[dict[str, Any]], Any]:
        """The callable over named inputs; ``how.outputs`` lists ``{name, shape, dtype}`` with symbolic shapes, and
        inputs named ``dim.*`` carry the dims."""
        outputs = how.outputs

        def call(inputs: dict[str, Any]) -> Any:
            dims = {n.removeprefix("dim."): v for n, v in inputs.items() if n.startswith("dim.")}
            plain = {n: v for n, v in inputs.items() if not n.startswith("dim.")}
            for n, v in plain.items():
                if isinstance(v, torch.Tensor) and not v.is_contiguous():
                    raise KernelFault(f"native kernels take contiguous buffers; '{n}' has strides {v.stride()}")
            main = _main(plain)
            given = {n.removeprefix("out."): v for n, v in plain.items() if n.startswith("out.")}
            made: dict[str, torch.Tensor] = {}
            for o in outputs:
                dtype = getattr(torch, main if o["dtype"] == "main" else o["dtype"])
                own = given.get(o["name"])
                made[o["name"]] = (
                    torch.empty([evaluate(s, dims) for s in o["shape"]], dtype=dtype) if own is None else own
                )
            self._function(main)(*_arguments(plain, list(made.values()), list(given.values()), dims))
            results = tuple(made.values())
            return results[0] if len(results) == 1 else results

        return call

    def bind(self, how: Calling, inputs: dict[str, Any], outputs: list[torch.Tensor]) -> Callable[[], None]:
        """One call with these inputs into these outputs, all conversions done beforehand: what is timed is the kernel."""
        dims = {n.removeprefix("dim."): v for n, v in inputs.items() if n.startswith("dim.")}
        plain = {n: v for n, v in inputs.items() if not n.startswith("dim.")}
        function = self._function(_main(plain))
        arguments = _arguments(plain, outputs, [], dims)
        return lambda: function(*arguments)


def _main(plain: dict[str, Any]) -> str:
    """Dtype of the first float input, by which the exported function is chosen."""
    tensors = (v for v in plain.values() if isinstance(v, torch.Tensor))
    return next((str(t.dtype).removeprefix("torch.") for t in tensors if t.is_floating_point()), "float32")


def _arguments(
    plain: dict[str, Any], outputs: list[torch.Tensor], given: list[torch.Tensor], dims: dict[str, int]
) -> list[Any]:
    """Addresses of inputs, then of outputs, then scalars, then dims; ``given``: outputs that stand among the inputs."""
    passed = {id(g) for g in given}
    tensors = [v for v in plain.values() if isinstance(v, torch.Tensor) and id(v) not in passed]
    arguments: list[Any] = [ctypes.c_void_p(t.data_ptr()) for t in (*tensors, *outputs)]
    for v in plain.values():
        if not isinstance(v, torch.Tensor):
            arguments.append(ctypes.c_double(v) if isinstance(v, float) else ctypes.c_int64(int(v)))
    return arguments + [ctypes.c_int64(v) for v in dims.values()]
