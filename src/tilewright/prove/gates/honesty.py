"""Honesty: the outputs come from the kernels that the candidate launches, and from nothing else that it found.

Launches are computed outside the candidate's process, so they can be changed without its knowledge. Experiments:

* ``effect``: launches that write nothing, or whose results are scaled by secret random factors, must change each output
  (unless it is an input handed on, for the reference too). No launch at all, or no change: the result was computed by
  torch and the launches are for show. Where only a part of an output moves and torch ran the reference's own
  operations, the rest was computed by torch. Where torch ran every operation of the reference at full size and the
  launches only copied, the launches are for show as well. Honest mixes of torch operations and kernels pass.
* ``failure``: when launches fail, the call must fail. A right answer without a kernel is a silent fallback.
* ``seeds``: under other global random seeds the result stays right.
* ``conduct``: exact tensor type, no threads that outlive the call, no results that arrive later, no replaced
  functions, no malformed or forged launch records.

It proves nothing about a GPU on which the candidate takes another branch, nor about a candidate that repeats the
whole of an operation by many small torch operations beside a launch that copies. Source scans (``tripwire.py``) are
hints for the reader and decide nothing. Sources: FlagGems #3804, TileOPs #1241, KernelBench-Hard, pygpubench
exploits, KernelHacks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from .. import sizes, tripwire
from ..case import Case, Recipe
from ..child.session import Outcome
from ..child.watch import FINITE_BYTE
from ..gate import Check, Tally
from ..judging import Truth
from ..verdict import Claim, Role
from ._derived import Dependent

if TYPE_CHECKING:
    from ..examination import Examination

SHARE = 0.9
FAINT = 2.0**-15
MOST_LAUNCHES = 6
PLAIN = ("view", "reshape", "expand", "permute", "transpose", "t.", "slice", "select", "squeeze", "unsqueeze", "detach",
         "alias", "as_strided", "empty", "zeros", "ones", "full", "new_", "clone", "copy", "_to_copy", "fill", "zero_",
         "arange", "scalar_tensor", "lift", "split", "chunk", "unbind", "cat", "stack", "contiguous", "item",
         "_local_scalar", "is_", "set_", "resize", "narrow", "_unsafe_view", "unfold", "constant_pad", "flip",
         "roll", "index", "gather", "embedding")  # fmt: skip


class Honesty(Dependent):
    name = "honesty"
    proves = "the outputs come from launched kernels; no fallback, thread, patch or forged record"
    keeps = ("cheat",)
    shrinks = False  # at a smaller size an honest kernel may launch nothing

    def role(self, exam: Examination) -> Role:
        return "core"

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        small = first.model_copy(update={"dims": sizes.small(exam.sheet, first.dims)})
        for experiment, w in (("conduct", first), ("effect", first), ("failure", small), ("seeds", small)):
            yield exam.make(Recipe(w, seed=exam.seed_for("honesty", experiment), extra=(("experiment", experiment),)))

    def look(self, exam: Examination, case: Case) -> Check:
        if exam.truth(case).refused is not None:
            return Check(skipped="the reference refuses")
        what = case.recipe.options().get("experiment", "effect")
        if what in ("effect", "failure") and not watched(exam):
            return Check(skipped="no launches to watch")
        experiments = {"conduct": conduct, "effect": effect, "failure": failure, "seeds": seeds}
        return experiments[what](exam, case)

    def meaning(self, exam: Examination, tally: Tally) -> str:
        seen = exam.memory.get("honesty", {})
        parts = [f"{tally.cases} experiments"]
        if seen.get("launches"):
            parts.append(f"{seen['launches']} launch{'es' * (seen['launches'] != 1)} a call")
        parts += seen.get("notes", [])
        hints = tripwire.scan(exam.kernel.text) if exam.kernel.path.endswith(".py") else []
        parts += [f"hint: {h}" for h in hints if h.tier != "note"][:3]
        return "; ".join(parts)

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if not watched(exam):
            return ()
        return (Claim(kind="sampled", domain="the given workload",
                      strength="every output moves with the launches; failed launches give no result"),)  # fmt: skip


def watched(exam: Examination) -> bool:
    """Whether the candidate's launches can be changed without its knowledge."""
    kernel = exam.kernel
    if exam.place is None or kernel.language != "cuda":
        return kernel.language == "triton"
    return kernel.raw or ("load_inline" in kernel.text and "TORCH_LIBRARY" not in kernel.text)


