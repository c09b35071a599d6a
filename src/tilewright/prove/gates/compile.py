"""Compile: CUDA C++ compiles for each target, and what its kernels need fits there. No GPU is needed.

By nvcc where there is one, else by NVRTC and ptxas, in a sealed child. Of a Python file the device code is compiled that
it hands to torch's or CuPy's compilers; host code is left out, so a name that only host code defines is no fault.
Registers, spills, shared memory and stack are ptxas's own account.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import EnvironmentProblem
from ...kernel.languages import _cuda_launch
from ...kernel.languages._cuda_compile import TARGETS
from ...task.tensors import evaluate
from ..case import Case, Recipe
from ..child.session import Session, Trouble, folders, trouble
from ..gate import Check, Gate, Tally
from ..verdict import Role

if TYPE_CHECKING:
    from ..examination import Examination

SHARED = {"sm_80": 166912, "sm_90": 232448, "sm_100": 232448}
REGISTERS, THREADS = 65536, 1024
SECONDS = 300.0
NVCC_ONLY = ("open source file", "not allowed in JIT mode")  # what NVRTC says of headers and host code
UNDEFINED = ("is undefined", "has not been declared", "could not open source file", "cannot open source file")
SOURCES, SEEN = "device sources", "compiled kernels"


class Compile(Gate):
    name = "compile"
    proves = f"compiles for {', '.join(TARGETS)}, and fits there"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return "" if exam.kernel.language == "cuda" else "no CUDA C++"

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = {}
        for target in TARGETS:
            yield exam.make(Recipe(exam.workload(), seed=exam.seed_for("compile"), extra=(("target", target),)))

    def check(self, exam: Examination, case: Case) -> Check:
        target = str(case.recipe.options().get("target", TARGETS[0]))
        sources = _sources(exam)
        if isinstance(sources, Trouble):
            if sources.kind == "unsupported":
                return Check(silent=sources.message)
            return exam_trouble(sources)
        if not sources:
            return Check(silent="the file hands no device code to a compiler when it is loaded")
        for source in sources:
            made = _compiled(exam, source, target)
            exam.memory.setdefault(SEEN, {}).update({(n, target): k for n, k in made["kernels"].items()})
            if not made["ok"]:
                return _refused(exam, source, made)
            if (bad := _too_much(exam, case, made)) is not None:
                return bad
        return Check()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        by_name: dict[str, list[str]] = {}
        for (name, target), k in exam.memory.get(SEEN, {}).items():
            by_name.setdefault(name, []).append(f"{target} {words(k)}")
        return "; ".join(f"{n}: {', '.join(parts)}" for n, parts in list(by_name.items())[:3])


def _sources(exam: Examination) -> list[dict[str, Any]] | Trouble:
    """Device sources of the kernel, found once."""
    if not exam.kernel.path.endswith(".py"):
        _cuda_launch.plan(exam.kernel.text, exam.kernel.path)  # raises what is wrong with the launch comment
    if SOURCES not in exam.memory or exam.confirming:
        answer = _ask(exam, {"do": "sources"})
        exam.memory[SOURCES] = trouble(answer["error"]) if "error" in answer else answer["sources"]
    return exam.memory[SOURCES]  # type: ignore[no-any-return]


def _compiled(exam: Examination, source: dict[str, Any], target: str) -> dict[str, Any]:
    """One source for one target. Raises EnvironmentProblem where there is no compiler."""
    name = Path(exam.kernel.path).with_suffix(".cu").name
    answer = _ask(exam, {"do": "compile", "text": source["text"], "name": name, "target": target})
    if "error" in answer:
        found = trouble(answer["error"])
        raise EnvironmentProblem(f"compiling {name} for {target} failed: {found.message}", remedy=found.remedy)
    return dict(answer["result"])


def _ask(exam: Examination, head: dict[str, Any]) -> dict[str, Any]:
    path = str(Path(exam.kernel.path).resolve())
    kernel = {"path": path, "text": exam.kernel.text}
    with Session("compiler", limits=exam.limits, sandbox=exam.sandbox, name="compiler", reads=folders(path)) as s:
        exam.sealed = exam.sealed or s.sealed
        return s.ask_raw({**head, "kernel": kernel}, seconds=SECONDS)[0]


def exam_trouble(t: Trouble) -> Check:
    """A file that can't be loaded."""
    return Check(cls="wrong", summary=f"the file can't be loaded: {t}", where=t.where, expected="device code",
                 got=t.type or t.kind, detail=t.trace[-2000:])  # fmt: skip


