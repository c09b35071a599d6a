"""Coding agents: small programs stand in for them, well-behaved and not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tilewright.errors import EnvironmentProblem, UserError
from tilewright.search.proposers import agent
from tilewright.search.tree import Left, Proposal

from .make import context, node, tree

ROOT = Path(__file__).resolve().parents[3]
PROBLEM = ROOT / "examples" / "07_search_matmul" / "problem.py"
NAIVE = (ROOT / "src/tilewright/search/skills/examples/naive.c").read_text()
BETTER = (ROOT / "src/tilewright/search/skills/examples/rows.c").read_text()


def program(folder: Path, text: str) -> str:
    path = folder / "agent.sh"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def propose(folder: Path, text: str, *, seconds: float = 20.0, confine: str = "best", **fields: Any
            ) -> tuple[Proposal | None, agent.Agent]:  # fmt: skip
    scratch = folder / "scratch"
    scratch.mkdir()
    (folder / "better.c").write_text(BETTER)
    made = agent.Agent([program(folder, text), "{prompt}", "{task}"], seconds, ["MINE"], confine)
    return made.propose(context(tree(node(0, NAIVE)), scratch, problem=str(PROBLEM), **fields)), made


def test_the_kernel_that_it_leaves_is_the_proposal_and_other_files_are_left_behind(tmp_path: Path) -> None:
    proposal, made = propose(
        tmp_path, f"echo working; cp {tmp_path}/better.c kernel.c; echo x > notes; echo y >> TASK.md"
    )
    assert proposal is not None, made.trouble
    assert proposal.source == BETTER
    assert proposal.extra["left behind"] == ["TASK.md", "notes"]
    assert proposal.extra["ended"] == "exit code 0"
    assert proposal.messages[1].text == "working\n"
    assert 0 < proposal.cost.seconds < 20
    assert proposal.files == {}


def test_it_is_told_the_task_in_words_and_given_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    monkeypatch.setenv("MINE", "allowed")
    proposal, made = propose(tmp_path, f'echo "$1"; cat "$2"; env; ls; cp {tmp_path}/better.c kernel.c')
    assert proposal is not None, made.trouble
    said = proposal.messages[1].text
    assert "Read TASK.md" in said
    assert "MINE=allowed" in said
    assert "hush" not in said
    task = proposal.messages[0].text
    assert "return a @ b" in task
    assert "`./CHECK` proves" in task


def test_check_goes_through_tilewright_and_tells_right_from_wrong(tmp_path: Path) -> None:
    text = f"""
cp {tmp_path}/better.c kernel.c; ./CHECK --gate-seconds 2 -q; echo "right: $?"
sed -i 's/k < K/k < K - 1/' kernel.c; ./CHECK --gate-seconds 2 -q; echo "wrong: $?"
"""
    proposal, made = propose(tmp_path, text, seconds=200.0)
    assert proposal is not None, made.trouble
    assert "right: 0" in proposal.messages[1].text
    assert "wrong: 1" in proposal.messages[1].text


def alive(pids: str) -> list[str]:
    """Which of these processes still run (one that has ended and was not waited for does not)."""
    stats = {p: Path(f"/proc/{p}/stat") for p in pids.split()}
    assert len(stats) == 2
    return [p for p, s in stats.items() if s.exists() and s.read_text().rpartition(")")[2].split()[0] != "Z"]


def test_an_agent_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    text = f"""
echo $TILEWRIGHT_STARTED > {tmp_path}/mark
cp {tmp_path}/better.c kernel.c
trap '' TERM
sleep 300 &
echo $! >> {tmp_path}/pids
setsid sh -c 'echo $$ >> {tmp_path}/pids; exec sleep 301' &
sleep 302
"""
    started = time.monotonic()
    proposal, _ = propose(tmp_path, text, seconds=1.0)
    assert time.monotonic() - started < 15
    assert proposal is not None, "what it had written by then counts"
    assert proposal.extra["ended"] == "its time was over"
    assert alive((tmp_path / "pids").read_text()) == []
    assert (tmp_path / "mark").read_text().strip() != ""


def test_it_gets_no_more_time_than_the_run_has_left(tmp_path: Path) -> None:
    started = time.monotonic()
    proposal, made = propose(tmp_path, "sleep 300", left=Left(seconds=0.5))
    assert proposal is None
    assert "its time was over" in made.trouble
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("by", ["environment", "context"])
def test_the_ledger_is_not_there_for_it(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = tmp_path / "book" / "ledger.sqlite"
    (tmp_path / "book" / "runs").mkdir(parents=True)
    book.write_text("verdicts")
    (tmp_path / "book" / "runs" / "hidden.json").write_text("workloads")
    fields: dict[str, Any] = {}
    if by == "environment":
        monkeypatch.setenv("TILEWRIGHT_LEDGER", str(book))
    else:
        fields = {"private": (book, book.parent / "runs")}
    text = f"cat {book}; cat {book.parent}/runs/*; echo forged > {book}; cp {tmp_path}/better.c kernel.c"
    proposal, made = propose(tmp_path, text, **fields)
    assert proposal is not None, made.trouble
    if proposal.extra["paths"] != "hidden":
        pytest.skip("this machine grants no mount namespace")
    assert "verdicts" not in proposal.messages[1].text
    assert "workloads" not in proposal.messages[1].text
    assert book.read_text() == "verdicts"


@pytest.mark.parametrize(("text", "words"), [
    ("exit 3", "left the kernel as it was (exit code 3)"),
    ("rm kernel.c", "can't be read afterwards"),
    ("ln -sf /etc/passwd kernel.c", "can't be read afterwards"),
    ("rm kernel.c; mkfifo kernel.c", "is no regular file"),
    ("head -c 300000 /dev/zero > kernel.c", "larger than 256 KiB"),
    ("printf '\\377\\376' > kernel.c", "no UTF-8 text"),
])  # fmt: skip
def test_what_is_no_kernel_afterwards_is_told(text: str, words: str, tmp_path: Path) -> None:
    proposal, made = propose(tmp_path, text)
    assert proposal is None
    assert words in made.trouble
    assert made.spent.seconds > 0


@pytest.mark.parametrize(("options", "words"), [
    ({}, "needs a command"), ({"command": "x", "size": "1"}, "takes no option 'size'"),
    ({"command": "x", "confine": "maybe"}, "confine is 'maybe'"), ({"command": "x", "timeout": "long"}, "timeout is"),
])  # fmt: skip
def test_options_that_can_not_be_are_told(options: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        agent.make(options)


def test_a_program_that_is_not_there_is_told_before_the_first_trial(tmp_path: Path) -> None:
    made = agent.make({"command": "no-such-program {prompt}"})
    with pytest.raises(EnvironmentProblem, match="no program 'no-such-program'"):
        made.begin(context(tree(node(0, NAIVE)), tmp_path))
