"""What does not fit its target is passed over before it is checked, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.prove.child.session import Session
from tilewright.search.proposers import _misfit, knobs
from tilewright.search.skills._skill import EXAMPLES
from tilewright.search.tree import Context

from .make import context, node, tree

SOFTMAX = (EXAMPLES / "softmax_triton.py").read_text()
WARPS = SOFTMAX.replace("BLOCK=64)", "BLOCK=64,\n        num_warps=4,  # knob: 4 64\n    )")


def at(tmp_path: Path, source: str, problem: str = str(EXAMPLES / "row_softmax.py")) -> Context:
    return context(tree(node(0, source)), tmp_path, language="triton", problem=problem)


def test_what_fits_is_let_through_and_what_does_not_is_named_with_its_limit(tmp_path: Path) -> None:
    assert _misfit.misfit(WARPS, at(tmp_path, WARPS)) == ""
    why = _misfit.misfit(WARPS.replace("num_warps=4", "num_warps=64"), at(tmp_path, WARPS))
    assert why == "_softmax: too many threads (2048 threads; at most 1024 threads a program)"


@pytest.mark.parametrize(("binary", "words"), [
    ({"shared": 400_000, "warps": 4, "registers": 32}, "shared memory"), ({"shared": 1000, "warps": 4, "registers": 32}, ""),
    (None, ""),
])  # fmt: skip
def test_every_launch_is_held_against_the_limits_of_the_gate(binary, words, tmp_path, monkeypatch) -> None:
    launch = {"function": "second", **({"binary": binary} if binary else {})}
    monkeypatch.setattr(_misfit, "computed", lambda outcome: [{"function": "first"}, launch])
    why = _misfit.misfit(SOFTMAX, at(tmp_path, SOFTMAX))
    assert (words in why and why.startswith("second: ")) if words else why == ""


UNKNOWN = {
    "it raises": SOFTMAX.replace("    y = torch", "    raise ValueError\n    y = torch"),
    "it does not compile": SOFTMAX.replace("tl.store(y_ptr", "tl.stare(y_ptr"),
    "it is no Python": "def kernel(:",
    "it has no such entry": SOFTMAX.replace("def kernel(", "def other("),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_can_not_be_told_is_left_to_the_check_and_no_child_stays(name: str, tmp_path: Path, monkeypatch) -> None:
    opened, closed = [], []
    begin, end = Session.__init__, Session.close
    monkeypatch.setattr(Session, "__init__", lambda s, *a, **k: (opened.append(s), begin(s, *a, **k))[1])
    monkeypatch.setattr(Session, "close", lambda s: (closed.append(s), end(s))[1])
    assert _misfit.misfit(UNKNOWN[name], at(tmp_path, SOFTMAX)) == ""
    assert set(map(id, opened)) <= set(map(id, closed))


def test_a_problem_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert _misfit.misfit(SOFTMAX, at(tmp_path, SOFTMAX, "nowhere.py")) == ""


def test_knobs_pass_over_what_does_not_fit_and_say_so(tmp_path: Path) -> None:
    where = at(tmp_path, WARPS)
    pruned = knobs.Knobs()
    assert pruned.propose(where) is None
    assert "passed over num_warps=64: _softmax: too many threads" in pruned.trouble
    assert len(pruned.passed) == 1
    proposal = knobs.Knobs(prune="none").propose(where)
    assert proposal is not None
    assert proposal.parameters == {"num_warps": 64}


def test_kernels_in_c_are_never_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> str:
        raise AssertionError

    monkeypatch.setattr(_misfit, "misfit", asked)
    source = "#define A 1 // knob: 1 2\n"
    assert knobs.Knobs().propose(context(tree(node(0, source)), tmp_path)) is not None
