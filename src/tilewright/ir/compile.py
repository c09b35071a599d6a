"""Triton function + arguments → TTIR, on a machine without a GPU.

The specialisation is the one that a launch would use: Triton's own binder is asked, so divisibility by 16, the value 1
and pointer alignment become attributes as they would on the device. Only the first stage runs (about 10 ms); the whole
pipeline down to the cubin is ``binary``, for what only the cubin tells (registers, spills, shared memory).
"""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import EnvironmentProblem, KernelError, TilewrightError
from .program import Program
from .readers import ttir

CUDA_90 = ("cuda", 90, 32)


@dataclass(frozen=True)
class Compiled:
    """``program`` and what it was compiled for. ``names`` are the runtime arguments in the order of the IR's;
    ``constexprs`` the values fixed in it; ``signature`` Triton's types and attributes; ``target`` the device."""

    program: Program
    name: str
    names: tuple[str, ...]
    constexprs: dict[str, Any]
    signature: dict[str, str]
    attributes: dict[str, Any]
    target: tuple[str, int | str, int]
    options: dict[str, Any]
    source: Any = None


@dataclass(frozen=True)
class Pointer:
    """A pointer argument where there is no tensor: Triton's spelling of the element (``fp16``) and its alignment."""

    dtype: Any
    aligned: bool = True

    def data_ptr(self) -> int:
        return 0 if self.aligned else 1


_memory: dict[str, Compiled] = {}
_binders: dict[tuple[int, tuple[Any, ...]], tuple[Any, Any]] = {}


def compile(
    fn: Any,
    args: tuple[Any, ...] | list[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    target: tuple[str, int | str, int] = CUDA_90,
    cache: str | os.PathLike[str] | None = None,
) -> Compiled:
    """Compiles ``fn`` (a ``@triton.jit`` function) for these arguments: tensors or ``Pointer`` for pointers, Python
    numbers, and constexprs, by position or by name; options such as ``num_warps`` by name. ``cache`` is a folder for
    TTIR text. Raises KernelError with Triton's message and the line where the kernel doesn't compile."""
    backend, binder = _binder(fn, target)
    kwargs = dict(kwargs or {})
    kwargs.setdefault("debug", False)
    bound, spec, options = _bind(fn, backend, binder, tuple(args), kwargs)
    options, signature, constexprs, attrs = _packed(fn, backend, kwargs, bound, spec, options)
    key = _key(fn, signature, constexprs, attrs, options, target)
    found = _memory.get(key)
    if found is not None:
        return found
    text = _from_disk(cache, key)
    source = _ast_source(fn, signature, constexprs, attrs)
    if text is None:
        text = _lower(fn, source, backend, options, target)
        _to_disk(cache, key, text)
    names = tuple(n for n, t in signature.items() if t != "constexpr")
    fixed = {fn.arg_names[path[0]]: value for path, value in constexprs.items() if len(path) == 1}
    out = Compiled(ttir.read(text), fn.__name__, names, fixed, dict(signature), {str(k): v for k, v in attrs.items()},
                   target, dict(options.__dict__), source)  # fmt: skip
    if len(_memory) > 512:
        _memory.clear()
    _memory[key] = out
    return out


def binary(compiled: Compiled) -> Any:
    """Triton's CompiledKernel with every stage (``.asm['ptx']``, ``['cubin']``, ``.metadata``)."""
    import triton
    from triton.backends.compiler import GPUTarget

    return triton.compile(compiled.source, target=GPUTarget(*compiled.target), options=_plain(compiled.options))


def unwrap(fn: Any) -> Any:
    """The JITFunction inside autotune and heuristics wrappers."""
    while not hasattr(fn, "signature") or not hasattr(fn, "params"):
        if not hasattr(fn, "fn"):
            raise KernelError(f"{fn!r} is no @triton.jit function")
        fn = fn.fn
    return fn


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in options.items() if k not in ("extern_libs", "backend_name", "arch")}


