"""Work that is begun before it is asked for: in order, taken once, dropped without waiting for what hangs."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from trial import trial

from tilewright.kernel import read
from tilewright.prove import ahead
from tilewright.prove.case import Recipe
from tilewright.prove.child.session import Limits
from tilewright.prove.gates.values import Values

TASK = """
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: x * 2, inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("N")},
    dims={"N": Dim(1, 64)}, workloads=[{"N": 12}],
)
"""


def case() -> SimpleNamespace:
    return SimpleNamespace()


def test_one_after_the_other_and_taken_once():
    begun, cases, seen = ahead.Begun("test"), [case() for _ in range(5)], []
    for i, c in enumerate(cases):
        begun.begin(c, lambda i=i: seen.append(i) or i * i)
        begun.begin(c, lambda: seen.append("again"))
    assert [begun.take(c).result() for c in cases] == [0, 1, 4, 9, 16]
    assert seen == [0, 1, 2, 3, 4]
    assert begun.take(cases[0]) is None


def test_an_error_reaches_the_one_who_takes():
    begun, one = ahead.Begun("test"), case()
    begun.begin(one, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        begun.take(one).result()


def test_what_hangs_is_ended_and_what_waits_never_runs(monkeypatch):
    monkeypatch.setattr(ahead, "WAIT_S", 0.05)
    begun, killed, ran = ahead.Begun("test"), threading.Event(), []
    session = SimpleNamespace(server=SimpleNamespace(kill=lambda pid: killed.set()), pid=1, evaluator=None)
    begun.begin(case(), killed.wait, 60)
    second = case()
    begun.begin(second, ran.append, 1)
    started = time.monotonic()
    ahead.drop(begun.rest(), (session,))
    assert time.monotonic() - started < 30
    assert killed.is_set()
    assert not ran
    assert begun.take(second) is None


def test_stopping_ends_what_was_taken_and_still_runs():
    begun, killed, one = ahead.Begun("test"), threading.Event(), case()
    session = SimpleNamespace(server=SimpleNamespace(kill=lambda pid: killed.set()), pid=1, evaluator=None)
    begun.begin(one, killed.wait, 60)
    future = begun.take(one)
    begun.stop((session,))
    assert future.result() is True


@pytest.mark.parametrize("plain", [True, False])
def test_the_finding_is_the_same(tmp_path, monkeypatch, plain):
    monkeypatch.setattr(Values, "plain", plain)
    wrong = "def kernel(x):\n    return x * 2 + (len(x) > 6)\n"
    finding = trial(tmp_path, wrong, "values", task=TASK).finding
    assert (finding.gate, finding.case.dims, finding.replays) == ("values", {"N": 7}, True)


def test_a_call_that_hangs_ahead_does_not_hold_up_a_finding(tmp_path, monkeypatch):
    """The first case is wrong; the second one, which is under way by then, takes a minute."""
    monkeypatch.setattr(ahead, "WAIT_S", 0.2)
    monkeypatch.setattr(Values, "cases", lambda self, exam: (exam.make(Recipe(exam.workload(), family=f, seed=1))
                                                             for f in ("natural", "all_negative")))  # fmt: skip
    hangs = "import time\ndef kernel(x):\n    time.sleep(60 * bool((x < 0).all()))\n    return x * 3\n"
    started = time.monotonic()
    finding = trial(tmp_path, hangs, "values", task=TASK).finding
    assert time.monotonic() - started < 50
    assert (finding.gate, finding.replays) == ("values", True)


KERNEL = "import triton\nimport triton.language as tl\n{}\n@triton.jit\ndef twice(x, y, n, B: tl.constexpr):\n    " \
    "i = tl.arange(0, B)\n    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)\n" \
    "def kernel(x):\n    y = x.new_empty(len(x))\n    twice[(1,)](x, y, len(x), B=64)\n    return y\n"  # fmt: skip


def children(tmp_path, text):
    (tmp_path / "kernel.py").write_text(text)
    return ahead.Children(read(str(tmp_path / "kernel.py")), Limits(), "best")


def test_the_next_child_is_open_before_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(ahead, "QUICK_S", 60.0)
    many = children(tmp_path, KERNEL.format(""))
    first = many.take()
    waiting = many._next.result()
    second = many.take()
    last = many._next.result()
    assert second is waiting
    assert len({first.pid, second.pid, last.pid, first.evaluator.pid, second.evaluator.pid, last.evaluator.pid}) == 6
    many.stop()
    assert (first.dead, second.dead) == (None, None)
    assert last.dead
    first.close()
    second.close()


def test_a_spare_that_died_is_not_handed_out(tmp_path, monkeypatch):
    monkeypatch.setattr(ahead, "QUICK_S", 60.0)
    many = children(tmp_path, KERNEL.format(""))
    with many.take(), many._next.result() as spare:
        pass
    assert spare.dead
    with many.take() as fresh:
        assert fresh is not spare
        assert fresh.dead is None
    many.stop()


def test_none_in_advance_of_a_kernel_that_does_not_load(tmp_path):
    many = children(tmp_path, KERNEL.format("import no_such_module"))
    with many.take() as session:
        assert "no_such_module" in session.load_trouble.message
    assert many._next is None