def _refused(exam: Examination, source: dict[str, Any], made: dict[str, Any]) -> Check:
    """A finding with the line in the user's file; or nothing to say, where only host code could know the name."""
    errors = [m for m in made["messages"] if "error" in m["kind"]] or made["messages"]
    first, name = errors[0], Path(exam.kernel.path).name
    unknown = [m for m in errors if any(u in m["text"] for u in UNDEFINED)]
    if made["compiler"] == "nvrtc" and (
        bars := next((m for m in errors if any(w in m["text"] for w in NVCC_ONLY)), None)
    ):
        return Check(silent=f"NVRTC can't take what nvcc may: {bars['text']}")
    if source["how"] in ("load_inline", "load") and len(unknown) == len(errors):
        return Check(silent=f"the device code does not compile alone: {first['text']}")
    line = first["line"] + source["line"] - 1 if first["line"] and source["line"] else first["line"]
    return Check(cls="wrong", summary=f"does not compile for {made['target']}: {first['text']}",
                 where=f"{name}:{line}" if line else name, expected="device code that compiles",
                 got=f"{len(errors)} error{'s' * (len(errors) > 1)} by {made['compiler']}",
                 detail="\n".join(_line(name, source, m) for m in errors[:8]))  # fmt: skip


def _line(name: str, source: dict[str, Any], message: dict[str, Any]) -> str:
    return f"{name}:{message['line'] + max(source['line'], 1) - 1}: {message['text']}"


def _too_much(exam: Examination, case: Case, made: dict[str, Any]) -> Check | None:
    """A launch that the target refuses, at the given sizes."""
    if exam.kernel.path.endswith(".py"):
        return None
    dims = case.dims
    for launch in _cuda_launch.plan(exam.kernel.text, exam.kernel.path).launches:
        needs = made["kernels"].get(launch.kernel.replace("{dtype}", case.recipe.workload.dtype or "float32"))
        threads = 1
        for b in launch.block:
            threads *= evaluate(b, dims)
        if needs is not None and (over := exceeds(needs, threads, evaluate(launch.shared, dims), made["target"])):
            return Check(cls="wrong", summary=f"{launch.kernel} can't be launched on {made['target']}: {over[0]}",
                         where=launch.kernel, expected=over[1], got=over[2])  # fmt: skip
    return None


def exceeds(needs: dict[str, int], threads: int, dynamic: int, target: str) -> tuple[str, str, str] | None:
    """Which limit of the target is passed: in words, allowed, needed."""
    shared = needs["shared"] + dynamic
    if threads > THREADS:
        return "too many threads", f"at most {THREADS} threads a block", f"{threads} threads"
    if shared > SHARED[target]:
        return "too much shared memory", f"at most {SHARED[target]} bytes a block", f"{shared} bytes"
    if needs["registers"] * threads > REGISTERS:
        return "too many registers", f"at most {REGISTERS} a block", str(needs["registers"] * threads)
    return None


def words(needs: dict[str, int]) -> str:
    """What a kernel needs, in a few words."""
    parts = [f"{needs['registers']} registers"]
    parts += [f"{needs['shared']} bytes shared"] if needs["shared"] else []
    parts += [f"{needs['stack']} bytes stack"] if needs["stack"] else []
    parts.append(f"{needs['spills']} bytes spilled" if needs["spills"] else "no spills")
    return " ".join(", ".join(parts).split())


GATE = Compile()