def _binder(fn: Any, target: tuple[Any, ...]) -> tuple[Any, Any]:
    key = (id(fn), target)
    if key not in _binders:
        try:
            from triton.backends.compiler import GPUTarget
            from triton.compiler.compiler import make_backend
            from triton.runtime.jit import create_function_from_signature
        except ImportError as e:
            raise EnvironmentProblem(f"Triton can't be imported: {e}", remedy="pip install 'triton>=3.6'") from None
        backend = make_backend(GPUTarget(*target))
        _binders[key] = backend, (create_function_from_signature(fn.signature, fn.params, backend), fn)
    backend, (binder, _) = _binders[key]
    return backend, binder


def _bind(fn: Any, backend: Any, binder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    try:
        return binder(*args, **kwargs)
    except TypeError as e:
        raise KernelError(f"arguments don't fit kernel '{fn.__name__}': {e}", where=where_of(fn)) from None


def _packed(fn: Any, backend: Any, kwargs: dict[str, Any], bound: Any, spec: Any, options: Any) -> tuple[Any, ...]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn._pack_args(backend, kwargs, bound, spec, options)
    except KeyError as e:
        raise KernelError(f"arguments don't fit kernel '{fn.__name__}': {e.args[0]}", where=where_of(fn)) from None


def _ast_source(fn: Any, signature: Any, constexprs: Any, attrs: Any) -> Any:
    from triton.compiler.compiler import ASTSource

    return ASTSource(fn, signature, constexprs, attrs)


def _lower(fn: Any, source: Any, backend: Any, options: Any, target: tuple[Any, ...]) -> str:
    """TTIR text: Triton's front end and its first stage."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    try:
        module = source.make_ir(GPUTarget(*target), options, backend.get_codegen_implementation(options),
                                backend.get_module_map(), context)  # fmt: skip
        stages: dict[str, Any] = {}
        backend.add_stages(stages, options, source.language)
        module = stages["ttir"](module, {})
        return str(module)
    except TilewrightError:
        raise
    except Exception as e:
        line = getattr(getattr(e, "node", None), "lineno", None)
        first = _def_line(fn)
        where = where_of(fn) if line is None else f"{_file(fn)}:{first + line - 1}"
        cause = e.__cause__ or e.__context__
        reason = str(getattr(e, "error_message", None) or "")
        reason = reason if len(reason.split()) > 3 else _reason(cause or e)
        raise KernelError(f"kernel '{fn.__name__}' doesn't compile: {reason.strip()}", where=where) from e


def _reason(e: BaseException) -> str:
    """What an exception says, with its kind where the text alone wouldn't tell."""
    return str(e) if len(str(e).split()) > 3 else f"{type(e).__name__}: {e}"


def _file(fn: Any) -> str:
    return getattr(getattr(fn.fn, "__code__", None), "co_filename", "?")


def where_of(fn: Any) -> str:
    """``file:line`` of a kernel's definition."""
    return f"{_file(fn)}:{_def_line(fn)}"


def _def_line(fn: Any) -> int:
    """Line of ``def``, below the decorators: what Triton counts a kernel's lines from."""
    first = getattr(fn, "starting_line_number", 1)
    for i, line in enumerate(getattr(fn, "raw_src", None) or []):
        if line.strip().startswith("def "):
            return first + i
    return first


def _key(fn: Any, signature: Any, constexprs: Any, attrs: Any, options: Any, target: Any) -> str:
    import triton

    parts = [triton.__version__, fn.cache_key, signature, _show(constexprs), attrs, target,
             {k: v for k, v in sorted(options.__dict__.items()) if k not in _BELOW}]  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()


_BELOW = frozenset({"num_warps", "num_stages", "extern_libs", "maxnreg"})


def _show(constexprs: Any) -> list[Any]:
    return [(k, getattr(v, "cache_key", None) or repr(v)) for k, v in sorted(constexprs.items())]


def _from_disk(cache: Any, key: str) -> str | None:
    if cache is None:
        return None
    path = Path(cache) / f"{key}.ttir"
    return path.read_text() if path.is_file() else None


def _to_disk(cache: Any, key: str, text: str) -> None:
    if cache is None:
        return
    Path(cache).mkdir(parents=True, exist_ok=True)
    part = Path(cache) / f"{key}.{os.getpid()}.part"
    part.write_text(text)
    part.replace(Path(cache) / f"{key}.ttir")
