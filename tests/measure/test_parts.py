"""Inputs that never come twice, hidden workloads, floors, states."""

import numpy
import pytest
import torch

from tilewright.measure import ceilings, ceilings_cuda, gpu_state, hidden, state, watch
from tilewright.measure.arena import Arena
from tilewright.measure.feed import Feed
from tilewright.measure.floor import floor
from tilewright.measure.protocol import PROTOCOL
from tilewright.measure.record import Ceilings, Figure, WorkloadResult
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task

from .conftest import HERE, PROBLEM


@pytest.fixture(scope="module")
def exam():
    from tilewright.kernel import read

    sheet, session = open_task(PROBLEM)
    made = Examination(sheet, read(str(HERE / "right.c")), session)
    yield made
    made.close()
    session.close()


@pytest.fixture
def feed(exam):
    return Feed(exam, exam.workload(), PROTOCOL, numpy.random.default_rng(1))


@pytest.fixture
def arena(feed):
    made = Arena(feed.case.inputs, {"out": torch.zeros(32, 200)}, 3)
    yield made
    made.close()


def test_no_two_calls_get_the_same(feed, arena):
    seen = set()
    for _ in range(50):
        feed.write(arena.place[0])[1]()
        seen.add(arena.place[0].inputs["x"].numpy().tobytes())
    assert len(seen) == 50


def test_an_input_is_complete_only_at_the_end(feed, arena):
    given, complete = feed.write(arena.place[1])
    whole = feed.remake(given).inputs["x"]
    early = arena.place[1].inputs["x"].clone()
    complete()
    assert torch.equal(arena.place[1].inputs["x"], whole)
    assert not torch.equal(early, whole), "who starts early gets lines of something else"
    assert torch.isfinite(early).all()


def test_slots_lie_apart_between_guards(arena):
    at = [s.inputs["x"].data_ptr() for s in arena.place]
    assert len(set(at)) == 3
    assert all(b - a >= 32 * 200 * 4 + 4096 for a, b in zip(sorted(at), sorted(at)[1:], strict=False))


def test_hidden_workloads_are_lawful_and_new(exam):
    drawn = hidden.draw(exam.sheet, 5, numpy.random.default_rng(2))
    known = [w.dims for w in exam.sheet.workloads]
    assert len(drawn) == 5
    assert len({tuple(w.dims.items()) for w in drawn}) == 5
    for w in drawn:
        assert w.kind == "hidden"
        assert w.dims not in known
        assert 3200 <= w.dims["M"] * w.dims["N"] <= 12800
    assert hidden.draw(exam.sheet, 5, numpy.random.default_rng(3)) != drawn, "nobody can list them"


def answered(answer, reason=""):
    return WorkloadResult(name="w", dims={}, answer=answer, reason=reason)


@pytest.mark.parametrize(
    ("shown", "secret", "rate", "cause"),
    [
        ("faster", ["faster", "faster"], 1.0, ""),
        ("faster", ["faster", "slower"], 0.5, "tuned to the shown workloads"),
        ("faster", ["no measurable gain"], 0.0, "benign: the gain is smaller than the noise there"),
        ("faster", ["refused"], 0.0, "wrong beyond the shown workloads"),
        ("no measurable gain", ["no measurable gain"], 1.0, ""),
        ("faster", ["too noisy"], None, ""),
    ],
)
def test_transfer(shown, secret, rate, cause):
    found = hidden.transfer([answered(shown)], [answered(s, "its output is wrong") for s in secret], 1)
    assert (found.rate, found.cause) == (rate, cause)


def test_the_floor_is_the_task_s_work_over_the_ceiling(exam, feed):
    tops = Ceilings(device="cpu", name="m", read={1024: 1e9, 1 << 20: 1e8}, copy_={1024: 5e8}, rates={"float32": 1e6})
    found = floor(exam.sheet, feed.case, 32 * 200 * 4, tops)
    assert found.bytes == 2 * 32 * 200 * 4
    assert found.bandwidth == 1e9, "51200 bytes count as the next smaller set that was measured"
    assert (found.bound, found.seconds) == ("arithmetic", 2 * 32 * 200 / 1e6)
    assert floor(exam.sheet, feed.case, 0, None).seconds == 0


def test_ceilings_fall_with_the_working_set():
    assert ceilings._falling({1: 5.0, 2: 7.0, 4: 3.0}) == {1: 7.0, 2: 7.0, 4: 3.0}
    assert ceilings.at({4: 3.0, 16: 1.0}, 8) == 3.0
    assert ceilings.at({4: 3.0, 16: 1.0}, 2) == 3.0


class Card:
    """A stand-in for a GPU of 1 TB/s and 10 Top/s."""

    def available(self):
        return True

    def name(self):
        return "a card"

    def cache(self):
        return 1 << 20

    def free_bytes(self):
        return 1 << 24

    def release(self):
        pass

    def ones(self, n, dtype):
        return torch.ones(n)

    def random(self, n, dtype):
        return torch.ones(n, n)

    def tf32(self):
        import contextlib

        return contextlib.nullcontext()

    def time(self, call):
        return 1e-6


def test_ceilings_of_a_device_without_one():
    found = ceilings_cuda.measure("cuda", Card(), sets=(1 << 22, 1 << 30), matrix=8)
    assert found.read == {1 << 22: (1 << 22) / 1e-6}, "a set that does not fit is left out"
    assert found.rates["float32"] == 2 * 8**3 / 1e-6
    assert found.launch == 1e-6


def test_what_the_driver_tells():
    line = (
        "NVIDIA H200, 580.159.04, 1980, 3201, 1980, 91.5, 700.00, 34, 0x0000000000000004, 0, Enabled, [N/A], Enabled\n"
    )
    found = gpu_state.parse(line)
    assert found["name"] == "NVIDIA H200"
    assert found["power_w"] == 91.5
    assert "mig" not in found
    assert gpu_state.throttled(found) == "power cap"
    assert gpu_state.throttled({"throttle": 1}) == ""
    assert gpu_state.index("cuda:1") == "1"


def test_the_state_of_this_machine():
    found = state.snapshot()
    assert len(found["load"]) == 3
    assert found["processors"] >= 1
    assert state.alike({"a": 1}, {"a": 1, "b": 2}) == ("b",)


def process(root, pid, parent, inside=(), children=()):
    folder = root / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a (name) S {parent} 1 1")
    (folder / "status").write_text(f"Name:\tx\nNSpid:\t{pid} {' '.join(map(str, inside))}\n")
    (folder / "task" / str(pid) / "children").write_text(" ".join(map(str, children)))


def test_a_child_is_found_from_outside_of_its_process_namespace(tmp_path):
    process(tmp_path, 100, 1, children=(101,))  # what waits for the server
    process(tmp_path, 101, 100, inside=(1,), children=(102, 103))
    process(tmp_path, 102, 101, inside=(2, 1))
    process(tmp_path, 103, 101, inside=(3, 1))
    process(tmp_path, 3, 99)  # another process that happens to have the child's number here
    assert watch.locate(3, 100, tmp_path) == 103
    assert watch.locate(7, 100, tmp_path) is None
    assert watch.locate(101, 100, tmp_path) == 101, "a child of the server itself"


def test_a_process_that_is_no_child_is_not_trusted():
    import os

    mine = watch.Watched(os.getpid(), server=1 << 30)
    assert not mine.seen
    assert mine.busy() == ""
    mine.close()


def test_a_figure_without_arms_has_no_ratio():
    empty = Figure(cache="warm", launch="plain", arms=(), noise=0.03, answer="refused")
    assert empty.ratio() is None
    assert empty.arm("candidate") is None
