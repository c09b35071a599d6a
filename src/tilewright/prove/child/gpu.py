"""The few device calls that timing needs. Taken hold of before user code runs, so that none can be replaced; tests put
another object in its place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from ...task import tree

_now = time.perf_counter_ns
KEEP = 1 << 30


class Cuda:
    """A CUDA device as the timing child sees it. Times in seconds."""

    def __init__(self) -> None:
        c = torch.cuda
        self._event, self._sync, self._sleep = c.Event, c.synchronize, getattr(c, "_sleep", None)
        self._graph, self._capture, self._stream, self._current = c.CUDAGraph, c.graph, c.Stream, c.current_stream
        self._stream_of, self._pool = c.stream, c.graph_pool_handle
        self._record, self._elapsed = c.Event.record, c.Event.elapsed_time
        self._reserved, self._allocated, self._release = c.memory_reserved, c.memory_allocated, c.empty_cache
        self.device = torch.device("cuda")

    def up(self, t: torch.Tensor) -> torch.Tensor:
        """A tensor of the same layout on the device, with the same values."""
        flat = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage()).to(self.device)
        return torch.empty(0, dtype=t.dtype, device=self.device).set_(
            flat.untyped_storage(), t.storage_offset(), t.shape, t.stride()
        )

    def again(self, t: torch.Tensor) -> torch.Tensor:
        """A copy at another address, of the same layout."""
        return t.clone(memory_format=torch.preserve_format)

    def sync(self) -> None:
        """Wait for everything on the device, whatever stream it is on."""
        self._sync()

    def time(self, call: Callable[[], Any], head_start: int) -> tuple[Any, float, float]:
        """Call between two events of the current stream: its result, the time between the events, and how long the host
        took to queue it. ``head_start``: clock cycles for which the device is kept busy before, so that the call is queued
        when the first event is reached."""
        begin, end = self._event(enable_timing=True), self._event(enable_timing=True)
        if head_start and self._sleep is not None:
            self._sleep(head_start)
        self._record(begin)
        began = _now()
        result = call()
        host = (_now() - began) / 1e9
        self._record(end)
        self._sync()
        return result, float(self._elapsed(begin, end)) / 1e3, host

    def trim(self) -> None:
        """Give back memory that torch keeps for later, where it is so much that other processes may lack it."""
        if self._reserved() - self._allocated() > KEEP:
            self._sync()
            self._release()

    def trash(self, nbytes: int) -> torch.Tensor:
        """Memory to be written over, so that nothing else stays in the cache."""
        return torch.zeros(nbytes, dtype=torch.uint8, device=self.device)

    def forget(self, trash: torch.Tensor) -> None:
        """Empty the L2 cache: write over it, then give back lines that were marked as persisting."""
        trash.add_(1)
        self._sync()
        if (reset := persisting_reset()) is not None:
            reset()

    def capture(self, call: Callable[[], Any], warmups: int) -> tuple[Callable[[], None], Any]:
        """The call as a graph: warmed up on a side stream, captured with memory of its own. Replaying it, and what it
        writes its results to."""
        side = self._stream()
        side.wait_stream(self._current())
        with self._stream_of(side):
            for _ in range(warmups):
                call()
        self._current().wait_stream(side)
        self._sync()
        graph = self._graph()
        with self._capture(graph, pool=self._pool()):
            result = call()
        return graph.replay, result

    def peak(self, call: Callable[[], Any]) -> tuple[int, int]:
        """Most bytes held by torch during a call, and what of it is beyond what was held before."""
        self._sync()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        self._sync()
        most = torch.cuda.max_memory_allocated()
        return most, most - before


class Host:
    """Host memory in a device's place, so that everything but the device calls is tried without one."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")

    def up(self, t: torch.Tensor) -> torch.Tensor:
        return t.clone(memory_format=torch.preserve_format)

    again = up

    def sync(self) -> None:
        pass

    def time(self, call: Callable[[], Any], head_start: int) -> tuple[Any, float, float]:
        began = _now()
        result = call()
        return result, (_now() - began) / 1e9, 0.0

    def trim(self) -> None:
        pass

    def trash(self, nbytes: int) -> torch.Tensor:
        return torch.zeros(nbytes, dtype=torch.uint8)

    def forget(self, trash: torch.Tensor) -> None:
        trash.add_(1)

    def capture(self, call: Callable[[], Any], warmups: int) -> tuple[Callable[[], None], Any]:
        """A replay computes anew, into the tensors of the captured call."""
        for _ in range(warmups):
            call()
        kept = call()
        places = tree.flatten(kept)[1]

        def replay() -> None:
            for name, t in tree.flatten(call())[1].items():
                places[name].copy_(t)

        return replay, kept

    def peak(self, call: Callable[[], Any]) -> tuple[int, int]:
        call()
        return 0, 0


def persisting_reset() -> Callable[[], None] | None:
    """``cudaCtxResetPersistingL2Cache`` of the runtime that torch has loaded; None where it can't be found."""
    import ctypes

    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            function = ctypes.CDLL(name).cudaCtxResetPersistingL2Cache
        except (OSError, AttributeError):
            continue
        return lambda: function() and None  # a device without such lines answers with an error, which is none here
    return None
