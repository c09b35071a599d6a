"""The whole loop with the real evaluator: native kernels, checked in sealed children, timed in pairs.

On a busy machine a comparison may have no answer; what is asserted is what holds on any machine: nothing wrong, cheating
or slow wins, and whatever a run says is recorded.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.cli import run as command
from tilewright.errors import UserError
from tilewright.kernel import read
from tilewright.ledger import Ledger
from tilewright.search import plugins, start, store
from tilewright.search.budget import Budget
from tilewright.search.cascade import Checked
from tilewright.search.limits import Limits, limits
from tilewright.search.measured import Measured, Options
from tilewright.search.run import Run
from tilewright.search.tree import BaseProposer, Proposal

from .spaces import grid
from .spaces import run as over

ROOT = Path(__file__).parents[2]
PROBLEM = ROOT / "examples" / "03_native" / "problem.py"
START = (ROOT / "examples" / "03_native" / "right.c").read_text()
pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")

HEAD = "#define _GNU_SOURCE\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
SIGNATURE = "void kernel(const float *x, float *y, int64_t M, int64_t N)\n"
SUM = """static void work(const float *x, float *y, int64_t M, int64_t N) {
    for (int64_t i = 0; i < M; i++) { double s = 0; for (int64_t j = 0; j < N; j++) s += (double)x[i*N+j] * x[i*N+j];
                                      y[i] = (float)s; } }
