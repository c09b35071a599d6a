"""Which functions that a checker leans on did the candidate replace in its own process?

The answer comes from the candidate's process, so it may be forged, and nothing that it patches there reaches the
parent, which compares and keeps time. It is evidence of intent: honest kernels have no business there. Source: cheats
seen on public leaderboards (patched ``torch.allclose``, ``torch.cuda.Event``, clocks).
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
import types
from importlib.machinery import PathFinder
from typing import Any

WATCHED = (
    "torch.allclose",
    "torch.isclose",
    "torch.equal",
    "torch.testing.assert_close",
    "torch.testing.assert_allclose",
    "torch.Tensor.allclose",
    "torch.Tensor.equal",
    "torch.Tensor.__eq__",
    "torch.Tensor.clone",
    "torch.Tensor.copy_",
    "torch.Tensor.data_ptr",
    "torch.Tensor.untyped_storage",
    "torch.Tensor.detach",
    "torch.autograd.grad",
    "torch.empty",
    "torch.empty_like",
    "torch.empty_strided",
    "torch.manual_seed",
    "torch.randn",
    "torch.rand",
    "torch.cuda.Event",
    "torch.cuda.Event.record",
    "torch.cuda.Event.elapsed_time",
    "torch.cuda.synchronize",
    "torch.cuda.current_stream",
    "numpy.allclose",
    "numpy.testing.assert_allclose",
    "time.time",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.process_time",
    "time.time_ns",
    "statistics.mean",
    "statistics.median",
    "statistics.stdev",
    "builtins.print",
    "builtins.isinstance",
    "builtins.float",
    "os._exit",
    "json.dumps",
    "json.loads",
    "socket.socket.sendmsg",
    "socket.socket.sendall",
    "socket.socket.recvmsg",
    "mmap.mmap",
    "os.memfd_create",
    "triton.testing.do_bench",
    "torch.utils._python_dispatch.TorchDispatchMode.__enter__",
    "torch.utils._python_dispatch.TorchDispatchMode.__exit__",
)


def lookup(name: str) -> Any:
    """What stands under a dotted name now; None if there is nothing, or its module was never imported."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:cut]))
        if found is None:
            continue
        for p in parts[cut:]:
            found = found.__dict__.get(p) if isinstance(found, types.ModuleType) else getattr(found, p, None)
        return found
    return None


def snapshot() -> dict[str, Any]:
    """The watched functions as they are before the candidate's file runs."""
    for name in ("torch.testing", "statistics", "numpy.testing"):
        importlib.import_module(name)
    return {name: lookup(name) for name in WATCHED}


def replaced(before: dict[str, Any]) -> list[str]:
    """Names under which something else stands now. What was not imported before doesn't count."""
    return [n for n, f in before.items() if f is not None and not _same(lookup(n), f)]


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return isinstance(b, types.MethodType | types.MethodWrapperType | types.BuiltinMethodType) and builtins.bool(a == b)


def hooks_replaced(recorder: Any) -> list[str]:
    """Launch hooks that are not the recorder's any more (``recorder``: its class; None: launches are not recorded)."""
    if recorder is None:
        return []
    codes = {c for c in recorder.install.__code__.co_consts if isinstance(c, types.CodeType)}
    hooks = {"triton.runtime.jit": ("JITFunction", "run"), "triton.runtime.autotuner": ("Autotuner", "_bench")}
    return [f"{module}.{owner}.{hook}" for module, (owner, hook) in hooks.items() if module in sys.modules
            and getattr(getattr(getattr(sys.modules[module], owner), hook), "__code__", None) not in codes]  # fmt: skip


class _Finder(PathFinder):
    """The import system's path finder, on a machine where Tilewright is not installed."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
        return None if fullname.split(".")[0] == "tilewright" else PathFinder.find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, *args: Any, **kwargs: Any) -> Any:
        found = PathFinder.find_distributions(*args, **kwargs)
        return (d for d in found if (d.metadata["Name"] or "").lower() != "tilewright")


def hide_tilewright() -> None:
    """A candidate must not be able to tell that it is being checked: our modules, our finders and our import path
    go."""
    for name in [m for m in sys.modules if m.split(".")[0] == "tilewright"]:
        del sys.modules[name]
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != ours or p.endswith("site-packages")]
    kept = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")
            and "editable" not in getattr(f, "__name__", "").lower()]  # fmt: skip
    _Finder.__name__ = _Finder.__qualname__ = "PathFinder"
    sys.meta_path[:] = [_Finder if f is PathFinder else f for f in kept]
    sys.argv[:] = [""]
