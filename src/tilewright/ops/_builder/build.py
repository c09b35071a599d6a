"""From an Operator to ``torch.ops.tilewright.<name>``: implementation, fake, autograd.

Two routes behind one operator. ``kernel``: CUDA tensors that the kernel takes. ``reference``: all else; its results that
are kept for backward are empty, and its backward differentiates the reference from the arguments. Which route a call takes
depends on devices, dtypes and sizes alone, so that fake tensors take the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import InternalError
from .operator import Like, Operator

SPACE = "tilewright"
LIBRARY = torch.library.Library(SPACE, "FRAGMENT")


@dataclass(frozen=True)
class Argument:
    """One argument of a schema."""

    name: str
    type: str

    @property
    def tensor(self) -> bool:
        return self.type.startswith("Tensor")


def parsed(schema: str) -> list[Argument]:
    """Arguments of a schema: ``"(Tensor x, Tensor? mask, int axis) -> Tensor"``."""
    inside = schema[schema.index("(") + 1 : schema.index("->")].rstrip().rstrip(")")
    return [Argument(a.split()[-1], " ".join(a.split()[:-1])) for a in inside.split(",") if a.strip()]


class Built:
    """A registered operator."""

    def __init__(self, op: Operator):
        self.op = op
        self.arguments = parsed(op.schema)
        self.names = [a.name for a in self.arguments]
        self.options = [a.name for a in self.arguments if not a.tensor]
        LIBRARY.define(op.name + op.schema)
        LIBRARY.impl(op.name, self._run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{SPACE}::{op.name}", self._fake, lib=LIBRARY)
        self.call = getattr(getattr(torch.ops, SPACE), op.name).default
        if op.backward is not None:
            self._define_backward()

    def __call__(self, *arguments: Any) -> Any:
        """The public results; the arguments are checked."""
        self.op.check(*arguments)
        got = self.call(*arguments)
        if self.op.public == len(self.op.result_names):
            return got
        return _one(got[: self.op.public])

    def route(self, arguments: Sequence[Any]) -> str:
        """``kernel``, or why the reference runs."""
        device = next(a for a in arguments if isinstance(a, torch.Tensor)).device.type
        if device != "cuda":
            return f"the kernel needs CUDA, the tensors lie on {device}"
        return self.op.outside(*arguments) or "kernel"

    def _run(self, *arguments: Any) -> Any:
        if self.route(arguments) == "kernel":
            return _one(self.op.forward(*arguments))
        got = self.op.reference(*arguments)
        public = got if isinstance(got, tuple) else (got,)
        fresh = [_fresh(t, arguments) for t in public]
        return _one((*fresh, *self._empty(arguments)))

    def _empty(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        first = _first(arguments)
        return [first.new_empty(0, dtype=k.dtype) for k in self.op.results(*arguments)[self.op.public :]]

    def _fake(self, *arguments: Any) -> Any:
        likes, first = self.op.results(*arguments), _first(arguments)
        if self.route(arguments) != "kernel":
            likes = [k if i < self.op.public else Like((0,), k.dtype) for i, k in enumerate(likes)]
        return _one(tuple(first.new_empty(k.shape, dtype=k.dtype) for k in likes))

    # --- backward -----------------------------------------------------------------------------------------------

    def _define_backward(self) -> None:
        op, lib = self.op, LIBRARY
        grads = [f"Tensor? grad_{i}" for i in range(op.public)]
        returns = ", ".join(["Tensor"] * len(op.differentiable))
        saved = [f"Tensor? saved_{n}" for n in op.saves]
        options = [f"{a.type} {a.name}" for a in self.arguments if not a.tensor]
        whole = [f"{a.type} {a.name}" for a in self.arguments]
        kernel = f"{op.name}_backward"
        reference = f"{op.name}_backward_reference"
        for name, given in ((kernel, [*saved, *options]), (reference, whole)):
            lib.define(f"{name}({', '.join([*grads, *given, 'bool[] needs'])}) -> ({returns})")
            # Gradients of gradients are refused, with a reason, rather than silently zero.
            torch.library.register_autograd(f"{SPACE}::{name}", self._refuse, lib=lib)
        lib.impl(kernel, self._kernel_backward, "CompositeExplicitAutograd")
        lib.impl(reference, self._reference_backward, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{SPACE}::{kernel}", self._fake_kernel_backward, lib=lib)
        torch.library.register_fake(f"{SPACE}::{reference}", self._fake_reference_backward, lib=lib)
        torch.library.register_autograd(f"{SPACE}::{op.name}", self._backward, setup_context=self._setup, lib=lib)
        self._ops = {n: getattr(getattr(torch.ops, SPACE), n).default for n in (kernel, reference)}

    def _setup(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.kernel = self.route(inputs) == "kernel"
        given = dict(zip(self.names, inputs, strict=True))
        results = dict(zip(self.op.result_names, output if isinstance(output, tuple) else (output,), strict=True))
        ctx.options = [given[n] for n in self.options]
        ctx.set_materialize_grads(False)
        if self.op.public < len(results):
            ctx.mark_non_differentiable(*list(results.values())[self.op.public :])
        if ctx.kernel:
            ctx.save_for_backward(*[(given | results)[n] for n in self.op.saves])
        else:
            ctx.save_for_backward(*[given[a.name] for a in self.arguments if a.tensor])

    def _backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        wanted = [bool(n) for n in ctx.needs_input_grad]
        needs = [wanted[self.names.index(n)] for n in self.op.differentiable]
        out: list[Any] = [None] * len(self.names)
        upstream = grads[: self.op.public]
        if all(g is None for g in upstream):
            return tuple(out)
        got = self._call_backward(ctx, upstream, needs)
        for name, need, grad in zip(self.op.differentiable, needs, got, strict=True):
            out[self.names.index(name)] = grad if need else None
        return tuple(out)

    def _call_backward(self, ctx: Any, upstream: Sequence[Any], needs: list[bool]) -> tuple[torch.Tensor, ...]:
        if ctx.kernel:
            got = self._ops[f"{self.op.name}_backward"](*upstream, *ctx.saved_tensors, *ctx.options, needs)
        else:
            tensors, options = iter(ctx.saved_tensors), iter(ctx.options)
            whole = [next(tensors if a.tensor else options) for a in self.arguments]
            got = self._ops[f"{self.op.name}_backward_reference"](*upstream, *whole, needs)
        return got if isinstance(got, tuple) else (got,)

    def _split(self, arguments: Sequence[Any], middle: int) -> tuple[Sequence[Any], Sequence[Any], list[str]]:
        """Incoming gradients, what follows, and the names whose gradient is needed."""
        p = self.op.public
        needs = [n for n, need in zip(self.op.differentiable, arguments[p + middle], strict=True) if need]
        return arguments[:p], arguments[p : p + middle], needs

    def _kernel_backward(self, *arguments: Any) -> Any:
        assert self.op.backward is not None
        grads, rest, needs = self._split(arguments, len(self.op.saves) + len(self.options))
        saved = dict(zip(self.op.saves, rest, strict=False))
        options = dict(zip(self.options, rest[len(self.op.saves) :], strict=True))
        got = self.op.backward(grads, saved, options, needs)
        if missing := [n for n in needs if n not in got]:
            raise InternalError(f"{self.op.name}: backward gave no gradient of {', '.join(missing)}")
        return _one(tuple(got[n] if n in needs else _nothing(grads) for n in self.op.differentiable))

    def _reference_backward(self, *arguments: Any) -> Any:
        grads, whole, needs = self._split(arguments, len(self.arguments))
        at = [self.names.index(n) for n in needs]

        def public(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            full = list(whole)
            for i, t in zip(at, given, strict=True):
                full[i] = t
            got = self.op.reference(*full)
            return got if isinstance(got, tuple) else (got,)

        results, vjp = torch.func.vjp(public, *[whole[i].detach() for i in at])[:2]
        back = vjp(tuple(torch.zeros_like(r) if g is None else g for r, g in zip(results, grads, strict=True)))
        found = {n: g.contiguous() for n, g in zip(needs, back, strict=True)}
        return _one(tuple(found.get(n, _nothing(grads)) for n in self.op.differentiable))

    def _fake_reference_backward(self, *arguments: Any) -> Any:
        grads, whole, needs = self._split(arguments, len(self.arguments))
        like = dict(zip(self.names, whole, strict=True))
        return self._fake_gradients(grads, like, needs)

    def _fake_kernel_backward(self, *arguments: Any) -> Any:
        grads, rest, needs = self._split(arguments, len(self.op.saves) + len(self.options))
        saved = dict(zip(self.op.saves, rest, strict=False))
        like = {n: saved[self.op.gradient_like.get(n, n)] for n in needs}
        return self._fake_gradients(grads, like, needs)

    def _fake_gradients(self, grads: Sequence[Any], like: dict[str, Any], needs: list[str]) -> Any:
        return _one(tuple(like[n].new_empty(like[n].shape) if n in needs else _nothing(grads)
                          for n in self.op.differentiable))  # fmt: skip

    def _refuse(self, ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            f"{self.op.name}: gradients of gradients are not supported (its contract refuses double backward)\n"
            f"Try: its PyTorch reference in {self.op.folder}, where create_graph=True is needed"
        )


def _first(arguments: Sequence[Any]) -> torch.Tensor:
    return next(a for a in arguments if isinstance(a, torch.Tensor))


def _nothing(grads: Sequence[Any]) -> torch.Tensor:
    """What stands for a gradient that nobody needs."""
    return next(g for g in grads if g is not None).new_empty(0)


def _fresh(t: torch.Tensor, arguments: Sequence[Any]) -> torch.Tensor:
    """A result of the reference in the promised form: contiguous, and no argument's memory."""
    t = t.contiguous()
    owned = any(
        isinstance(a, torch.Tensor) and a.untyped_storage()._cdata == t.untyped_storage()._cdata for a in arguments
    )
    return t.clone() if owned else t


def _one(results: tuple[torch.Tensor, ...]) -> Any:
    return results[0] if len(results) == 1 else results
