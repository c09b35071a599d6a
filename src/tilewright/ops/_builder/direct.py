"""The short way of a plain call: from the public function to the kernel without PyTorch's dispatcher.

Going through an operator that is registered in Python costs several times what a launch does. A call that nothing watches
(no compiler, tracer, mode, transform, subclass or forward derivative) gives the same result without it; every other call
goes through the registered operator.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from .schema import many, one

if TYPE_CHECKING:
    from .backward import Backward
    from .build import Built

PLAIN = (torch.Tensor, torch.nn.Parameter)
_modes = torch._C._len_torch_dispatch_stack
_function_mode = torch._C._is_torch_function_mode_enabled
_transform = torch._C._functorch.peek_interpreter_stack
_tracing = torch._C._get_tracing_state


def watched(arguments: Sequence[Any]) -> bool:
    """Whether something wants to see the operator itself."""
    if torch.compiler.is_compiling():
        return True
    if _modes() or _function_mode() or _transform() is not None or _tracing() is not None:
        return True
    if forward_ad._current_level >= 0:
        return True
    return any(isinstance(t, torch.Tensor) and type(t) not in PLAIN for t in arguments)


def on(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Makes ``device`` the current one while a kernel is launched on its tensors."""
    if device.type != "cuda" or device.index in (None, torch.cuda.current_device()):
        return contextlib.nullcontext()
    return torch.cuda.device(device)


def function(built: Built, back: Backward) -> Any:
    """The operator as an autograd function whose forward and backward launch the kernel themselves."""

    def forward(ctx: Any, *arguments: Any) -> Any:
        results = built.launch(arguments)
        back.setup(ctx, arguments, one(results))
        return one(results)

    def backward(ctx: Any, *grads: Any) -> Any:
        return back.run(ctx, *grads, direct=not torch.is_grad_enabled())

    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(f"tilewright_{built.op.name}", (torch.autograd.Function,), parts)


def call(built: Built, arguments: Sequence[Any]) -> Any:
    """All results of a call on the kernel's route that nothing watches."""
    if built.back is not None and torch.is_grad_enabled():
        given = zip(built.arguments, arguments, strict=True)
        if any(a.tensor and t is not None and t.requires_grad for a, t in given):
            return many(built.function.apply(*arguments))
    return built.launch(arguments)
