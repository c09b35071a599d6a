"""How a call is made on a device: plainly, behind a slow producer on another stream, or captured and replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

SLOW_CYCLES = 40_000_000  # about 20 ms on a card of 2 GHz
LOAD = 2048
WARM = 2


class CaptureRefused(RuntimeError):
    """The call can't be captured into a graph: a clear refusal, no wrong result."""

    tilewright_kind = "capture"


@contextlib.contextmanager
def on_stream(kind: str, prepare: Callable[[], None]) -> Iterator[None]:
    """``side``: within a new stream on which the inputs arrive late; ``late``: they arrive late on the current stream;
    ``load``: beside another stream that keeps the device busy; empty: as things are. ``prepare`` brings the inputs."""
    if kind == "side":
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            slowly(prepare)
            yield
        return
    if kind == "late":
        slowly(prepare)
    elif kind == "load":
        busy()
    yield


def slowly(prepare: Callable[[], None]) -> None:
    """The inputs are wrong until the current stream has come so far."""
    torch.cuda._sleep(SLOW_CYCLES)
    prepare()


def busy() -> None:
    """Work on another stream, enough to overlap with the call."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        a = torch.ones(LOAD, LOAD, device="cuda")
        for _ in range(4):
            a = a @ a * (1.0 / LOAD)


def captured(call: Callable[[], Any]) -> tuple[Any, Any]:
    """A graph of one call and what it returned. Warmed up on a side stream, as torch asks for. Raises CaptureRefused."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            result = call()
    except Exception as e:
        with contextlib.suppress(Exception):
            torch.cuda.synchronize()
        raise CaptureRefused(str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__) from None
    return graph, result


def far_apart(t: torch.Tensor, elements: int) -> torch.Tensor:
    """The same values with the first axis stepped so far that the last element lies beyond ``elements``. Raises
    MemoryError where the device has no room for it."""
    step = -(-elements // max(t.shape[0] - 1, 1))
    strides = (step, *torch.empty(t.shape[1:], device="meta").stride())
    span = 1 + sum((n - 1) * s for n, s in zip(t.shape, strides, strict=True))
    if t.device.type == "cuda" and span * t.element_size() > torch.cuda.mem_get_info()[0] * 0.9:
        raise MemoryError(f"{span * t.element_size() >> 30} GiB are not free on the device")
    made = torch.empty(span, dtype=t.dtype, device=t.device).as_strided(t.shape, strides)
    return made.copy_(t)
