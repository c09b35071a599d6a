"""Record Triton launches in the candidate's process and have them evaluated elsewhere.

A launch names its function by file and qualified name, carries the plain arguments, and the storages of its tensors;
the evaluator reads the function from the file itself, so nothing that the candidate patches in its own process changes
what a launch computes.

Tuning is Triton's own code with one part replaced: instead of timing a configuration, ``Autotuner._bench`` either does
nothing or runs it as often as a first call on a device would (``tune``), with all hooks, and then ranks ``config``
first.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from pathlib import Path
from typing import Any, Protocol

import torch
import triton
from triton.runtime import autotuner
from triton.runtime.jit import JITFunction

from ._python import KernelFault

TUNING_RUNS = 2


class Evaluator(Protocol):
    """Where launches are computed."""

    def launch(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """Compute the launch on the storages of ``tensors``, in place. Raises what the launch raises."""


class Recorder:
    """Stands in for ``JITFunction.run`` and ``Autotuner._bench``. ``config``: which configuration of a tuned kernel is
    taken; ``tune``: whether the first call runs them all, as on a device. ``tuned``: by tuned function, each configuration
    in words and what of it the kernel's code sees (warps and stages are not)."""

    def __init__(self, evaluator: Evaluator, kernel: dict[str, Any]):
        self.evaluator = evaluator
        self.config = 0
        self.tune = False
        self.tuned: dict[str, list[list[str]]] = {}
        self.tuners: list[Any] = []

    def install(self) -> None:
        recorder = self

        def run(fn: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            for hook in fn.pre_run_hooks:
                hook(*args, **kwargs)
            if not warmup:
                recorder.launch(fn, grid, args, kwargs)
            return Compiled(recorder, fn, args, kwargs)

        def bench(tuner: autotuner.Autotuner, *args: Any, config: Any, **meta: Any) -> list[float]:
            return recorder.bench(tuner, original, args, config, meta)

        original = autotuner.Autotuner._bench
        JITFunction.run = run
        autotuner.Autotuner._bench = bench

    def choose(self, config: int, tune: bool) -> None:
        """Which configuration the calls to come take; what was chosen before is forgotten."""
        if (config, tune) != (self.config, self.tune) or tune:
            for tuner in self.tuners:
                tuner.cache.clear()
        self.config, self.tune = config, tune

    def bench(self, tuner: Any, original: Any, args: tuple[Any, ...], config: Any, meta: dict[str, Any]) -> list[float]:
        """A ranking in place of a timing."""
        self.tuned[tuner.base_fn.__name__] = [[str(c), repr(sorted(c.kwargs.items()))] for c in tuner.configs]
        if not any(t is tuner for t in self.tuners):
            self.tuners.append(tuner)
        if self.tune:
            tuner._do_bench = lambda call, quantiles: [call() for _ in range(TUNING_RUNS)]
            tuner.__dict__.pop("do_bench", None)
            original(tuner, *args, config=config, **meta)
        place = tuner.configs.index(config)
        return [float((place - self.config) % len(tuner.configs))] * 3

    def launch(self, fn: JITFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """One launch: bind, evaluate the grid, hand over."""
        named, options = bind(fn, args, kwargs)
        if callable(grid):
            grid = grid({**named, **options})
        sizes = [int(g) for g in (grid if isinstance(grid, tuple | list) else (grid,))]
        tensors: dict[str, torch.Tensor] = {}
        arguments = {n: encode(v, n, tensors) for n, v in named.items()}
        head = {
            "do": "launch", "function": fn.fn.__qualname__, "file": file_of(fn), "grid": sizes, "arguments": arguments,
            "options": {k: encode(v, k, {}) for k, v in options.items()}, "globals": scalar_globals(fn),
        }  # fmt: skip
        if all(sizes):
            self.evaluator.launch(head, tensors)


class Compiled:
    """What a launch gives back: libraries keep it and launch again by ``kernel[grid](*arguments)``, without the
    constants that it was specialised for (or with them). What a compiler would know of it is not known here."""

    def __init__(self, recorder: Recorder, fn: JITFunction, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.recorder, self.fn = recorder, fn
        named, self.options = bind(fn, args, kwargs)
        self.constants = {p.name: named[p.name] for p in fn.params if p.is_constexpr}

    def __getitem__(self, grid: Any) -> Any:
        def launch(*args: Any) -> None:
            free = [n for n in self.fn.arg_names if len(args) == len(self.fn.arg_names) or n not in self.constants]
            if len(args) != len(free):
                raise TypeError(f"{self.fn.fn.__name__} takes {len(free)} arguments once compiled, got {len(args)}")
            named = {**self.constants, **dict(zip(free, args, strict=True))}
            self.recorder.launch(self.fn, grid, (), {**named, **self.options})

        return launch


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


def encode(v: Any, name: str, tensors: dict[str, torch.Tensor]) -> Any:
    """A launch argument as JSON; tensors go to ``tensors`` under a name. Raises KernelFault for what can't travel."""
    if isinstance(v, triton.language.constexpr):
        return encode(v.value, name, tensors)
    if isinstance(v, torch.Tensor):
        tensors[name] = v
        return {"tensor": name}
    if v is None or isinstance(v, bool | int | str):
        return {"=": v}
    if isinstance(v, float):
        return {"float": v.hex() if v == v and abs(v) != float("inf") else repr(v)}
    if isinstance(v, triton.language.dtype):
        return {"tl.dtype": v.name}
    if isinstance(v, torch.dtype):
        return {"torch.dtype": str(v).removeprefix("torch.")}
    if isinstance(v, tuple | list):
        return {"tuple": [encode(x, f"{name}.{i}", tensors) for i, x in enumerate(v)]}
    if isinstance(v, JITFunction):
        return {"function": [file_of(v), v.fn.__qualname__, scalar_globals(v)]}
    base = getattr(v, "base", None)
    if isinstance(base, torch.Tensor) and hasattr(v, "block_shape"):
        tensors[name] = base
        return {
            "descriptor": [
                name,
                list(v.shape),
                list(v.strides),
                list(v.block_shape),
                str(getattr(v, "padding", "zero")),
            ]
        }
    if isinstance(base, torch.Tensor) and hasattr(v, "dtype"):
        tensors[name] = base
        return {"reinterpret": [name, str(v.dtype).removeprefix("torch.")]}
    raise KernelFault(f"a launch argument of type {type(v).__name__} ('{name}') can't be evaluated here")


def file_of(fn: JITFunction) -> dict[str, Any]:
    """File of a jitted function with the hash of what it holds now, and the line where its definition begins (a file
    may define a name twice, in the branches of an ``if``)."""
    plain = inspect.unwrap(fn.fn)
    path = inspect.getsourcefile(plain)
    if not path or not Path(path).is_file():
        raise KernelFault(f"the source of {fn.fn.__name__} is not in a file, so its launches can't be evaluated")
    found = Path(path).stat()
    digest = hash_of(path, found.st_mtime_ns, found.st_size)
    return {"path": str(Path(path).resolve()), "sha256": digest, "line": plain.__code__.co_firstlineno}


@functools.lru_cache(maxsize=512)
def hash_of(path: str, changed: int, size: int) -> str:
    """Hash of a file that was last changed then."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def scalar_globals(fn: JITFunction, seen: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Among the module globals that a device function may read: plain constants, Triton's own functions and modules
    under whatever name, jitted functions of other files."""
    here, scope = fn.fn.__code__.co_filename, fn.fn.__globals__
    out = {n: stated(v, n, seen | {here}) for n, v in scope.items() if not n.startswith("__")}
    fixed = {n for n, a in scope.get("__annotations__", {}).items() if "constexpr" in str(getattr(a, "__name__", a))}
    return {n: {"constexpr": v} if n in fixed and "constexpr" not in v else v for n, v in out.items() if v is not None}


def stated(v: Any, name: str, seen: frozenset[str]) -> dict[str, Any] | None:
    """A global as JSON, or None for what device code can't use."""
    if isinstance(v, triton.language.constexpr):
        inner = stated(v.value, name, seen)
        return None if inner is None else {"constexpr": inner}
    if isinstance(v, bool | int | float | str | triton.language.dtype):
        try:
            return dict(encode(v, name, {}))
        except KernelFault:
            return None
    if isinstance(v, types.ModuleType):
        return {"triton": [v.__name__]} if v.__name__.startswith("triton.language") else None
    body = v.fn if isinstance(v, JITFunction) else v
    if not isinstance(body, types.FunctionType):
        return None
    if body.__module__.startswith("triton.language"):
        return {"triton": [body.__module__, body.__qualname__]} if "<" not in body.__qualname__ else None
    if isinstance(v, JITFunction) and Path(body.__code__.co_filename).is_file():
        inner = {} if body.__code__.co_filename in seen else scalar_globals(v, seen)
        return {"function": [file_of(v), body.__qualname__, inner]}
    return None
