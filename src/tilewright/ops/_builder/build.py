"""From an Operator to ``torch.ops.tilewright.<name>``: implementation, fake, autograd.

Two routes behind one operator. ``kernel``: CUDA tensors that the kernel takes. ``reference``: all else; its results that
are kept for backward are empty, and its backward differentiates the reference from the arguments. Which route a call takes
depends on devices, dtypes and sizes alone, so that fake tensors take the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import direct
from .arguments import wrong
from .backward import Backward
from .operator import Like, Operator
from .schema import first, fresh, many, one, parsed, validate

SPACE = "tilewright"
LIBRARY = torch.library.Library(SPACE, "FRAGMENT")


class Built:
    """A registered operator: calling it checks the arguments and gives the public results."""

    def __init__(self, op: Operator):
        self.op = op
        self.arguments = parsed(op.schema)
        validate(op, self.arguments)
        self.names = [a.name for a in self.arguments]
        self.options = [a.name for a in self.arguments if not a.tensor]
        self.back: Backward | None = None
        self.function: Any = None
        if op.mutates:
            self._define_in_place()
        else:
            self._define()
        self.call = getattr(getattr(torch.ops, SPACE), op.name).default

    def __call__(self, *arguments: Any) -> Any:
        self.op.check(*arguments)
        if self.op.mutates:
            return self._in_place(arguments)
        plain = not direct.watched(arguments) and self.route(arguments) == "kernel"
        got = direct.call(self, arguments) if plain else many(self.call(*arguments))
        return one(got[: self.op.public])

    def launch(self, arguments: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """All results, by the kernel."""
        with direct.on(first(arguments).device):
            return self.op.forward(*arguments)

    def route(self, arguments: Sequence[Any]) -> str:
        """``kernel``, or why the reference runs."""
        device = first(arguments).device.type
        if device != "cuda":
            return f"the kernel needs CUDA, the tensors lie on {device}"
        return self.op.outside(*arguments) or "kernel"

    # --- with results -------------------------------------------------------------------------------------------

    def _define(self) -> None:
        LIBRARY.define(self.op.name + self.op.schema)
        LIBRARY.impl(self.op.name, self._run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{SPACE}::{self.op.name}", self._fake, lib=LIBRARY)
        if self.op.backward is not None:
            self.back = back = Backward(self, LIBRARY, SPACE)
            torch.library.register_autograd(f"{SPACE}::{self.op.name}", back.run, setup_context=back.setup, lib=LIBRARY)
            self.function = direct.function(self, back)

    def _run(self, *arguments: Any) -> Any:
        if self.route(arguments) == "kernel":
            return one(self.launch(arguments))
        public = [fresh(t, arguments) for t in many(self.op.reference(*arguments))]
        kept = self.op.results(*arguments)[self.op.public :]
        return one([*public, *(first(arguments).new_empty(0, dtype=k.dtype) for k in kept)])

    def _fake(self, *arguments: Any) -> Any:
        likes = self.op.results(*arguments)
        if self.route(arguments) != "kernel":
            likes = [k if i < self.op.public else Like((0,), k.dtype) for i, k in enumerate(likes)]
        return one([first(arguments).new_empty(k.shape, dtype=k.dtype) for k in likes])

    # --- in place -----------------------------------------------------------------------------------------------

    def _define_in_place(self) -> None:
        definition = torch.library.custom_op(
            f"{SPACE}::{self.op.name}", self._write, mutates_args=self.op.mutates, schema=self.op.schema
        )
        definition.register_fake(lambda *_: None)

    def _write(self, *arguments: Any) -> None:
        if self.route(arguments) == "kernel":
            self.launch(arguments)
            return
        given = dict(zip(self.names, arguments, strict=True))
        for name, values in zip(self.op.mutates, many(self.op.reference(*arguments)), strict=True):
            given[name].copy_(values)

    def _in_place(self, arguments: Sequence[Any]) -> Any:
        """The arguments that were written. An argument that autograd watches, or whose elements share memory, is refused."""
        given = dict(zip(self.names, arguments, strict=True))
        for name in self.op.mutates:
            t = given[name]
            if torch.is_grad_enabled() and t.requires_grad:
                raise wrong(self.op.name, name, "a tensor that requires a gradient",
                            "one that does not: it is written in place, and there is no backward",
                            "the form that returns new tensors, or torch.no_grad()")  # fmt: skip
            if any(size > 1 and stride == 0 for size, stride in zip(t.shape, t.stride(), strict=True)):
                raise wrong(self.op.name, name, f"expanded (strides {t.stride()})", "elements with memory of their own",
                            f"{name}.contiguous()")  # fmt: skip
        self.call(*arguments)
        return one([given[n] for n in self.op.mutates])
