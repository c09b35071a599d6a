"""Hazards of an operator inside PyTorch: registration, fakes, compilation, autocast, modes."""

from __future__ import annotations

import torch

from . import hazard
from .case import Case, same

CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


@hazard(17)
def opcheck(case: Case) -> None:
    """The registered operator keeps PyTorch's rules: schema, autograd registration, fake tensors, dynamic shapes."""
    arguments = case.arguments()
    for n in case.differentiable(arguments):
        arguments[n].requires_grad_()
    torch.library.opcheck(case.built.call, case.passed_on(arguments), test_utils=CHECKS)


@hazard(17)
def fake_strides(case: Case) -> None:
    """Fake results have the strides of real ones."""
    from torch._subclasses import FakeTensorMode

    real = case.public(**case.arguments())
    with FakeTensorMode() as mode:
        arguments = {n: mode.from_tensor(v) if isinstance(v, torch.Tensor) else v for n, v in case.arguments().items()}
    with mode:
        fake = case.public(**arguments)
    for r, f in zip(real, fake, strict=True):
        got, wanted = (f.shape, f.stride(), f.dtype), (r.shape, r.stride(), r.dtype)
        assert got == wanted, f"a fake result has (shape, strides, dtype) {got}, the real one {wanted}"


@hazard(17)
def compiled(case: Case) -> None:
    """``torch.compile(fullgraph=True)`` of a call and its backward gives the same bits as without."""
    arguments = case.arguments()
    names = case.differentiable(arguments)
    torch._dynamo.reset()
    plain = case.function
    whole = torch.compile(lambda **given: plain(**given), fullgraph=True, dynamic=True, backend="aot_eager")
    found = []
    for function in (plain, whole):
        own = {n: v.detach().clone().requires_grad_(n in names) if isinstance(v, torch.Tensor) else v
               for n, v in arguments.items()}  # fmt: skip
        results = function(**own)
        results = results if isinstance(results, tuple) else (results,)
        grads = torch.autograd.grad(results, [own[n] for n in names], case.cotangents(results)) if names else ()
        found.append([*results, *grads])
    for without, compiled in zip(*found, strict=True):
        same(compiled, without, "compiled")


@hazard(23)
def autocast(case: Case) -> None:
    """Autocast does what the contract says: results keep the dtype they have without it."""
    plain = case.public(**case.arguments())
    with torch.autocast(case.device.partition(":")[0], dtype=torch.bfloat16):
        under = case.public(**case.arguments())
    for p, u in zip(plain, under, strict=True):
        same(u, p, "under autocast")
