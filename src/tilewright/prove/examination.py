"""Examination: one kernel before one task, and everything that gates share.

It owns the seeds, opens (and re-opens) the sealed children, makes cases from recipes, caches the truth about each, and
judges outcomes. Gates hold no state of their own.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..errors import TaskError, Unsupported
from ..kernel import Kernel
from ..task import values
from ..task.calling import Calling
from ..task.contract import strict as strictly
from ..task.task import TaskSheet, Workload
from ..task.tensors import FLOATS, TensorSpec
from . import ahead, judging, module_state, postcondition, sizes, special
from .case import Case, Recipe, record
from .child.kernel_session import KernelSession
from .child.reference_session import ReferenceSession
from .child.session import Limits, Outcome, Trouble, folders
from .cotangents import COTANGENTS
from .finding import Finding
from .gate import Check
from .judging import Truth
from .layouts import LAYOUTS, MIXED
from .shrink import shrink
from .truth import establish, refine

if TYPE_CHECKING:
    from .gate import Gate

Progress = Callable[[str, int], None]
NEAR = 100.0  # errors of up to so many budgets get a second look at the conditioning
LOGGED = 128  # calls whose launches are kept, with and without backward
PLAIN = {"requires_grad", "cotangents", "seed", "observe", "frozen"}  # options that leave a call as it is


class Examination:
    """Shared by all gates of one ``check``. ``place``: the device that the kernel runs on; None: it is evaluated here."""

    place: Any = None

    def __init__(
        self,
        sheet: TaskSheet,
        kernel: Kernel,
        reference: ReferenceSession,
        *,
        strict: bool = False,
        seed: int | None = None,
        limits: Limits | None = None,
        sandbox: str = "best",
        gate_seconds: float = 20.0,
        progress: Progress | None = None,
    ):
        self.sheet, self.kernel, self.reference = sheet, kernel, reference
        self.contract = strictly(sheet.contract) if strict else sheet.contract
        self.strict = strict
        self.seed = secrets.randbits(62) if seed is None else seed
        self.limits, self.sandbox = limits or Limits(), sandbox
        self.gate_seconds = gate_seconds
        self.progress = progress or (lambda name, cases: None)
        self.memory: dict[str, Any] = {}  # what one gate leaves for another, by gate name
        self.tensors: dict[str, dict[str, Any]] = {}  # finding id -> the tensors of its case
        self._kernels: dict[str, KernelSession] = {}
        self._callings: dict[str, tuple[Calling, dict[str, torch.Tensor]] | Trouble] = {}
        self._truths: dict[int, tuple[Case, Truth]] = {}
        self._coming: ahead.Begun[Truth] = ahead.Begun("truth")
        self._calls: ahead.Begun[Any] = ahead.Begun("kernel")
        self._children = ahead.Children(kernel, self.limits, sandbox)
        self.sealed: dict[str, Any] = {}
        self.launched: list[tuple[Case, Outcome]] = []  # plain calls with launches, for the gates that look at those
        self.confirming = False
        self.tuned = False  # whether any call asked a tuner

    def at(self, gate: Gate) -> Examination:
        """The examination in which a gate looks: this one, but where a device's leaves some gates to evaluation."""
        return self

    # ---------------------------------------------------------------- seeds and cases

    def seed_for(self, *what: Any) -> int:
        """A seed derived from the secret one; the same words give the same seed."""
        return int.from_bytes(hashlib.sha256(repr((self.seed, *what)).encode()).digest()[:8], "big") >> 2

    def dtypes(self) -> tuple[str, ...]:
        """Dtypes that the contract promises for the main group, in order."""
        for spec in self.sheet.inputs.values():
            if isinstance(spec, TensorSpec) and spec.dtype_group == "main":
                return spec.dtypes
        return ("float32",)

    def workload(self) -> Workload:
        """The task's first workload (the given shape) that a check can afford, at its dtype."""
        return self.workloads()[0]

    def workloads(self) -> tuple[Workload, ...]:
        """The task's workloads that a check can afford, at their dtypes; the first one made smaller, if there is none."""
        listed = self.sheet.workloads or (Workload(dims=self.sheet.given),)
        named = [w if w.dtype else w.model_copy(update={"dtype": self.dtypes()[0]}) for w in listed]
        kept = tuple(w for w in named if sizes.affordable(self.sheet, w.dims, w.dtype))
        if kept:
            return kept
        return (named[0].model_copy(update={"dims": sizes.cheaper(self.sheet, named[0].dims, named[0].dtype)}),)

    def make(self, recipe: Recipe) -> Case:
        """The case of a recipe. Raises TaskError where its dims or values are impossible."""
        inputs = self._values(recipe)
        calling, state = self._calling(recipe)
        inputs = {n: v for n, v in inputs.items() if not n.startswith("state.")}
        case = Case(recipe, inputs, state, calling)
        return self._with_cotangents(case) if recipe.grad else case

    def _values(self, recipe: Recipe) -> dict[str, Any]:
        w = recipe.workload
        tensors = {n: s for n, s in self.sheet.inputs.items() if isinstance(s, TensorSpec)}
        own = any(s.values.kind == "custom" for s in tensors.values()) or not self.sheet.inputs
        made: dict[str, Any] = {}
        if own:
            self._wait()
            got = self.reference.inputs(w, recipe.seed)
            if isinstance(got, Trouble):
                raise TaskError(f"the task's inputs can't be made at {w.dims}: {got.message}", where=got.where)
            made = got
        inputs: dict[str, Any] = {}
        for name in self.sheet.inputs or made:
            spec = self.sheet.inputs.get(name)
            if isinstance(spec, TensorSpec):
                inputs[name] = self._tensor(name, spec, recipe, made.get(name))
            elif spec is not None:
                inputs[name] = w.scalars.get(name, made.get(name, spec.values[0]))
            else:
                inputs[name] = made[name]
        return inputs

    def _tensor(self, name: str, spec: TensorSpec, recipe: Recipe, made: Any) -> torch.Tensor:
        dims = recipe.workload.dims
        g = values.generator(self.seed_for("values", name, recipe.seed))
        dtype = self.dtype_of(spec, recipe.workload)
        sizes = tuple(made.shape) if made is not None else spec.sizes(dims)
        if recipe.family in values.FAMILIES and (made is None or spec.values.kind != "custom"):
            x = values.FAMILIES[recipe.family](spec, sizes, dtype, g, dims, bounded=not self.contract.inferred)
        elif made is not None and spec.values.kind == "custom":
            x = made
        else:
            x = values.draw(spec, sizes, dtype, g, dims)
        if recipe.family.startswith("special:") and recipe.options().get("plant", name) == name:
            first = name == next((n for n, s in self.sheet.inputs.items() if isinstance(s, TensorSpec)), "")
            x = special.plant(recipe.family.removeprefix("special:"), x, spec, g, first=first,
                              bounded=not self.contract.inferred)  # fmt: skip
        if (
            recipe.layout != "contiguous"
            and spec.layouts != "contiguous"
            and (not recipe.options().get("only") or recipe.options()["only"] == name)
        ):
            view = LAYOUTS[self._layout(name, recipe)](x)
            x = x if view is None else view
        return x

    def _layout(self, name: str, recipe: Recipe) -> str:
        """Layout of one input. ``mixed``: each input in turn gets the next one, so that strides that were taken from
        another input show."""
        if recipe.layout != MIXED:
            return recipe.layout
        turn = list(self.sheet.inputs).index(name) + int(recipe.options().get("turn", 0))
        return list(LAYOUTS)[turn % len(LAYOUTS)]

    def dtype_of(self, spec: TensorSpec, w: Workload) -> str:
        """Dtype of one input at a workload."""
        if w.dtype and spec.dtype_group == "main" and (w.dtype in spec.dtypes or spec.dtypes[0] in FLOATS):
            return w.dtype
        return spec.dtypes[0]

    def _calling(self, recipe: Recipe) -> tuple[Calling, dict[str, torch.Tensor]]:
        key = repr(sorted(recipe.workload.dims.items())) + str(recipe.workload.dtype)
        if key not in self._callings:
            self._wait()
            self._callings[key] = self.reference.state(recipe.workload, self.seed_for("state"))
        got = self._callings[key]
        if isinstance(got, Trouble):
            raise TaskError(f"the reference can't be built at {recipe.workload.dims}: {got.message}", where=got.where)
        calling, state = got
        if self.kernel.raw:
            calling = calling.model_copy(update={"outputs": self._native_outputs()})
        if self.kernel.destination:
            calling = calling.model_copy(update={"style": "destination"})
        if recipe.options().get("state", "varied") == "varied":
            state = module_state.vary(state, values.generator(self.seed_for("varied state")))
        return calling, dict(state)

    def _native_outputs(self) -> tuple[dict[str, Any], ...]:
        if not self.sheet.outputs:
            raise Unsupported("a kernel in C or CUDA C++ needs the task to declare its outputs (TASK.outputs)")
        return tuple({"name": n, "shape": list(s.shape),
                      "dtype": "main" if s.dtype_group == "main" and s.dtypes[0] in FLOATS else s.dtypes[0]}
                     for n, s in self.sheet.outputs.items())  # fmt: skip

    def _with_cotangents(self, case: Case) -> Case:
        """Random cotangents for every float output of the baseline."""
        truth = self.truth(replace(case, recipe=replace(case.recipe, grad=False)))
        model = truth.baseline or truth.oracle
        cotangents = {}
        for name, y in model.items():
            if y.is_floating_point():
                g = values.generator(self.seed_for("cotangent", name, case.recipe.seed))
                drawn = torch.randn(y.shape, generator=g, dtype=torch.float32).to(y.dtype)
                cotangents[name] = COTANGENTS[case.recipe.cotangent](drawn)
        return replace(case, cotangents=cotangents)

    # ---------------------------------------------------------------- truth

    def ahead(self, case: Case) -> None:
        """Begin with the truth of a case, beside what the kernel does meanwhile."""
        held = self._truths.get(id(case))
        if held is None or held[0] is not case:
            self._coming.begin(case, establish, self, case)

    def _wait(self) -> None:
        """For the truths that are on their way."""
        for case, future in self._coming.rest():
            self._keep(case, future.result())

    def truth(self, case: Case) -> Truth:
        """Oracle, baseline and conditioning of a case; cached."""
        if (coming := self._coming.take(case)) is not None:
            return self._keep(case, coming.result())
        self._wait()
        held = self._truths.get(id(case))
        if held is not None and held[0] is case:
            return held[1]
        return self._keep(case, establish(self, case))

    def _keep(self, case: Case, truth: Truth) -> Truth:
        if len(self._truths) > 64:
            self._truths.clear()
        self._truths[id(case)] = (case, truth)
        return truth

    def reopen_reference(self) -> None:
        """A new child for the reference, after the old one died."""
        path, options = self.reference.opened  # type: ignore[attr-defined]
        self.reference.close()
        reads = folders(path, *options.values())
        self.reference = ReferenceSession(limits=self.limits, sandbox=self.sandbox, reads=reads)
        self.reference.opened = (path, options)  # type: ignore[attr-defined]
        self.reference.describe(path, **options)

    # ---------------------------------------------------------------- running the kernel

    def session(self, *, fresh: bool = False, slot: str = "main") -> KernelSession:
        """A live child of the kernel, which does nothing at the time; ``fresh``: a new one."""
        self.settle()
        return self._session(fresh=fresh, slot=slot)

    def _session(self, *, fresh: bool = False, slot: str = "main") -> KernelSession:
        old = self._kernels.get(slot)
        if old is not None and (fresh or old.dead):
            old.close()
            old = None
        if old is None:
            old = self._children.take()
            old.built = ""  # type: ignore[attr-defined]
            self._kernels[slot] = old
            self.sealed = old.sealed or self.sealed
        return old

    def warm(self) -> None:
        """Start the kernel's child, beside what the caller does."""
        if self.place is None and self.kernel.language != "cuda":
            self._calls.begin(self, self._session)

    def begin(self, case: Case) -> None:
        """Call the kernel on a case, and work out the truth about it, beside what the caller does; ``run`` and ``truth``
        then wait for these."""
        self.ahead(case)
        self._calls.begin(case, self._call, case)

    def settle(self) -> None:
        """Wait for calls that were begun, and forget them."""
        if calls := self._calls.rest():
            ahead.drop(calls, tuple(self._kernels.values()))

    def run(self, case: Case, **options: Any) -> Outcome:
        """Call the kernel on a case (see ``KernelSession.call`` for the options). ``fresh``: in a new child; ``slot``:
        which child; ``rebuild=False``: a module that was built for these dims is called again as it is."""
        begun = None if options else self._calls.take(case)
        if begun is not None:
            return begun.result()
        self.settle()
        return self._call(case, **options)

    def _call(
        self, case: Case, *, fresh: bool = False, slot: str = "main", rebuild: bool = True, **options: Any
    ) -> Outcome:
        started = time.monotonic()
        session = self._session(fresh=fresh, slot=slot)
        key = f"{id(case.calling)}{sorted(case.dims.items())}{case.recipe.workload.dtype}"
        if session.built != key or (rebuild and (case.changed or case.state)):  # type: ignore[attr-defined]
            if (fault := session.build(case.calling, case.state)) is not None:
                return Outcome(trouble=fault)
            session.built = key  # type: ignore[attr-defined]
        inputs = dict(case.inputs)
        if self.kernel.raw:
            inputs.update({f"dim.{n}": case.dims[n] for n in self.sheet.dims})
        if case.recipe.grad:
            options.setdefault("requires_grad", case.recipe.wanted)
            options.setdefault("cotangents", case.cotangents)
        options.setdefault("seed", case.recipe.seed % (1 << 31))
        plain = not set(options) - PLAIN and slot == "main"
        outcome = session.call(inputs, **options)
        outcome.seconds = time.monotonic() - started
        self.tuned |= bool(outcome.tuned)
        logged = sum(c.recipe.grad == case.recipe.grad for c, _ in self.launched)
        if plain and outcome.ok and outcome.launches and logged < LOGGED:
            self.launched.append((case, replace(outcome, outputs={}, grads={}, inputs_after={})))
        return outcome

    # ---------------------------------------------------------------- judging

    def result(self, case: Case, **options: Any) -> Check:
        """Run the kernel and judge what it gave; the truth is worked out at the same time."""
        self.ahead(case)
        return self.judge(case, self.run(case, **options))

    def judge(self, case: Case, outcome: Outcome) -> Check:
        """Whether an outcome is right: it came at all, has the right form, and its values are within the budget."""
        truth = self.truth(case)
        if truth.refused is not None:
            return Check(skipped=f"the reference refuses: {truth.refused.message}")
        return self.trouble(outcome) or self.form(truth, outcome) or postcondition.judge(self, case, truth, outcome)

    def trouble(self, outcome: Outcome) -> Check | None:
        """A Check if there is no result: the candidate's fault, or ours."""
        return judging.trouble(outcome)

    def values(self, case: Case, truth: Truth, outcome: Outcome) -> Check:
        """Values element by element, whatever the postcondition."""
        mutated = [n for n, s in self.sheet.inputs.items() if isinstance(s, TensorSpec) and s.mutated]
        check = judging.values(case, truth, outcome, self.contract.tolerance, mutated)
        close = check.failed and 1 < check.ratio < NEAR
        if close and not truth.refined and self._truths.get(id(case), (None, None))[1] is truth:
            refine(self, case, truth)
            check = judging.values(case, truth, outcome, self.contract.tolerance, mutated)
        return check

    def form(self, truth: Truth, outcome: Outcome) -> Check | None:
        """Structure, exact type, and dtypes and shapes of the outputs."""
        return judging.form(truth, outcome)

    # ---------------------------------------------------------------- findings

    def finding(self, gate: Gate, case: Case, check: Check, *, decides: bool = True) -> Finding:
        """A finding with the smallest case that still shows it, confirmed in a fresh child."""
        small, result = (case, check)
        if gate.shrinks:
            small, result = shrink(self, gate, case, check)
        replays = self.confirm(gate, small) if decides else True
        assert result.cls is not None
        made = Finding(
            cls=result.cls, summary=f"{result.summary} (at {small})", where=_relative(result.where, self.kernel.path),
            case=record(small, mode=gate.name, root=self.seed), expected=result.expected, got=result.got,
            largest_error=result.error,
            budget=result.error / result.ratio if result.error and 0 < result.ratio < float("inf") else None,
            gate=gate.name, replays=replays, detail=result.detail,
        ).with_id(self.kernel.sha256(), self.sheet.sha256())  # fmt: skip
        self.tensors[made.id] = {"inputs": small.inputs, "state": small.state, "cotangents": small.cotangents}
        return made

    def confirm(self, gate: Gate, case: Case) -> bool:
        """Whether the fault shows again in a fresh child."""
        self.session(fresh=True)
        self.confirming = True
        try:
            return gate.check(self, case).failed
        finally:
            self.confirming = False

    def close(self) -> None:
        """End the kernel's children (the reference's belong to the caller)."""
        self._calls.stop(tuple(self._kernels.values()))
        self._coming.stop()
        self._children.stop()
        for s in self._kernels.values():
            s.close()
        self._kernels.clear()


def _relative(where: str, kernel: str) -> str:
    name, _, line = where.rpartition(":")
    return f"{Path(name).name}:{line}" if name and Path(name).name == Path(kernel).name else where
