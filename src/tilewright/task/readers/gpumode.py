"""GPU MODE problem: a folder with ``reference.py`` (``generate_input``, ``ref_kernel``, ``check_implementation``) and
``task.yml``; the kernel is ``custom_kernel(data)``.

Format after GPU MODE's reference-kernels and kernelbot. The sizes that its tests and benchmarks list are what is
promised: from the least to the greatest, in multiples of their common divisor.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import TaskError
from .. import tree
from ..overrides import Overrides
from ..task import TaskSheet, Workload
from ..tensors import Dim
from .inferred import InferredSource, Problem, infer_source
from .kernelbench import parameters
from .load import UserModule, user_code
from .record import CUSTOM
from .symbols import Inferred, OutOfTime, Prober
from .taskyml import TaskYml, read_task_yml, size_of
from .trial import Parts, Trial
from .workloads import Budget, bytes_at, human

_MATCHING = ("make_match_reference", "match_reference", "verbose_allclose", "verbose_allequal", "allclose", "equal")


def _reference_file(path: Path) -> Path:
    return path / "reference.py" if path.is_dir() else path


def claims(path: Path, entry: str) -> bool:
    """A folder with reference.py, or a Python file, that defines ``generate_input``."""
    file = _reference_file(path)
    return (
        not entry
        and file.suffix == ".py"
        and file.is_file()
        and "def generate_input" in file.read_text(errors="replace")
    )


class GpuMode(Problem):
    """The folder as a subject: its knobs are the integers among the arguments of ``generate_input``."""

    style = "data"

    def __init__(self, module: UserModule, listed: TaskYml):
        for name in ("generate_input", "ref_kernel"):
            if not module.defines(name):
                raise TaskError(f"{module.path.name} defines no '{name}'", where=str(module.path),
                                remedy="define generate_input(**spec) and ref_kernel(data)")  # fmt: skip
        self.module, self.path, self.listed = module, module.path, listed
        self.where = f"{module.path}:{_line(module, 'ref_kernel')}"
        self.names = ["data"]
        self.skeleton: list[Any] | None = None
        self.use(listed.least)

    def use(self, spec: Mapping[str, Any]) -> None:
        """Make ``spec`` the one whose integers are varied."""
        self.spec = {k: v for k, v in spec.items() if k != "seed"}
        self.knobs = {k: v for k, v in self.spec.items() if isinstance(v, int) and not isinstance(v, bool) and v > 0}
        self.knob_names = {k: k for k in self.knobs}

    def settings(self, workload: Workload) -> dict[str, Any]:
        return {k: v for k, v in workload.scalars.items() if k in self.spec}

    def parts(self, values: Mapping[str, Any], seed: int) -> Parts:
        namespace = self.module.execute()
        spec = {**self.spec, **values}
        if "seed" in parameters(namespace["generate_input"]):
            spec["seed"] = seed

        def inputs() -> dict[str, Any]:
            with user_code(self.path, "generate_input()"):
                made = [namespace["generate_input"](**spec)]
            if self.skeleton is None:
                self.skeleton = tree.map_leaves(lambda v: None, made)
            return tree.flatten_arguments(made, self.names)

        def run(_: Any, leaves: dict[str, Any]) -> Any:
            (data,) = tree.unflatten_arguments(leaves, self.skeleton or [], self.names)
            with user_code(self.path, "the reference"):
                return namespace["ref_kernel"](data)

        return Parts(inputs, lambda: None, run)

    def checker(self, values: Mapping[str, int]) -> Callable[..., Any] | None:
        found: Callable[..., Any] | None = self.module.execute().get("check_implementation")
        return found

    def compares(self) -> bool:
        """Whether ``check_implementation`` only compares with the reference (else it checks a property)."""
        for node in self.module.tree.body:
            named = getattr(node, "name", "") == "check_implementation"
            if named or (isinstance(node, ast.Assign) and "check_implementation" in ast.unparse(node.targets[0])):
                return any(isinstance(n, ast.Name | ast.Attribute) and (getattr(n, "id", "") or getattr(n, "attr", ""))
                           in _MATCHING for n in ast.walk(node))  # fmt: skip
        return True


def _line(module: UserModule, name: str) -> int:
    return next((n.lineno for n in module.tree.body if getattr(n, "name", "") == name), 1)


def read(path: Path, entry: str, overrides: Overrides, budget: Budget) -> InferredSource:
    """The problem as a source. Raises TaskError for a task.yml that lists no sizes, and for user errors."""
    file = _reference_file(path)
    yml = file.parent / "task.yml"
    module = UserModule(file)
    listed = read_task_yml(yml) if yml.is_file() else _from_defaults(module)
    module.folders = (*module.folders, *(f for f in listed.folders if f not in module.folders))
    problem = GpuMode(module, listed)
    name = file.resolve().parent.name
    sheet = TaskSheet(name=name, source="gpumode", path=str(path), entry="ref_kernel")
    fixed = [k for k in problem.knobs if len(set(listed.values(k))) < 2]
    source = infer_source(problem, sheet, budget, fixed=fixed, plan=_plan)
    given = {n: listed.given[n] for n in source.sheet.dims}
    contract = source.sheet.contract
    if not problem.compares():
        contract = contract.model_copy(update={"postcondition": "checker"})
    source.sheet = overrides.apply(source.sheet.model_copy(update={
        "files": dict(module.files) | ({yml.name: listed.sha256} if listed.sha256 else {}),
        "contract": contract, "given": given,
    }))  # fmt: skip
    return source


def _from_defaults(module: UserModule) -> TaskYml:
    """Without task.yml: the integer defaults of ``generate_input``."""
    node = next(n for n in module.tree.body if getattr(n, "name", "") == "generate_input")
    assert isinstance(node, ast.FunctionDef)
    args = node.args.args
    spec = {a.arg: ast.literal_eval(d) for a, d in zip(args[len(args) - len(node.args.defaults) :], node.args.defaults,
                                                       strict=True) if isinstance(d, ast.Constant)}  # fmt: skip
    missing = [a.arg for a in args if a.arg not in spec and a.arg != "seed"]
    if missing:
        line = ", ".join(f'"{m}": 128' for m in missing)
        raise TaskError(
            f"nothing says which sizes generate_input gets: {', '.join(missing)}", where=str(module.path),
            remedy=f'write task.yml beside it:\n    tests:\n      - {{{line}, "seed": 1}}',
        )  # fmt: skip
    return TaskYml(tests=(spec,))


def _plan(problem: Any, probe: Prober, inferred: Inferred, budget: Budget) -> tuple[tuple[Workload, ...], list[str]]:
    """Workloads are the listed specs within budget; dims range over what is listed."""
    listed: TaskYml = problem.listed
    for name in inferred.symbols:
        sizes = listed.values(name)
        inferred.dims[name] = Dim(min(sizes), max(sizes), multiple_of=math.gcd(*sizes))
    workloads, over = [], []
    slow = probe.real
    for spec in sorted((*listed.tests, *listed.benchmarks), key=size_of):
        plain = {k: v for k, v in spec.items() if k != "seed"}
        try:
            trial = probe(plain) if not slow or plain == problem.spec else None
        except OutOfTime:
            trial = None
        # A problem that loops over its rows takes long even on fake tensors.
        slow = slow or probe.last > 0.5
        dims = {k: v for k, v in plain.items() if k in inferred.symbols}
        workload = Workload(dims=dims, scalars={k: v for k, v in plain.items() if k not in dims})
        cost = trial.bytes if trial is not None else bytes_at(inferred, dims)
        if trial is not None:
            _mark_changing(inferred.base, trial)
        if cost > budget.bytes or (trial is not None and not budget.fits(trial)):
            over.append((cost, dims))
        elif workload not in workloads:
            workloads.append(workload)
    notes = []
    if over:
        cost, dims = max(over, key=lambda o: o[0])
        sizes_text = ", ".join(f"{n}={v}" for n, v in dims.items())
        notes.append(f"{len(over)} of the listed sizes not run here: up to {human(cost)} ({sizes_text})")
    if len(workloads) > 1:
        workloads[0] = workloads[0].model_copy(update={"kind": "smoke"})
    return tuple(workloads), notes


def _mark_changing(base: Trial, other: Trial) -> None:
    """Values that change their kind with the other arguments (``nomask``) are left to the problem's own code."""
    for name, leaf in base.inputs.items():
        if name in other.inputs and other.inputs[name].values.kind != leaf.values.kind:
            leaf.values = CUSTOM
