"""What a CUDA device can do at most: copy and read by working set, matrix products by dtype, the cost of a launch.

``api`` is torch as far as it is used here; tests put a stand-in in its place.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import torch

from ..errors import EnvironmentProblem
from . import gpu_state
from .ceilings import _falling
from .record import Ceilings

SETS = tuple(1 << k for k in (22, 24, 25, 26, 28, 30, 32))
DTYPES = ("bfloat16", "float16", "float32", "float64")
MATRIX = 8192
ROUNDS = 12


def measure(device: str = "cuda", api: Any = None, *, sets: tuple[int, ...] = SETS, matrix: int = MATRIX) -> Ceilings:
    """Ceilings of a device. Raises EnvironmentProblem where there is none."""
    api = api or Events(device)
    if not api.available():
        raise EnvironmentProblem("no CUDA device to be measured", remedy="leave out --device cuda")
    free = api.free_bytes()
    read, copy = {}, {}
    for n in sets:
        if 2 * n < free:
            read[n], copy[n] = _bandwidths(api, n)
    rates = {d: _rate(api, d, matrix if d != "float64" else matrix // 2) for d in DTYPES}
    api.release()
    return Ceilings(
        device="cuda", name=api.name(), read=_falling(read), copy_=_falling(copy), rates=rates, cache_bytes=api.cache(),
        launch=min(api.time(lambda: None) for _ in range(ROUNDS)), clocks=gpu_state.snapshot(device), threads=0,
        method="best of many rounds between events: sums, copies, matrix products (float32 with TF32 where it is faster)",
        measured=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _bandwidths(api: Any, n: int) -> tuple[float, float]:
    """Bytes a second read, and copied (read and written together), with a working set of ``n`` bytes."""
    a = api.ones(n // 4, "float32")
    half = a.numel() // 2
    r = _best(api, lambda: a.sum())
    c = _best(api, lambda: a[:half].copy_(a[half : 2 * half]))
    return n / r, n / c


def _rate(api: Any, dtype: str, n: int) -> float:
    x, y = api.random(n, dtype), api.random(n, dtype)
    times = [_best(api, lambda: x @ y)]
    if dtype == "float32":
        with api.tf32():
            times.append(_best(api, lambda: x @ y))
    return 2 * n**3 / min(times)


def _best(api: Any, call: Callable[[], Any]) -> float:
    call()
    return float(min(api.time(call) for _ in range(ROUNDS)))


class Events:
    """torch.cuda, as far as ceilings need it."""

    def __init__(self, device: str):
        self.device = device

    def available(self) -> bool:
        return torch.cuda.is_available()

    def name(self) -> str:
        return torch.cuda.get_device_name(self.device)

    def cache(self) -> int:
        return int(getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", 0))

    def free_bytes(self) -> int:
        return int(torch.cuda.mem_get_info(self.device)[0])

    def release(self) -> None:
        """Give memory back: what is timed next has a process of its own."""
        torch.cuda.empty_cache()

    def ones(self, n: int, dtype: str) -> torch.Tensor:
        return torch.ones(n, dtype=getattr(torch, dtype), device=self.device)

    def random(self, n: int, dtype: str) -> torch.Tensor:
        return torch.randn(n, n, device=self.device).to(getattr(torch, dtype))

    def tf32(self) -> Any:
        return _Tf32()

    def time(self, call: Callable[[], Any]) -> float:
        """Seconds between events around a call that is queued while the device is busy."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(200_000)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1e3


class _Tf32:
    def __enter__(self) -> None:
        self.before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True

    def __exit__(self, *_: object) -> None:
        torch.backends.cuda.matmul.allow_tf32 = self.before
