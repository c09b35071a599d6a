"""Record Triton launches in the candidate's process and have them evaluated elsewhere.

A launch names its function by file and qualified name, carries the plain arguments, and the storages of its tensors;
the evaluator reads the function from the file itself, so nothing that the candidate patches in its own process changes
what a launch computes.
"""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any

import torch
import triton
from triton.runtime import autotuner
from triton.runtime.jit import JITFunction

from ...prove.child import transport
from ...prove.child.transport import Bundle
from ._python import KernelFault

TIMEOUT_S = 600.0


class LaunchFault(Exception):
    """The evaluator refused or could not run a launch."""

    tilewright_kind = "launch"


class Recorder:
    """Stands in for ``JITFunction.run`` and ``Autotuner.run``."""

    def __init__(self, channel: Any, kernel: dict[str, Any]):
        self.channel = channel
        self.text = kernel["text"]
        self.path = str(Path(kernel["path"]).resolve())
        self.count = 0

    def install(self) -> None:
        recorder = self

        def run(fn: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            return None if warmup else recorder.launch(fn, grid, args, kwargs)

        def tuned(tuner: autotuner.Autotuner, *args: Any, **kwargs: Any) -> Any:
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            config = tuner.configs[0]
            if config.pre_hook is not None:
                config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
            tuner.best_config = config
            return tuner.fn.run(*args, **kwargs, **config.all_kwargs())

        JITFunction.run = run
        autotuner.Autotuner.run = tuned

    def launch(self, fn: JITFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """One launch: bind, evaluate the grid, send, wait, copy back."""
        named, options = bind(fn, args, kwargs)
        if callable(grid):
            grid = grid({**named, **options})
        sizes = [int(g) for g in (grid if isinstance(grid, tuple | list) else (grid,))]
        tensors = {n: v.base if hasattr(v, "base") else v for n, v in named.items()
                   if isinstance(v, torch.Tensor) or isinstance(getattr(v, "base", None), torch.Tensor)}  # fmt: skip
        head = {
            "do": "launch", "index": self.count, "function": fn.fn.__qualname__, "file": file_of(fn), "grid": sizes,
            "arguments": {n: "tensor" if n in tensors else encode(v) for n, v in named.items()},
            "options": {k: encode(v) for k, v in options.items()},
            "globals": scalar_globals(fn),
        }  # fmt: skip
        self.count += 1
        for n, t in tensors.items():
            if t.device.type != "cpu":
                raise LaunchFault(f"argument '{n}' of {fn.fn.__name__} is on {t.device}")
        if any(g == 0 for g in sizes):
            return
        bundle = Bundle.pack(tensors)
        transport.send(self.channel, {**head, "bundle": bundle.head}, (bundle.fd,))
        answer, fds = transport.receive(self.channel, TIMEOUT_S)
        transport.close(fds)
        if "error" in answer:
            error = LaunchFault(answer["error"]["message"])
            error.where = answer["error"].get("where", "")  # type: ignore[attr-defined]
            error.tilewright_kind = answer["error"].get("kind", "launch")
            raise error
        back = bundle.tensors()
        done: set[int] = set()
        for n, t in tensors.items():
            raw = t.untyped_storage()
            if raw.data_ptr() not in done and raw.nbytes():
                done.add(raw.data_ptr())
                torch.empty(0, dtype=torch.uint8).set_(raw).copy_(
                    torch.empty(0, dtype=torch.uint8).set_(back[n].untyped_storage())
                )
        bundle.close()


def bind(fn: JITFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments by name (defaults applied), and the launch options that are no parameters (num_warps …)."""
    names = fn.arg_names
    if len(args) > len(names):
        raise TypeError(f"{fn.fn.__name__} takes {len(names)} arguments, got {len(args)}")
    named = dict(zip(names, args, strict=False))
    options = {}
    for k, v in kwargs.items():
        if k in names:
            if k in named:
                raise TypeError(f"{fn.fn.__name__} got multiple values for argument '{k}'")
            named[k] = v
        else:
            options[k] = v
    for p in inspect.signature(fn.fn).parameters.values():
        if p.name not in named:
            if p.default is inspect.Parameter.empty:
                raise TypeError(f"{fn.fn.__name__} misses argument '{p.name}'")
            named[p.name] = p.default
    return {n: named[n] for n in names}, options


def encode(v: Any) -> Any:
    """A plain argument as JSON."""
    if isinstance(v, triton.language.constexpr):
        return encode(v.value)
    if v is None or isinstance(v, bool | int | str):
        return {"=": v}
    if isinstance(v, float):
        return {"float": v.hex() if v == v and abs(v) != float("inf") else repr(v)}
    if isinstance(v, triton.language.dtype):
        return {"tl.dtype": v.name}
    if isinstance(v, torch.dtype):
        return {"torch.dtype": str(v).removeprefix("torch.")}
    if isinstance(v, tuple | list):
        return {"tuple": [encode(x) for x in v]}
    if isinstance(v, JITFunction):
        return {"function": [file_of(v), v.fn.__qualname__]}
    if isinstance(v, torch.Tensor) and v.dim() == 0:
        return encode(v.item())
    raise KernelFault(f"a launch argument of type {type(v).__name__} can't be evaluated here")


def file_of(fn: JITFunction) -> dict[str, str]:
    """File of a jitted function with the hash of what it holds now."""
    path = inspect.getsourcefile(inspect.unwrap(fn.fn))
    if not path or not Path(path).is_file():
        raise KernelFault(f"the source of {fn.fn.__name__} is not in a file, so its launches can't be evaluated")
    return {"path": str(Path(path).resolve()), "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}


def scalar_globals(fn: JITFunction) -> dict[str, Any]:
    """Plain constants among the module globals that a device function may read."""
    found = {}
    for name, value in fn.fn.__globals__.items():
        if not name.startswith("__") and isinstance(
            value, bool | int | float | str | triton.language.constexpr | triton.language.dtype
        ):
            found[name] = encode(value)
    return found
