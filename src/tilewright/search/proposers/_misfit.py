"""Does a Triton kernel fit its target? Compiled down to machine code for it, on any machine, before anything is checked.

The same limits as the gate ``resources``: what this says is what the gate would say, only sooner.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import TilewrightError
from ...kernel import read
from ...prove.case import Recipe
from ...prove.examination import Examination
from ...prove.examine import open_task
from ...prove.gates._launches import computed
from ...prove.gates.resources import over
from ..tree import Context


def misfit(source: str, context: Context) -> str:
    """Why the kernel can't be launched on the target; empty where it can, or where that can't be told before a check."""
    path = context.scratch / Path(context.kernel_path).name
    path.write_text(source)
    try:
        return _asked(f"{path}::{context.entry}", context.problem)
    except TilewrightError:
        return ""


def _asked(kernel: str, problem: str) -> str:
    source = read(kernel)  # first: what can't be read opens no child
    sheet, session = open_task(problem)
    exam = Examination(sheet, source, session, seed=0)
    try:
        outcome = exam.run(exam.make(Recipe(exam.workload(), seed=exam.seed_for("misfit"))), binary=True)
        if outcome.trouble is not None or outcome.tuned:
            return ""
        for launch in computed(outcome):
            if problem_ := over(launch.get("binary", {"shared": 0, "warps": 0, "registers": 0})):
                return f"{launch['function']}: {problem_[0]} ({problem_[2]}; {problem_[1]})"
        return ""
    finally:
        exam.close()
        exam.reference.close()
