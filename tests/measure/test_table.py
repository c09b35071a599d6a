"""What a measurement looks like in the terminal, and how workloads become one answer."""

import inspect

import pytest

from tilewright.measure import conclude, decide
from tilewright.measure.protocol import PROTOCOL
from tilewright.measure.record import (
    Arm,
    Baseline,
    Ceilings,
    Figure,
    Floor,
    Interval,
    Measurement,
    Ratio,
    Transfer,
    WorkloadResult,
)
from tilewright.measure.stage import Stage
from tilewright.report import bench_table


def near(middle, spread=0.01):
    return Interval(low=middle * (1 - spread), median=middle, high=middle * (1 + spread), level=0.99)


def arm(name, time, blocks=12):
    return Arm(name=name, blocks=((time, time),) * blocks, cross=(time,) * blocks, time=near(time), checked=6,
               extra_bytes=2 << 20)  # fmt: skip


def workload(name="M=8", ratio=1.5, answer="faster"):
    figure = Figure(
        cache="warm", launch="plain", arms=(arm("candidate", 1e-4), arm("twin", 1e-4), arm("eager", ratio * 1e-4)),
        ratios=(Ratio(baseline="eager", interval=near(ratio), variation=0.011, answer=answer),), null=near(1.0),
        noise=0.03, honest="eager", answer=answer,
    )  # fmt: skip
    floor = Floor(seconds=5e-5, bytes=1, flops=1, bandwidth=1.0, rate=1.0, bound="memory", fraction=0.5)
    return WorkloadResult(name=name, dims={"M": 8}, figures=(figure,), floor=floor, answer=answer, reason="it is so")


@pytest.fixture
def measurement():
    return Measurement(
        answer="faster", reason="the whole interval lies above", kernel="k.c", kernel_sha256="k" * 64, task="t",
        task_sha256="t" * 64, protocol=PROTOCOL.sha256(), protocol_version="1", ratio=near(1.5), noise=0.03,
        variation=0.011, workloads=(workload(),), compile_s=0.2, notes=("a note",), state={"before": {"load": [0.5]}},
        baselines=(Baseline(name="eager", kind="eager", status="right", compile_s=0.1),
                   Baseline(name="mine.c", kind="file", status="wrong", reason="out[0] is 1"),
                   Baseline(name="graph", kind="graph", status="unavailable", reason="CUDA graphs need a GPU")),
        transfer=Transfer(shown=1, hidden=2, kept=1, rate=0.5, cause="tuned to the shown workloads", spent=3),
        ceilings=Ceilings(device="cpu", name="a machine"), id="abcdef012345",
    )  # fmt: skip


def test_the_table(measurement, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    bench_table.show(measurement)
    out = capsys.readouterr().out
    for wanted in ("FASTER  k.c  on t, cpu", "1.5× [1.48, 1.52]", "(abcdef012345)", "100 µs",
                   "eager (honest)", "50%", "33%", "1.1%", "(A/A)", "2 MiB", "baseline mine.c: wrong: out[0] is 1",
                   "baseline graph: unavailable: CUDA graphs need a GPU", "note: a note",
                   "1 of 2 hidden workloads: tuned to the shown workloads; spent 3 times",
                   "a machine, load 0.5"):  # fmt: skip
        assert wanted in out, f"{wanted!r} not in:\n{out}"


def test_one_line(measurement, capsys):
    bench_table.show(measurement, quiet=True)
    assert len(capsys.readouterr().out.strip().splitlines()) == 1


@pytest.mark.parametrize("answer", ["refused", "too noisy"])
def test_no_ratio_is_shown_that_does_not_count(measurement, answer):
    assert "×" not in bench_table.headline(measurement.model_copy(update={"answer": answer})).plain
    assert measurement.model_copy(update={"answer": answer}).exit_code == 3


@pytest.mark.parametrize(("n", "text"), [(None, "–"), (1.5e-9, "1.5 ns"), (2e-3, "2 ms"), (61.0, "61 s")])
def test_times(n, text):
    assert bench_table.seconds(n) == text


def test_workloads_are_joined():
    ratio, noise, varies = conclude._joined([workload(ratio=2.0), workload(ratio=0.5)], PROTOCOL)
    assert ratio.median == pytest.approx(1.0)
    assert (noise, varies) == (0.03, 0.011)


def test_no_workload_without_a_ratio_is_forgotten():
    bare = workload().model_copy(update={"figures": ()})
    assert conclude._joined([workload(), bare], PROTOCOL) == (None, 0.03, None)


def test_a_baseline_is_as_good_as_at_its_worst_workload():
    known = {}
    right = Baseline(name="compile", kind="compile", status="right", compile_s=3.0)
    wrong = right.model_copy(update={"status": "wrong", "reason": "out[1]", "compile_s": 2.0})
    conclude.merge(known, [right])
    conclude.merge(known, [wrong])
    conclude.merge(known, [right])
    assert (known["compile"].status, known["compile"].reason, known["compile"].compile_s) == ("wrong", "out[1]", 3.0)


def test_the_record_reads_back(measurement):
    assert Measurement.model_validate_json(measurement.model_dump_json()) == measurement
    assert not measurement.void
    assert measurement.model_copy(update={"answer": "too noisy"}).void


@pytest.mark.parametrize("why", decide.WRONG)
def test_a_kernel_that_is_wrong_in_another_state_is_refused(why):
    """Right and faster when launched, wrong when replayed from a graph: that is no gain."""
    good = workload()
    replayed = good.figures[0].model_copy(update={"launch": "graph", "ratios": (), "answer": "refused",
                                                  "reason": f"{why}: out[0] is 1"})  # fmt: skip
    bad = good.model_copy(update={"figures": (*good.figures, replayed)})
    answer, reason = decide.overall([good, bad], near(1.5), 0.03, PROTOCOL)
    assert answer == "refused"
    assert reason == f"M=8, warm cache, graph launch: {why}: out[0] is 1"
    closed = replayed.model_copy(update={"reason": "the kernel's call can't be captured as a CUDA graph"})
    other = good.model_copy(update={"figures": (*good.figures, closed)})
    assert decide.overall([good, other], near(1.5), 0.03, PROTOCOL)[0] == "faster", "not to be timed so is no fault"


def test_the_judge_speaks_as_the_rule_listens():
    said = inspect.getsource(Stage.judge)
    for begins in decide.WRONG:
        assert begins in said
