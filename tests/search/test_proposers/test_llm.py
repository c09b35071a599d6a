"""Language models: a server on this machine replays what servers and models do, and what they should not do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tilewright import api
from tilewright.errors import EnvironmentProblem, UserError
from tilewright.prove.finding import CaseRecord, Finding
from tilewright.prove.verdict import GateReport, Verdict
from tilewright.search.proposers import _prompt, _reply, llm
from tilewright.search.proposers._http import LARGEST, Passing, Patience, post
from tilewright.search.tree import Failure, Left, Proposal

from .make import context, node, tree
from .server import Reply, Server, recorded, serving

ROOT = Path(__file__).resolve().parents[3]
PROBLEM = ROOT / "examples" / "07_search_matmul" / "problem.py"
NAIVE = (ROOT / "src/tilewright/search/skills/examples/naive.c").read_text()


def proposer(server: Server, *, seconds: float = 5.0, attempts: int = 3, **options: str) -> llm.Llm:
    made = llm.make({"url": server.url, "model": "m1", **options})
    made.server = type(made.server)(**{**vars(made.server), "patience": Patience(seconds, attempts, 0.0)})
    return made


def ask(tmp_path: Path, *replies: Reply, options: Mapping[str, str] = {}, seconds: float = 5.0, **fields: Any
        ) -> tuple[Proposal | None, llm.Llm, Server]:  # fmt: skip
    grown = fields.pop("grown", tree(node(0, NAIVE)))
    with serving(*replies) as server:
        made = proposer(server, seconds=seconds, **options)
        return made.propose(context(grown, tmp_path, problem=str(PROBLEM), **fields)), made, server


@pytest.mark.parametrize(("provider", "path", "key"), [
    ("openai", "/chat/completions", "authorization"), ("anthropic", "/v1/messages", "x-api-key"),
])  # fmt: skip
def test_a_valid_reply_is_a_proposal_in_both_ways_of_speaking(
    provider: str, path: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "secret-of-mine")
    options = {"provider": provider, "key_env": "MY_KEY", "price_in": "10", "price_out": "50"}
    proposal, _, server = ask(tmp_path, Reply(recorded("valid")), options=options)
    assert proposal is not None
    assert "vectorised" in proposal.rationale
    assert (proposal.title, proposal.predicted, proposal.skill) == ("rows of c kept while k runs", 4.5, "m1")
    assert proposal.source.startswith("#include <stdint.h>")
    assert (proposal.cost.tokens, round(proposal.cost.money, 6)) == (120, 0.002)
    assert server.asked[0][0] == path
    assert "secret-of-mine" in server.asked[0][1][key]
    assert "secret-of-mine" not in proposal.model_dump_json()


def test_what_it_proposes_is_right_before_the_check(tmp_path: Path) -> None:
    proposal, _, _ = ask(tmp_path, Reply(recorded("valid")))
    assert proposal is not None
    assert verdict_on(proposal, tmp_path).verdict == "accept"


def test_a_wrong_kernel_is_proposed_and_then_rejected(tmp_path: Path) -> None:
    proposal, _, _ = ask(tmp_path, Reply(recorded("wrong")))
    assert proposal is not None
    assert verdict_on(proposal, tmp_path).verdict == "reject"


def test_a_malicious_kernel_runs_nowhere_but_in_the_sealed_child_and_is_rejected(tmp_path: Path) -> None:
    leak = tmp_path / "leak"
    proposal, _, _ = ask(tmp_path, Reply(recorded("malicious").replace("LEAK", str(leak))))
    assert proposal is not None
    assert not leak.exists(), "proposing ran the kernel"
    verdict = verdict_on(proposal, tmp_path)
    assert verdict.verdict == "reject"
    assert not leak.exists(), "the kernel wrote outside its scratch folder"


def verdict_on(proposal: Proposal, folder: Path) -> Verdict:
    path = folder / "proposed.c"
    path.write_text(proposal.source)
    return api.examine_and_record(str(PROBLEM), str(path), record=False, gate_seconds=3.0).verdict


@pytest.mark.parametrize(("text", "words"), [
    (recorded("two_blocks"), "holds 2 fenced blocks; expected one"),
    (recorded("no_block"), "holds 0 fenced blocks; expected one"),
    ("```c\n" + "x" * _reply.LARGEST + "\n\n```", "larger than 256 KiB"),
    ("```c\nvoid f(void) {}\x00\n```", "control character"),
    ("```c\nint a; /* \u202e */\n```", "control character"),
    ("```c\n" + NAIVE + "```", "the kernel as it was"),
    ("", "holds no text"),
])  # fmt: skip
def test_a_malformed_reply_is_no_proposal_and_says_what_was_expected(text: str, words: str, tmp_path: Path) -> None:
    proposal, made, _ = ask(tmp_path, Reply(text))
    assert proposal is None
    assert words in made.trouble
    assert made.spent.tokens == (120 if text else 0)


@pytest.mark.parametrize(("raw", "words"), [
    (b"<html>", "is no JSON"),
    (b"[" * 100_000, "is no JSON"),
    (b"[1]", "no object"),
    (b'{"choices": []}', "not the form"),
    (b'{"choices": [{"message": {"content": {"a": 1}}}]}', "holds no text"),
    (b" " * (LARGEST + 10), "larger than"),
])  # fmt: skip
def test_what_is_no_answer_is_a_passing_trouble(raw: bytes, words: str, tmp_path: Path) -> None:
    proposal, made, _ = ask(tmp_path, Reply(raw=raw))
    assert proposal is None
    assert words in made.trouble


def test_usage_that_is_nonsense_counts_as_nothing(tmp_path: Path) -> None:
    body = {
        "choices": [{"message": {"content": recorded("valid")}}],
        "usage": {"prompt_tokens": -5, "completion_tokens": "9"},
    }
    proposal, _, _ = ask(tmp_path, Reply(raw=json.dumps(body).encode()))
    assert proposal is not None
    assert proposal.cost.tokens == 0


def test_a_python_reply_for_a_c_kernel_is_refused_unrun(tmp_path: Path) -> None:
    leak = tmp_path / "ran"
    code = f"import torch\nopen({str(leak)!r}, 'w')\ndef kernel(a, b):\n    return a @ b\n"
    grown = tree(node(0, "import triton\nimport torch\ndef kernel(a, b):\n    return a\n"))
    proposal, made, _ = ask(tmp_path, Reply(f"```python\n{code}```"), grown=grown, language="triton")
    assert proposal is None
    assert "is a torch kernel; expected triton" in made.trouble
    assert not leak.exists()


def test_a_busy_server_is_asked_again_with_growing_pauses() -> None:
    slept: list[float] = []
    with serving(Reply(status=429, headers={"retry-after": "7"}, raw=b"{}"), Reply(status=529, raw=b"{}"),
                 Reply(hang_up=True), Reply(raw=b'{"fine": 1}')) as server:  # fmt: skip
        assert post(server.url, {}, {}, Patience(5, 4, 1.0, slept.append)) == {"fine": 1}
    assert slept[0] == 7
    assert 2 <= slept[1] <= 2.5
    assert 4 <= slept[2] <= 5


def test_a_server_that_stays_busy_is_a_passing_trouble(tmp_path: Path) -> None:
    proposal, made, server = ask(tmp_path, *[Reply(status=503, raw=b"{}")] * 3)
    assert proposal is None
    assert made.trouble == "m1: the server answers 503, 3 times"
    assert len(server.asked) == 3


@pytest.mark.parametrize("reply", [Reply(recorded("valid"), pause=3), Reply(recorded("valid"), drip=0.05)])
def test_a_slow_server_is_left_after_the_limit_however_it_is_slow(reply: Reply) -> None:
    with serving(reply) as server, pytest.raises(Passing, match=r"no answer within 0\.3 s"):
        post(server.url + "/chat/completions", {}, {}, Patience(0.3, 1))


def test_a_redirect_does_not_carry_the_key_away() -> None:
    with serving(Reply(raw=b'{"stolen": 1}')) as other:
        there = Reply(status=302, headers={"location": other.url}, raw=b"")
        with serving(there) as server, pytest.raises(UserError, match="answers 302"):
            post(server.url, {"authorization": "Bearer k"}, {}, Patience(5, 1))
        assert other.asked == []


def test_a_refused_key_and_an_unknown_model_end_the_run_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="refuses the key"):
        ask(tmp_path, Reply(status=401, raw=b"no"))
    with pytest.raises(UserError, match="check url= and model="):
        ask(tmp_path, Reply(status=404, raw=b'{"error": "no such model"}'))


def test_a_missing_key_is_told_before_the_first_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EnvironmentProblem, match="OPENAI_API_KEY"):
        llm.make({"model": "m"}).begin(context(tree(node(0, NAIVE)), tmp_path))


@pytest.mark.parametrize(("options", "words"), [
    ({}, "needs a model"), ({"model": "m", "provider": "x"}, "provider is 'x'"),
    ({"model": "m", "size": "1"}, "takes no option 'size'"), ({"model": "m", "attempts": "0"}, "attempts is '0'"),
    ({"model": "m", "timeout": "soon"}, "timeout is 'soon'"),
])  # fmt: skip
def test_options_that_can_not_be_are_told(options: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        llm.make(options)


def test_a_judge_is_asked_first_and_its_words_reach_the_coder(tmp_path: Path) -> None:
    proposal, _, server = ask(tmp_path, Reply(recorded("judge")), Reply(recorded("valid")), options={"judge": "m2"})
    assert proposal is not None
    assert [body["model"] for _, _, body in server.asked] == ["m2", "m1"]
    assert "Put the loop over j inside" in server.asked[1][2]["messages"][1]["content"]
    assert [m.role for m in proposal.messages] == ["system", "user", "judge", "system", "user", "assistant"]
    assert proposal.cost.tokens == 240


def test_a_rejected_kernel_is_repaired_with_its_findings(tmp_path: Path) -> None:
    finding = Finding(cls="wrong", summary="out[0, 3] is 1.5, expected 2.5", where="out[0, 3]", expected="2.5", got="1.5",
                      case=CaseRecord(dims={"M": 1, "K": 5}), gate="shapes")  # fmt: skip
    report = GateReport(name="shapes", role="core", status="fail", findings=(finding,))
    verdict = Verdict(verdict="reject", gates=(report,))
    grown = tree(node(0, NAIVE), node(1, NAIVE + "\n", ratio=None))
    _, _, server = ask(tmp_path, Reply(recorded("valid")), grown=grown, parent=1, verdict=lambda: verdict)
    system, user = (m["content"] for m in server.asked[0][2]["messages"])
    assert "This kernel was rejected. Repair it" in system
    for words in ("out[0, 3] is 1.5, expected 2.5", "smallest case: M=1, K=5", "expected: 2.5", "got: 1.5"):
        assert words in user


def test_the_prompt_holds_the_reference_and_nothing_else_of_the_problem_file(tmp_path: Path) -> None:
    problem = tmp_path / "problem.py"
    problem.write_text(PROBLEM.read_text() + "\nHIDDEN = [{'M': 777}]\n")
    grown = tree(node(0, NAIVE), node(1, NAIVE + "/* b */\n", ratio=1.5), node(2, NAIVE + "/* c */\n", 1, ratio=None))
    made = context(grown, tmp_path, parent=1, problem=str(problem), explain=lambda: "bound by memory")
    text = _prompt.fitted(_prompt.parts(made), 8000)
    assert "return a @ b" in text
    assert "777" not in text
    for words in ("1.5 times as fast as the start", "+/* b */", "bound by memory", "#2 test: wrong: values"):
        assert words in text


def test_the_prompt_fits_its_budget_and_the_kernel_is_never_cut(tmp_path: Path) -> None:
    long = node(1, NAIVE + "\n", ratio=None).model_copy(
        update={"failure": Failure(kind="wrong", message="x" * 50_000)})  # fmt: skip
    made = context(tree(node(0, NAIVE), long), tmp_path, parent=1, problem=str(PROBLEM))
    text = _prompt.fitted(_prompt.parts(made), 1000)
    assert len(text) <= 1000 * _prompt.LETTERS
    assert NAIVE in text
    assert "[cut]" in text
    with pytest.raises(ValueError, match="'kernel' alone needs more than 100 tokens"):
        _prompt.fitted(_prompt.parts(made), 100)


def test_no_more_tokens_are_asked_for_than_the_run_has_left(tmp_path: Path) -> None:
    proposal, made, server = ask(tmp_path, left=Left(tokens=600))
    assert proposal is None
    assert "too few tokens are left" in made.trouble
    assert server.asked == []
    _, _, server = ask(tmp_path, Reply(recorded("valid")), left=Left(tokens=3000))
    assert 512 <= server.asked[0][2]["max_tokens"] < 3000