def conduct(exam: Examination, case: Case) -> Check:
    """What the candidate does beside computing."""
    outcome = exam.run(case)
    if (bad := exam.trouble(outcome)) is not None:
        return bad
    if outcome.odd:
        return exam.form(exam.truth(case), outcome) or Check()
    return _conduct(outcome) or Check()


def _conduct(outcome: Outcome) -> Check | None:
    for launch in outcome.launches:
        error = launch.get("error", {})
        if "fault" in launch or error.get("kind") == "forged":
            return Check(
                cls="cheat",
                summary=launch.get("fault") or f"a forged launch: {error.get('message')}",
                where=error.get("where", ""),
                expected="launches of functions in the file",
                got="another record",
            )
    if outcome.patched:
        names = ", ".join(outcome.patched)
        return Check(cls="cheat", summary=f"replaces {names} in its process", where=outcome.patched[0],
                     expected="functions of others untouched", got=f"replaced: {names}")  # fmt: skip
    if outcome.late:
        return Check(
            cls="cheat",
            summary=f"output '{outcome.late[0]}' changes after the call has returned",
            where=outcome.late[0],
            expected="results complete at return",
            got="written later by a thread",
        )
    if outcome.threads > 0:
        return Check(
            cls="cheat",
            summary=f"leaves {outcome.threads} thread{'s' * (outcome.threads > 1)} running after the call",
            expected="no thread outlives a call",
            got=str(outcome.threads),
        )
    return None


def effect(exam: Examination, case: Case) -> Check:
    """Launches that do nothing, or give something else, must show in each output."""
    truth, plain = exam.truth(case), exam.run(case, observe=True)
    if (bad := exam.trouble(plain) or exam.form(truth, plain)) is not None:
        return bad
    done = [x for x in plain.launches if "error" not in x]
    if not plain.outputs or not any(t.numel() for t in plain.outputs.values()):
        return Check(skipped="no output element")
    given = passed_through(case, truth)
    if not done and all(n in given for n in truth.oracle):
        return Check()
    if not done and (blocked := [x for x in plain.launches if x.get("error", {}).get("kind") == "unsupported"]):
        return Check(silent=f"a launch can't be evaluated here: {blocked[0]['error']['message']}")
    if not done:
        return Check(cls="cheat", summary="no kernel is launched: " + _instead(plain), expected="at least one launch",
                     got="none")  # fmt: skip
    salt = case.recipe.seed + 1
    # Finite poison: what is multiplied by 0 must not show as NaN.
    others = (exam.run(case, mode="noop", poison=FINITE_BYTE), exam.run(case, mode="perturb", salt=salt),
              exam.run(case, mode="scramble", salt=salt + 1))  # fmt: skip
    exam.memory["honesty"] = {"launches": len(done), "notes": dead(exam, case, plain, salt)}
    results = {**plain.outputs, **_mutated(exam, plain)}
    for name, y in results.items():
        share = _share(name, y, *others)
        if share == 0 and y.numel() and name not in given:
            return Check(cls="cheat", summary=f"'{name}' does not depend on any launch: {_instead(plain)}", where=name,
                         expected="another result when launches give another one", got="the same bits")  # fmt: skip
        if 0 < share < SHARE and _torch_did_it(truth.seen, plain.seen, full=False):
            return Check(
                cls="cheat",
                summary=f"only {share:.0%} of '{name}' depends on launches: {_instead(plain)}",
                where=name,
                expected="all of it",
                got=f"{share:.1%}",
            )
        if _faint(name, y, others[1]) and _torch_did_it(truth.seen, plain.seen, full=True):
            return Check(
                cls="cheat",
                summary=f"launches hardly touch '{name}': {_instead(plain)}",
                where=name,
                expected="changes like those of the launches",
                got="a thousand times smaller",
            )
    if all(x.get("copied") for x in done) and _torch_did_it(truth.seen, plain.seen, full=True):
        return Check(cls="cheat", summary=f"launches only copy what torch computed: {_instead(plain)}",
                     expected="a kernel that computes", got="a copy")  # fmt: skip
    return Check()


def passed_through(case: Case, truth: Truth) -> set[str]:
    """Outputs that need no launch: views of an input for the reference too; and, where others remain that do need one,
    outputs whose values are those of an input (a rotary embedding that hands its tables on)."""
    found = set(truth.alias)
    equal = {n for n, y in (truth.baseline or {}).items() if any(_same(y, x) for x in case.tensors.values())}
    return found | equal if set(truth.oracle) - found - equal else found


def _same(y: torch.Tensor, x: torch.Tensor) -> bool:
    """Equal values, NaN included, in one shape and dtype."""
    alike = y.shape == x.shape and y.dtype == x.dtype
    return alike and bool(((y == x) | ((y != y) & (x != x))).all())


