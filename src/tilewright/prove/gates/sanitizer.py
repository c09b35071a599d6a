"""Sanitizer: NVIDIA's compute-sanitizer finds nothing in one call: memcheck, initcheck, and racecheck for CUDA C++.

It sees each access of each thread: reads and writes outside an allocation, reads of memory that nobody wrote, shared
memory that two threads touch without a barrier between. The call runs in a process of its own under the tool, each buffer
an allocation of its own, at a small size. Triton's barriers are its compiler's work, and hardware copies that
racecheck does not follow are among them, so racecheck is left to CUDA C++. Where the tool is not installed or does not
start, that is said. Kernels of torch and of vendor libraries are left out of the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import sizes
from ..case import Case, Recipe
from ..child.session import Session, folders, split, trouble
from ..child.transport import Bundle
from ..device import sanitize
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._device import absent

if TYPE_CHECKING:
    from ..examination import Examination

SEEN = "sanitizer"
SMALL = 1 << 14
SEALS = ((), ("seccomp",))


class Sanitizer(Gate):
    name = "sanitizer"
    proves = "compute-sanitizer finds no bad access, no race and no unwritten memory read"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        if reason := absent(exam):
            return reason
        if exam.kernel.language not in ("triton", "cuda"):
            return "no kernel of its own"
        return "" if sanitize.tool() else "compute-sanitizer is not installed"

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = []
        first = exam.workload()
        w = first.model_copy(update={"dims": sizes.reduced(exam.sheet, first.dims, SMALL)})
        yield exam.make(Recipe(w, seed=exam.seed_for("sanitizer")))

    def check(self, exam: Examination, case: Case) -> Check:
        outcome = exam.run(case)  # compiles what the tool is then to watch
        if (bad := exam.trouble(outcome)) is not None:
            return Check(skipped=bad.summary or bad.silent)
        exam.session().harvest()  # type: ignore[attr-defined]
        for name in tools(exam):
            answer = _watched(exam, case, name)
            found = sanitize.parse(answer["report"])
            if found:
                return _told(name, found, answer["report"])
            if reason := sanitize.broken(answer):
                return Check(silent=f"compute-sanitizer {name} gave no report: {reason}")
            exam.memory.setdefault(SEEN, []).append(name + answer["seal"])
        return Check()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        return f"one call under {', '.join(exam.memory.get(SEEN, [])) or 'no tool'}"

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        return (Claim(kind="device", domain="one small size", strength=f"clean under {', '.join(tools(exam))}"),)


def tools(exam: Examination) -> tuple[str, ...]:
    """The tools for this language."""
    return sanitize.TOOLS if exam.kernel.language == "cuda" else ("memcheck", "initcheck")


def _watched(exam: Examination, case: Case, name: str) -> dict[str, Any]:
    """The tool's answer, from the strictest seal under which it gives a report."""
    answer: dict[str, Any] = {"report": "", "said": "not started", "status": -1}
    for seal in SEALS if exam.sandbox == "best" else SEALS[:1]:
        answer = {**_once(exam, case, name, seal), "seal": f" (without {', '.join(seal)})" if seal else ""}
        if not sanitize.broken(answer):
            break
    return answer


def _once(exam: Examination, case: Case, name: str, seal: tuple[str, ...]) -> dict[str, Any]:
    path = str(Path(exam.kernel.path).resolve())
    inputs = dict(case.inputs)
    if exam.kernel.raw:
        inputs.update({f"dim.{n}": case.dims[n] for n in exam.sheet.dims})
    tensors, scalars = split(inputs)
    head = {"do": "sanitize", "tool": name, "program": sanitize.tool(), "language": exam.kernel.language,
            "kernel": {"path": path, "text": exam.kernel.text, "entry": exam.kernel.entry},
            "calling": case.calling.model_dump(mode="json"), "order": list(inputs), "scalars": scalars}  # fmt: skip
    limits = exam.place.limits(exam.limits)
    without = {*limits.device["without"], *seal}
    limits.device["without"] = sorted(without)
    compiled = exam.compiled.files  # type: ignore[attr-defined]
    bundles = [Bundle.pack(tensors), Bundle.pack(case.state), *([Bundle.pack(compiled)] if compiled else [])]
    with Session("device", limits=limits, sandbox=exam.sandbox, name="sanitizer", reads=folders(path)) as s:
        answer, _ = s.ask_raw(head, tuple(bundles), seconds=sanitize.SECONDS + 30)
    for b in bundles:
        b.close()
    if "error" in answer:
        return {"report": "", "said": str(trouble(answer["error"]).message), "status": -1}
    return dict(answer["seen"])


def _told(name: str, found: list[sanitize.Seen], report: str) -> Check:
    first = found[0]
    more = f" ({len(found)} reports)" if len(found) > 1 else ""
    return Check(cls="wrong", summary=f"compute-sanitizer {name}: {first.words} in {first.kernel or 'a kernel'}{more}",
                 where=first.where or first.kernel, expected="no report", got=first.words, detail=report[:3000])  # fmt: skip


GATE = Sanitizer()