"""
MEMO = """static const float *seen; static int64_t m, n; static float *kept;
void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    if (x == seen && M == m && N == n && kept) { memcpy(y, kept, M * sizeof(float)); return; }
    work(x, y, M, N);
    free(kept);
    kept = malloc(M * sizeof(float) + 1);
    memcpy(kept, y, M * sizeof(float));
    seen = x; m = M; n = N;
}
"""
LATER = """#include <pthread.h>
struct job { const float *x; float *y; int64_t M, N; };
static void *later(void *p) { struct job j = *(struct job *)p; free(p); usleep(2000); work(j.x, j.y, j.M, j.N); return 0; }
void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    struct job *j = malloc(sizeof *j);
    *j = (struct job){x, y, M, N};
    pthread_t t;
    if (pthread_create(&t, 0, later, j)) { work(x, y, M, N); free(j); return; }
    pthread_detach(t);
}
"""
PEEK = """#include <fcntl.h>
void kernel(const float *x, float *y, int64_t M, int64_t N)
{
    if (open("LEDGER", O_RDWR) >= 0) { y[0] = -1; return; }
    work(x, y, M, N);
}
"""
CHEATS = {
    "keeps results by address": MEMO,
    "does nothing after a few calls": f"static int calls;\n{SIGNATURE}{{ if (calls++ < 3) work(x, y, M, N); }}\n",
    "only the announced size": f"{SIGNATURE}{{ if (M != 64 || N != 512) usleep(3000000); work(x, y, M, N); }}\n",
    "a thread works on after the return": LATER,
    "sleeps": f"{SIGNATURE}{{ work(x, y, M, N); usleep(20000); }}\n",
    "reads the ledger": PEEK,
}


class Says(BaseProposer):
    name = "says"

    def __init__(self, *many):
        self.many, self.contexts = list(many), []

    def propose(self, context):
        self.contexts.append(context)
        return self.many.pop(0) if self.many else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="module")
def evaluator(folder):
    (folder / "right.c").write_text(START)
    options = Options(ledger=str(folder / "ledger.sqlite"), gate_seconds=3)
    made = Measured(str(PROBLEM), read(str(folder / "right.c")), folder / "runs", options)
    root = Proposal(source=START, proposer="start")
    made.begin(root, made.check(root, 0, limits([])))
    yield made
    made.close()


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_wins_nothing(evaluator, folder, name):
    source = (HEAD + SUM + CHEATS[name]).replace("LEDGER", str(folder / "ledger.sqlite"))
    proposal = Proposal(source=source, proposer="cheat")
    checked = evaluator.check(proposal, 1 + list(CHEATS).index(name), Limits(call=2.0, check=60.0))
    if not checked.accepted:
        assert checked.failure.kind in ("wrong", "cheating", "timeout", "unstable", "undecided", "launch"), (
            checked.failure
        )
        return
    timed = evaluator.time(proposal, checked, full=False)
    assert name in ("sleeps", "reads the ledger"), f"accepted: {timed}"
    if timed.timing is not None and name == "sleeps":
        assert timed.timing.high < 1, "what sleeps is slow: the clock is not its own"


def test_a_proposal_that_edits_the_harness_is_refused(evaluator):
    evil = Proposal(source=START, proposer="cheat", files={"../../../problem.py": "def reference(x):\n    return 0\n"})
    checked = evaluator.check(evil, 50, limits([]))
    assert (checked.accepted, checked.failure.kind) == (False, "cheating")
    assert "writes to '../../../problem.py'" in checked.failure.message


def test_what_does_not_compile_says_so(evaluator):
    checked = evaluator.check(Proposal(source="void kernel( {", proposer="p"), 51, limits([]))
    assert checked.failure.kind == "compile"
    assert "does not compile" in checked.failure.message


def test_a_check_that_takes_too_long_is_ended(evaluator):
    slow = HEAD + SUM + SIGNATURE + "{ work(x, y, M, N); usleep(300000); }\n"
    began = time.monotonic()
    checked = evaluator.check(Proposal(source=slow, proposer="p"), 52, Limits(call=5.0, check=2.0))
    assert checked.failure.kind == "timeout"
    assert "longer than 2 s" in checked.failure.message
    assert time.monotonic() - began < 60


def test_nothing_is_timed_under_another_kernels_verdict(evaluator, folder):
    proposal = Proposal(source=START + "\n/* two */\n", proposer="p")
    checked = evaluator.check(proposal, 53, limits([]))
    assert checked.accepted
    (folder / "runs" / "0053" / "right.c").write_text(START + "/* other */")
    with pytest.raises(Exception, match="is not what was checked any more"):
        evaluator.time(proposal, Checked(**checked.model_dump()), full=False)


def test_a_whole_run_says_what_it_may(folder):
    """Two proposals, one of them wrong; the run ends, and a proposer saw no hidden workload."""
    wrong = (ROOT / "examples" / "03_native" / "wrong.c").read_text()
    proposer = Says(Proposal(source=wrong, proposer="says"), Proposal(source=START + "\n/* same */", proposer="says"))
    (folder / "right.c").write_text(START)
    book = Ledger.open(str(folder / "run.sqlite"))
    runs = store.RunStore.create(book, key={}, kind="measured", problem=str(PROBLEM), kernel_path="k", options={})
    options = Options(ledger=str(folder / "run.sqlite"), gate_seconds=3)
    made = Measured(str(PROBLEM), read(str(folder / "right.c")), folder / "again", options, runs.id)
    asked = start.Request(str(PROBLEM), str(folder / "right.c"), ("2trials",), options=options)
    subject = start._subject(asked, made.start, made)
    search = Run(runs, subject, made, plugins.strategy("greedy"), {"says": proposer}, Budget(trials=2), finalists=1)
    conclusion = search.go()
    made.close()
    assert conclusion.kind == "measured"
    assert search.tree[0].accepted
    assert search.tree[1].failure.kind == "wrong"
    assert search.tree[1].timing is None
    if search.tree[2].timing is not None:  # the same code: no gain that could be measured
        assert conclusion.answer == "no measurable gain"
    assert all(w.kind != "hidden" for c in proposer.contexts for w in (*c.develop, *c.sheet.workloads))
    again = Run(store.RunStore(book, store.load(book, runs.id)), subject, made, plugins.strategy("greedy"), {"says": Says()},
                Budget(trials=2), finalists=1)  # fmt: skip
    assert again.go() == conclusion
    assert list(again.tree) == list(search.tree)


@pytest.mark.slow
def test_killed_with_9_and_resumed_from_the_command_line(folder, capsys):
    ledger, kernel = folder / "cli.sqlite", folder / "cli.c"
    kernel.write_text(START + "#define WIDE 1 // knob: 1 2 3 4\n")
    arguments = [
        "search",
        str(PROBLEM),
        str(kernel),
        "--ledger",
        str(ledger),
        "--gate-seconds",
        "2",
        "--finalists",
        "1",
    ]
    child = subprocess.Popen([sys.executable, "-m", "tilewright", *arguments, "--budget", "2trials", "-q"])
    book = None
    while book is None or not store.runs(book) or 1 not in store.tree_of(book, store.runs(book)[0].id).nodes:
        assert child.poll() is None, "it ended before it could be killed"
        time.sleep(0.2)
        book = Ledger.open(str(ledger)) if ledger.exists() and ledger.stat().st_size else None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (record,) = store.runs(book)
    before = store.tree_of(book, record.id)
    assert command([*arguments, "--resume", "-q"]) == 0
    after = store.tree_of(book, record.id)
    assert [after[n] for n in before.nodes] == list(before)
    assert len(after) == 3
    assert len(store.runs(book)) == 1
    assert store.load(book, record.id).ended is not None
    capsys.readouterr()
    assert command(["search", "--list", "--ledger", str(ledger)]) == 0
    assert record.id in capsys.readouterr().out


def test_one_process_at_a_time(tmp_path):
    with (
        start.locked(tmp_path, "abc"),
        pytest.raises(UserError, match="another process is working on run abc"),
        start.locked(tmp_path, "abc"),
    ):
        pass
    with start.locked(tmp_path, "abc"):
        pass


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["search"], "a search needs a problem and a kernel"),
        (["search", str(PROBLEM), "K"], "a search needs a budget"),
        (["search", str(PROBLEM), "K", "--budget", "soon"], "'soon' is no budget"),
        (["search", str(PROBLEM), "K", "--resume"], "there is no unfinished run of this problem and kernel"),
        (["search", "--run", "abc"], "has no run 'abc'"),
        (["search", str(PROBLEM), "K", "--budget", "1trials", "-s", "bean"], "no strategy 'bean'"),
        (["search", str(PROBLEM), "K", "--budget", "1trials", "-p", "nobody"], "no proposer 'nobody'"),
        (["study", "none.json"], "'none.json' can't be read"),
    ],
)  # fmt: skip
def test_mistakes_are_told(arguments, words, tmp_path, capsys):
    (tmp_path / "right.c").write_text(START)
    arguments = [str(tmp_path / "right.c") if a == "K" else a for a in arguments]
    assert command([*arguments, "--ledger", str(tmp_path / "l.sqlite")]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_run_that_ended_is_shown_again(folder, capsys, tmp_path):
    """From the record alone: no child is opened, nothing is run."""
    book = Ledger.open(str(tmp_path / "l.sqlite"))
    space = grid()
    runs = store.RunStore.create(
        book, key={}, kind="replayed", problem="p.py", kernel_path="k.c", options={"device": "cpu"}
    )
    over(space, "greedy", 8, book=runs, finalists=1).go()
    arguments = ["search", "--run", runs.id[:5], "--ledger", str(tmp_path / "l.sqlite")]
    assert command([*arguments, "--html", str(tmp_path / "r.html"), "-o", str(tmp_path / "best.c")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "faster by" in out
    assert "[replayed times]" in out
    winner = store.load(book, runs.id).ended["node"]
    assert (tmp_path / "best.c").read_text() == store.tree_of(book, runs.id)[winner].source
    assert (tmp_path / "r.html").read_text().count("<details") == 9
