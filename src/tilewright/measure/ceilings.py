"""What this machine can do at most, measured now: read and copy by working set, arithmetic by dtype.

A ceiling must not be too low, or an honest kernel would be refused: so it is the best of many short rounds of code that
does nothing else, with the widest vectors, and a working set counts as what the next smaller measured one could do.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch

from ..errors import EnvironmentProblem
from ..kernel.languages.native import compiler
from . import state
from .record import Ceilings

SETS = tuple(1 << k for k in (14, 16, 18, 19, 20, 21, 22, 24, 26, 28))
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared", "-std=gnu11", "-w")
UNROLL = 24  # operations of one step of the multiply-add loop, per element of a vector: 12 chains of two


def ceilings(device: str = "cpu") -> Ceilings:
    """Ceilings of ``device``. Raises EnvironmentProblem where they can't be measured (no compiler, no GPU)."""
    if device.startswith("cuda"):
        from .ceilings_cuda import measure

        return measure(device)
    return _cpu(_library())


def _library() -> Any:
    with tempfile.TemporaryDirectory(prefix="tw-ceilings-") as folder:
        target = Path(folder) / "ceilings.so"
        source = Path(__file__).parent / "ceilings.c"
        done = subprocess.run([compiler(), str(source), "-o", str(target), *FLAGS], capture_output=True, text=True)
        if done.returncode != 0:
            raise EnvironmentProblem("the code that measures this machine does not compile", detail=done.stderr[-2000:],
                                     remedy="install gcc or clang, or set CC")  # fmt: skip
        library = ctypes.CDLL(str(target))
    for name in ("best_read", "best_copy", "best_fma_float", "best_fma_double"):
        getattr(library, name).restype = ctypes.c_double
    return library


def _cpu(library: Any) -> Ceilings:
    read, copy = {}, {}
    with state.one_core():
        rates = {"float32": _rate(library.best_fma_float, 16), "float64": _rate(library.best_fma_double, 8)}
        for n in SETS:
            read[n], copy[n] = _bandwidths(library, n)
        rates["float32"] = max(rates["float32"], _matmul())
    return Ceilings(
        device="cpu", name=state.cpu_name(), read=_falling(read), copy_=_falling(copy), rates=rates, threads=1,
        cache_bytes=state.last_cache(), clocks=state.clocks(),
        method="best of many rounds on one core: wide loads, memcpy, 12 chains of multiply-add, torch matmul",
        measured=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _bandwidths(library: Any, n: int) -> tuple[float, float]:
    """Bytes a second read and copied (read and written together) with a working set of ``n`` bytes."""
    a, b = torch.ones(n, dtype=torch.uint8), torch.zeros(n // 2 or 1, dtype=torch.uint8)
    again, rounds = max(1, (4 << 20) // n), 12 if n < 1 << 26 else 4
    size, sink = ctypes.c_int64(n), ctypes.c_uint64()
    pa, pb = ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(b.data_ptr())
    r = library.best_read(pa, size, ctypes.c_int64(again), ctypes.c_int64(rounds), ctypes.byref(sink))
    c = library.best_copy(pb, pa, ctypes.c_int64(n // 2), ctypes.c_int64(again), ctypes.c_int64(rounds))
    return n / r, n / c


def _rate(function: Any, width: int) -> float:
    sink = ctypes.c_double()
    return width * UNROLL / float(function(ctypes.c_int64(20_000), ctypes.c_int64(60), ctypes.byref(sink)))


def _matmul(n: int = 512) -> float:
    import time

    x, y, best = torch.randn(n, n), torch.randn(n, n), float("inf")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(6):
            began = time.perf_counter()
            torch.mm(x, y)
            best = min(best, time.perf_counter() - began)
    finally:
        with contextlib.suppress(RuntimeError):
            torch.set_num_threads(threads)
    return 2 * n**3 / best


def _falling(rates: dict[int, float]) -> dict[int, float]:
    """A working set can do at least what a larger one was seen to do."""
    best, out = 0.0, {}
    for n in sorted(rates, reverse=True):
        best = max(best, rates[n])
        out[n] = best
    return dict(sorted(out.items()))


def at(rates: dict[int, float], working_set: int) -> float:
    """The ceiling for a working set: that of the next smaller one that was measured. 0 if none was."""
    below = [n for n in rates if n <= working_set]
    return rates[max(below)] if below else max(rates.values(), default=0.0)
