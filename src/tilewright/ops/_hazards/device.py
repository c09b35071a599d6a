"""Hazards that need a GPU: the kernel's route, graphs, devices, TF32."""

from __future__ import annotations

import torch

from . import hazard
from .case import Case, same


@hazard(17, device="cuda")
def takes_the_kernel(case: Case) -> str | None:
    """A CUDA call runs the kernel; where the contract sends it to the reference, it says why."""
    route = case.built.route(case.passed_on(case.arguments()))
    return None if route == "kernel" else route


@hazard(16, device="cuda")
def graph_replay(case: Case) -> None:
    """Captured in a CUDA graph and replayed on new contents, a call gives what a plain call on them gives."""
    static, new = case.arguments(), Case(case.built, case.call, case.dtype, case.device, case.seed + 7).arguments()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        case.public(**{n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in static.items()})
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        captured = case.public(**static)
    for n, v in static.items():
        if isinstance(v, torch.Tensor):
            v.copy_(new[n])
    graph.replay()
    torch.cuda.synchronize()
    for got, wanted in zip(captured, case.public(**new), strict=True):
        same(got, wanted, "replayed")


@hazard(15, device="cuda")
def other_current_device(case: Case) -> str | None:
    """Tensors on one device while another one is current."""
    if torch.cuda.device_count() < 2:
        return "there is one GPU"
    plain = case.public(**case.arguments())
    with torch.cuda.device(1):
        for got, wanted in zip(case.public(**case.arguments()), plain, strict=True):
            same(got, wanted, "with another current device")
    return None


@hazard(20, device="cuda")
def tf32(case: Case) -> None:
    """PyTorch's switch for TF32 does not change the bits: a kernel that uses it says so in its contract."""
    before = torch.backends.cuda.matmul.allow_tf32
    found = []
    try:
        for allowed in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            found.append(case.public(**case.arguments()))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    for off, on in zip(*found, strict=True):
        same(on, off, "with TF32 allowed")


@hazard(13, device="cuda")
def written(case: Case) -> str | None:
    """Results don't depend on what fresh memory held before."""
    if case.built.op.mutates:
        return "it makes no results of its own"
    plain = [r.clone() for r in case.public(**case.arguments())]
    poison = [
        torch.full((max(r.numel(), 1),), float("nan"), device=case.device, dtype=r.dtype) for r in plain for _ in "12"
    ]
    torch.cuda.synchronize()
    del poison
    for got, wanted in zip(case.public(**case.arguments()), plain, strict=True):
        same(got, wanted, "on poisoned memory")
    return None
