"""The backward of an operator: one registered operator a route, and the refusal of gradients of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...errors import InternalError
from . import direct as short
from .schema import first, many, one

if TYPE_CHECKING:
    from .build import Built


class Backward:
    """What ``register_autograd`` is given. ``name_backward`` launches the kernel on what was saved;
    ``name_backward_reference`` differentiates the reference from the arguments."""

    def __init__(self, built: Built, library: torch.library.Library, space: str):
        self.built, self.op = built, built.op
        self.names, self.options = built.names, built.options
        kernel, reference = f"{self.op.name}_backward", f"{self.op.name}_backward_reference"
        options = [f"{a.type} {a.name}" for a in built.arguments if not a.tensor]
        saved = [f"Tensor? saved_{n}" for n in self.op.saves]
        self._register(library, space, kernel, [*saved, *options], self._launch, self._fake_launch)
        self._register(library, space, reference, [f"{a.type} {a.name}" for a in built.arguments],
                       self._differentiate, self._fake_differentiate)  # fmt: skip
        self.kernel, self.reference = (getattr(getattr(torch.ops, space), n).default for n in (kernel, reference))

    def _register(self, library: Any, space: str, name: str, given: list[str], run: Any, fake: Any) -> None:
        grads = [f"Tensor? grad_{i}" for i in range(self.op.public)]
        returns = ", ".join(["Tensor"] * len(self.op.differentiable))
        library.define(f"{name}({', '.join([*grads, *given, 'bool[] needs'])}) -> ({returns})")
        library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{space}::{name}", fake, lib=library)
        # Gradients of gradients are refused, with a reason, rather than zero in silence.
        torch.library.register_autograd(f"{space}::{name}", self._refuse, lib=library)

    # --- as autograd calls it -----------------------------------------------------------------------------------

    def setup(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.kernel = self.built.route(inputs) == "kernel"
        given = dict(zip(self.names, inputs, strict=True))
        results = dict(zip(self.op.result_names, many(output), strict=True))
        ctx.options = [given[n] for n in self.options]
        ctx.set_materialize_grads(False)
        if kept := list(results.values())[self.op.public :]:
            ctx.mark_non_differentiable(*kept)
        if ctx.kernel:
            ctx.save_for_backward(*[(given | results)[n] for n in self.op.saves])
        else:
            ctx.save_for_backward(*[given[a.name] for a in self.built.arguments if a.tensor])

    def run(self, ctx: Any, *grads: Any, direct: bool = False) -> tuple[Any, ...]:
        """``direct``: launch here and now, not through the registered operator."""
        needs = [bool(ctx.needs_input_grad[self.names.index(n)]) for n in self.op.differentiable]
        out: list[Any] = [None] * len(self.names)
        upstream = grads[: self.op.public]
        if not any(needs) or all(g is None for g in upstream):
            return tuple(out)
        if ctx.kernel:
            launch = self._launch if direct else self.kernel
            got = launch(*upstream, *ctx.saved_tensors, *ctx.options, needs)
        else:
            tensors, options = iter(ctx.saved_tensors), iter(ctx.options)
            whole = [next(tensors if a.tensor else options) for a in self.built.arguments]
            got = self.reference(*upstream, *whole, needs)
        for name, need, grad in zip(self.op.differentiable, needs, many(got), strict=True):
            out[self.names.index(name)] = grad if need else None
        return tuple(out)

    def _refuse(self, ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            f"{self.op.name}: gradients of gradients are not supported (its contract refuses double backward)\n"
            f"Try: where create_graph=True is needed, the reference: tilewright.ops.{self.op.folder.name}.reference"
        )

    # --- the two operators --------------------------------------------------------------------------------------

    def _split(self, arguments: Sequence[Any], middle: int) -> tuple[Sequence[Any], Sequence[Any], list[str]]:
        """Incoming gradients, what follows, and the names whose gradient is needed."""
        p = self.op.public
        needs = [n for n, need in zip(self.op.differentiable, arguments[p + middle], strict=True) if need]
        return arguments[:p], arguments[p : p + middle], needs

    def _saved(self, rest: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        count = len(self.op.saves)
        return dict(zip(self.op.saves, rest[:count], strict=True)), dict(zip(self.options, rest[count:], strict=True))

    def _launch(self, *arguments: Any) -> Any:
        grads, rest, needs = self._split(arguments, len(self.op.saves) + len(self.options))
        saved, options = self._saved(rest)
        assert self.op.backward is not None
        with short.on(first(grads).device):
            got = self.op.backward(grads, saved, options, needs)
        if missing := [n for n in needs if got.get(n) is None]:
            raise InternalError(f"{self.op.name}: backward gave no gradient of {', '.join(missing)}")
        return self._padded(grads, got, needs)

    def _differentiate(self, *arguments: Any) -> Any:
        grads, whole, needs = self._split(arguments, len(self.names))
        at = [self.names.index(n) for n in needs]

        def public(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            full = list(whole)
            for i, t in zip(at, given, strict=True):
                full[i] = t
            return many(self.op.reference(*full))

        results, vjp = torch.func.vjp(public, *[whole[i].detach() for i in at])[:2]
        back = vjp(tuple(torch.zeros_like(r) if g is None else g for r, g in zip(results, grads, strict=True)))
        found = {n: torch.empty_like(g, memory_format=torch.contiguous_format).copy_(g)
                 for n, g in zip(needs, back, strict=True)}  # fmt: skip
        return self._padded(grads, found, needs)

    def _fake_launch(self, *arguments: Any) -> Any:
        grads, rest, needs = self._split(arguments, len(self.op.saves) + len(self.options))
        saved, _ = self._saved(rest)
        return self._fake(grads, {n: saved[self.op.gradient_like.get(n, n)] for n in needs}, needs)

    def _fake_differentiate(self, *arguments: Any) -> Any:
        grads, whole, needs = self._split(arguments, len(self.names))
        return self._fake(grads, dict(zip(self.names, whole, strict=True)), needs)

    def _fake(self, grads: Sequence[Any], like: dict[str, Any], needs: list[str]) -> Any:
        return self._padded(grads, {n: like[n].new_empty(like[n].shape) for n in needs}, needs)

    def _padded(self, grads: Sequence[Any], got: dict[str, Any], needs: list[str]) -> Any:
        """One tensor for each differentiable argument: an empty one stands for a gradient that nobody needs."""
        nothing = next(g for g in grads if g is not None)
        return one([got[n] if n in needs else nothing.new_empty(0) for n in self.op.differentiable])