def _mutated(exam: Examination, outcome: Outcome) -> dict[str, torch.Tensor]:
    """Inputs that the contract lets a kernel write: outputs as well."""
    return {n: outcome.inputs_after[n] for n, s in exam.sheet.inputs.items() if getattr(s, "mutated", False)
            and n in outcome.inputs_after and n in outcome.changed}  # fmt: skip


def _share(name: str, y: torch.Tensor, *others: Outcome) -> float:
    """Share of elements that changed in one of the outcomes. A call that failed depends on its launches."""
    moved = torch.zeros(y.shape, dtype=torch.bool)
    for o in others:
        z = o.outputs.get(name, o.inputs_after.get(name))
        if not o.ok or z is None or z.shape != y.shape:
            return 1.0
        moved |= (z != y) & ~((z != z) & (y != y))
    live = moved.numel() or 1
    return float(moved.sum()) / live


def _faint(name: str, y: torch.Tensor, perturbed: Outcome) -> bool:
    """Whether a change of launches by some percent changes a float output by less than a thousandth of that."""
    z = perturbed.outputs.get(name)
    if not y.is_floating_point() or z is None or z.shape != y.shape:
        return False
    a, b = y.double(), z.double()
    scale = a[torch.isfinite(a)].abs()
    change = (a - b)[torch.isfinite(a) & torch.isfinite(b)].abs()
    return bool(scale.numel() and change.numel()) and float(change.max()) < FAINT * float(scale.max())


def dead(exam: Examination, case: Case, plain: Outcome, salt: int) -> list[str]:
    """Launches that could be left out: perturbing one alone changes nothing. A remark, no fault."""
    if not 1 < len(plain.launches) <= MOST_LAUNCHES:
        return []
    found = []
    for i, launch in enumerate(plain.launches):
        if not any(launch.get("wrote", {}).values()):
            continue
        o = exam.run(case, mode="perturb", only=i, salt=salt)
        if o.ok and all(_share(n, y, o) == 0 for n, y in plain.outputs.items()):
            found.append(f"launch {i + 1} ({launch['function']}) changes no output")
    return found


def _compute(seen: dict[str, Any]) -> dict[str, int]:
    """Torch operations that compute, by name without overload, with the largest tensor each worked on."""
    found: dict[str, int] = {}
    for op, n in seen.get("work", {}).items():
        name = op.removeprefix("aten.").rsplit(".", 1)[0]
        if not f"{name}.".startswith(PLAIN) and n > 1:
            found[name] = max(found.get(name, 0), n)
    return found


def _torch_did_it(reference: dict[str, Any], kernel: dict[str, Any], *, full: bool) -> bool:
    """Whether torch ran all computing operations of the reference in the candidate's process (``full``: at full
    size)."""
    theirs, ours = _compute(reference), _compute(kernel)
    return bool(theirs) and all(ours.get(op, 0) >= (n if full else 1) for op, n in theirs.items())


def _instead(outcome: Outcome) -> str:
    ops = sorted(_compute(outcome.seen).items(), key=lambda x: -x[1])
    return "torch ran " + ", ".join(op for op, _ in ops[:4]) if ops else "the values come from elsewhere"


def failure(exam: Examination, case: Case) -> Check:
    """All launches fail, as they would for lack of shared memory: no right answer may come."""
    truth = exam.truth(case)
    plain = exam.run(case)
    if not [x for x in plain.launches if "error" not in x] or not any(t.numel() for t in truth.oracle.values()):
        return Check(skipped="no launch at this size")
    outcome = exam.run(case, mode="fail", observe=True)
    if outcome.ok and outcome.launches and not exam.judge(case, outcome).failed:
        return Check(cls="cheat", summary=f"a failed launch is hidden: {_instead(outcome)} and gave the right answer",
                     expected="an error", got="the right answer without a kernel")  # fmt: skip
    return Check()


def seeds(exam: Examination, case: Case) -> Check:
    """The same inputs under other global seeds."""
    if exam.contract.random:
        return Check(skipped="results are random by contract")
    first = exam.result(case)
    if first.failed or first.skipped or first.silent:
        return first
    for seed in (0, 42, case.recipe.seed % 1000 + 1):
        result = exam.result(case, seed=seed)
        if result.failed:
            return replace(
                result, cls="cheat", summary=f"right under one random seed, wrong under another: {result.summary}"
            )
    return Check(ratio=first.ratio)


GATE = Honesty()
