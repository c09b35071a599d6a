"""Examination: one kernel before one task, and everything that gates share.

It owns the seeds, opens (and re-opens) the sealed children, makes cases from recipes, caches the truth about each, and
judges outcomes. Gates hold no state of their own.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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
from . import compare, judging, module_state, postcondition, special
from .case import Case, Recipe, record
from .child.session import KernelSession, Limits, Outcome, ReferenceSession, Trouble, folders
from .cotangents import COTANGENTS
from .finding import Finding
from .gate import Check
from .judging import Truth
from .layouts import LAYOUTS, MIXED
from .shrink import shrink

if TYPE_CHECKING:
    from .gate import Gate

Progress = Callable[[str, int], None]
LOGGED = 128  # calls whose launches are kept
PLAIN = {"requires_grad", "cotangents", "seed", "observe"}  # options that leave a call as it is
BIASED = ("all_equal", "constant_rows")  # families whose sums have equal terms
FEW = 8  # terms of a sum that a chain of additions hardly hurts
LONG = 2048  # from here on a plain loop's float32 sum leaves the baseline's error behind


class Examination:
    """Shared by all gates of one ``check``."""

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
        self._coming: tuple[Case, Future[Truth]] | None = None
        self._helper = ThreadPoolExecutor(1, thread_name_prefix="truth")
        self.sealed: dict[str, Any] = {}
        self.launched: list[
            tuple[Case, Outcome]
        ] = []  # plain calls with their launches, for the gates that look at those
        self.confirming = False

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
        """The task's first workload (the given shape), at its dtype."""
        first = self.sheet.workloads[0] if self.sheet.workloads else Workload(dims=self.sheet.given)
        return first if first.dtype else first.model_copy(update={"dtype": self.dtypes()[0]})

    def make(self, recipe: Recipe) -> Case:
        """The case of a recipe. Raises TaskError where its dims or values are impossible."""
        inputs = self._values(recipe)
        calling, state = self._calling(recipe)
        for name in ("state.",):
            inputs = {n: v for n, v in inputs.items() if not n.startswith(name)}
        case = Case(recipe, inputs, state, calling)
        return self._with_cotangents(case) if recipe.grad else case

    def _values(self, recipe: Recipe) -> dict[str, Any]:
        w = recipe.workload
        tensors = {n: s for n, s in self.sheet.inputs.items() if isinstance(s, TensorSpec)}
        own = any(s.values.kind == "custom" for s in tensors.values()) or not self.sheet.inputs
        made: dict[str, Any] = {}
        if own:
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
            self._callings[key] = self.reference.state(recipe.workload, self.seed_for("state"))
        got = self._callings[key]
        if isinstance(got, Trouble):
            raise TaskError(f"the reference can't be built at {recipe.workload.dims}: {got.message}", where=got.where)
        calling, state = got
        if self.kernel.language == "native":
            calling = calling.model_copy(update={"outputs": self._native_outputs()})
        if self.kernel.destination:
            calling = calling.model_copy(update={"style": "destination"})
        if recipe.options().get("state", "varied") == "varied":
            state = module_state.vary(state, values.generator(self.seed_for("varied state")))
        return calling, dict(state)

    def _native_outputs(self) -> tuple[dict[str, Any], ...]:
        if not self.sheet.outputs:
            raise Unsupported("a native kernel needs the task to declare its outputs (TASK.outputs)")
        return tuple(
            {
                "name": n,
                "shape": list(s.shape),
                "dtype": "main" if s.dtype_group == "main" and s.dtypes[0] in FLOATS else s.dtypes[0],
            }
            for n, s in self.sheet.outputs.items()
        )

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
        if (held is None or held[0] is not case) and self._coming is None:
            self._coming = case, self._helper.submit(self._truth, case)

    def _wait(self) -> None:
        """For the truth that is on its way, if there is one."""
        if self._coming is not None:
            (case, future), self._coming = self._coming, None
            self._keep(case, future.result())

    def truth(self, case: Case) -> Truth:
        """Oracle, baseline and conditioning of a case; cached."""
        self._wait()
        held = self._truths.get(id(case))
        if held is not None and held[0] is case:
            return held[1]
        return self._keep(case, self._truth(case))

    def _keep(self, case: Case, truth: Truth) -> Truth:
        if len(self._truths) > 64:
            self._truths.clear()
        self._truths[id(case)] = (case, truth)
        return truth

    def _truth(self, case: Case) -> Truth:
        wide = {n: _wide(v) for n, v in case.inputs.items()}
        state = {n: _wide(v) for n, v in case.state.items()}
        cotangents = {n: _wide(v) for n, v in case.cotangents.items()} if case.recipe.grad else None
        options: dict[str, Any] = {"workload": case.recipe.workload, "seed": case.recipe.seed % (1 << 31)}
        options |= {"requires_grad": case.recipe.wanted} if case.recipe.grad else {}
        exact = {"inputs": wide, "state": state, "dtype": "float64", "cotangents": cotangents, **options}
        plain = {"inputs": case.inputs, "state": case.state, "observe": True, **options,
                 "cotangents": None if cotangents is None else case.cotangents}  # fmt: skip
        oracle, base, moved = self.reference.run_many([exact, plain, self._moved(case, exact, 0)])
        if oracle.trouble is not None:
            if oracle.trouble.kind in ("crash", "timeout", "exit"):
                self.reopen_reference()
            return Truth({}, None, {}, {}, {}, None, {}, {}, {}, refused=base.trouble or oracle.trouble)
        note = "" if base.ok else f"no baseline in {case.recipe.workload.dtype}: {base.trouble}"
        sensitivity, slope, after = self._sensitivity(case, oracle, moved, exact, scans=_scans(base))
        return Truth(
            oracle=oracle.outputs,
            baseline=base.outputs if base.ok else None,
            sensitivity=sensitivity,
            tree=base.tree if base.ok else oracle.tree,
            oracle_grads=oracle.grads,
            baseline_grads=base.grads if base.ok else None,
            inputs_after=oracle.inputs_after,
            baseline_after=base.inputs_after if base.ok else {},
            sensitivity_grads=slope,
            sensitivity_after=after,
            note=note,
            alias=base.alias if base.ok else oracle.alias,
            seen=base.seen if base.ok else oracle.seen,
        )

    def _sensitivity(
        self, case: Case, oracle: Outcome, moved: Outcome, exact: dict[str, Any], *, scans: bool
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """How far outputs, gradients and what the reference leaves in its inputs move under one rounding of the inputs; the
        largest of several draws where there
        are few outputs, since one draw of one number is small by luck once in a while."""
        floats = [o for o in (*oracle.outputs.values(), *oracle.grads.values()) if o.is_floating_point() and o.numel()]
        runs = [moved]
        if min((o.numel() for o in floats), default=compare.CROWD) < compare.CROWD:
            runs += self.reference.run_many([self._moved(case, exact, draw) for draw in (1, 2, 3)])
        if case.recipe.family in BIASED and (n := self._summed(case, oracle)) >= FEW:
            runs += self.reference.run_many([self._moved(case, exact, 6, bias=n / (2 * compare.K))])
        if scans:  # running sums are rounded at every step, in whatever order a kernel adds
            runs += self.reference.run_many([self._moved(case, exact, draw, scans=True) for draw in (4, 5)])
        sensitivity: dict[str, torch.Tensor] = {}
        slope: dict[str, torch.Tensor] = {}
        left: dict[str, torch.Tensor] = {}
        for run in runs:
            pairs = ((sensitivity, run.outputs, oracle.outputs), (slope, run.grads, oracle.grads),
                     (left, run.inputs_after, oracle.inputs_after))  # fmt: skip
            for into, now, before in pairs:
                for n, o in before.items():
                    if n in now and o.is_floating_point() and now[n].shape == o.shape:
                        d = (now[n] - o).abs()
                        into[n] = torch.fmax(into[n], d) if n in into else d
        return sensitivity, slope, left

    def _summed(self, case: Case, oracle: Outcome) -> int:
        """How many terms a sum of this case may have: the product of the dims that no output shows."""
        if self.sheet.outputs:
            kept = {d for s in self.sheet.outputs.values() for d in special.dims_of(s)}
        else:
            sizes = {n for o in oracle.outputs.values() for n in o.shape}
            kept = {d for d, n in case.dims.items() if n in sizes}
        return math.prod(n for d, n in case.dims.items() if d not in kept)

    def _moved(
        self, case: Case, exact: dict[str, Any], draw: int, *, scans: bool = False, bias: float = 0.0
    ) -> dict[str, Any]:
        """The oracle's run with its inputs and incoming gradients moved by one rounding; ``scans``: by one rounding of the
        running sum along their longest axis; ``bias``: all of them upwards, by so many roundings (a sum of equal terms is
        rounded the same way at every step, so that its error grows with their number n, up to n/2 roundings of the sum:
        N. Higham, Accuracy and Stability of Numerical Algorithms, 2002, 4.2)."""
        if bias:
            up = {n: _raise(v, case.inputs[n], bias) for n, v in exact["inputs"].items()}
            return {**exact, "inputs": up}
        moved = {
            n: _nudge(
                v,
                case.inputs[n],
                self.seed_for("nudge", n, draw),
                _longest(v) if scans else self._chain(case, n),
                self._unit(case),
            )
            for n, v in exact["inputs"].items()
        }
        upstream = exact["cotangents"] and {n: _nudge(v, case.cotangents[n], self.seed_for("nudge up", n, draw))
                                            for n, v in exact["cotangents"].items()}  # fmt: skip
        return {**exact, "inputs": moved, "cotangents": upstream}

    def _unit(self, case: Case) -> float:
        """One rounding of the precision in which plain numbers reach a kernel of this case."""
        return compare.unit(getattr(torch, case.recipe.workload.dtype or "float32"))

    def _chain(self, case: Case, name: str) -> int | None:
        """The axis along which a long sum runs: of the dim that the recipe names (``chain``), else of a long dim that no
        output has."""
        dim, spec = case.recipe.options().get("chain"), self.sheet.inputs.get(name)
        if dim is None and self.sheet.outputs:
            kept = {d for s in self.sheet.outputs.values() for d in special.dims_of(s)}
            dim = next((d for d, n in case.dims.items() if n >= LONG and d not in kept), None)
        return special.axis_of(spec, str(dim)) if dim and isinstance(spec, TensorSpec) and spec.shape else None

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
        """A live child of the kernel; ``fresh``: a new one."""
        old = self._kernels.get(slot)
        if old is not None and (fresh or old.dead):
            old.close()
            old = None
        if old is None:
            old = KernelSession(self.kernel, limits=self.limits, sandbox=self.sandbox)
            old.built = ""  # type: ignore[attr-defined]
            self._kernels[slot] = old
            self.sealed = old.sealed or self.sealed
        return old

    def run(
        self, case: Case, *, fresh: bool = False, slot: str = "main", rebuild: bool = True, **options: Any
    ) -> Outcome:
        """Call the kernel on a case (see ``KernelSession.call`` for the options). ``rebuild=False``: a module that was
        built for these dims is called again as it is."""
        session = self.session(fresh=fresh, slot=slot)
        key = f"{id(case.calling)}{sorted(case.dims.items())}{case.recipe.workload.dtype}"
        if session.built != key or (rebuild and (case.changed or case.state)):  # type: ignore[attr-defined]
            if (fault := session.build(case.calling, case.state)) is not None:
                return Outcome(trouble=fault)
            session.built = key  # type: ignore[attr-defined]
        inputs = dict(case.inputs)
        if self.kernel.language == "native":
            inputs.update({f"dim.{n}": case.dims[n] for n in self.sheet.dims})
        if case.recipe.grad:
            options.setdefault("requires_grad", case.recipe.wanted)
            options.setdefault("cotangents", case.cotangents)
        options.setdefault("seed", case.recipe.seed % (1 << 31))
        plain = not set(options) - PLAIN and slot == "main"
        outcome = session.call(inputs, **options)
        if plain and outcome.ok and outcome.launches and len(self.launched) < LOGGED:
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
        return judging.values(case, truth, outcome, self.contract.tolerance, mutated)

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
        self._helper.shutdown(cancel_futures=True)
        for s in self._kernels.values():
            s.close()
        self._kernels.clear()


def _scans(base: Outcome) -> bool:
    """Whether the reference ran a prefix sum or product."""
    return any("cumsum" in op or "cumprod" in op for op in base.seen.get("ops", ()))


def _longest(v: Any) -> int | None:
    return max(range(v.dim()), key=lambda i: v.shape[i]) if isinstance(v, torch.Tensor) and v.dim() else None


def _wide(v: Any) -> Any:
    if isinstance(v, torch.Tensor) and v.is_floating_point():
        return v.double()
    return v.to(torch.complex128) if isinstance(v, torch.Tensor) and v.is_complex() else v


def _nudge(v: Any, original: Any, seed: int, chain: int | None = None, unit: float = compare.ACCUMULATE) -> Any:
    """A float input moved by one rounding of the accumulation precision, each element up or down at random; a plain float
    as well, since kernels get those rounded. ``chain``: an axis along which elements are added one after another: there
    each addition rounds the running sum."""
    if isinstance(v, float):
        return v * (1 + (unit if seed % 2 else -unit))
    if not isinstance(v, torch.Tensor) or not v.is_floating_point():
        return v
    signs = torch.randint(0, 2, v.shape, generator=values.generator(seed)) * 2 - 1
    size = v if chain is None or v.dim() == 0 else torch.fmax(v.abs(), v.cumsum(chain).abs())
    moved = v + size * signs * compare.unit(original.dtype)
    return torch.where(torch.isfinite(moved), moved, v)


def _raise(v: Any, original: Any, roundings: float) -> Any:
    """A float tensor made larger in magnitude by so many roundings."""
    if not isinstance(v, torch.Tensor) or not v.is_floating_point():
        return v
    return v * (1 + roundings * compare.unit(original.dtype))


def _relative(where: str, kernel: str) -> str:
    name, _, line = where.rpartition(":")
    return f"{Path(name).name}:{line}" if name and Path(name).name == Path(kernel).name else where
