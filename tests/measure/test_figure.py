"""From samples to a figure, without a clock."""

import numpy
import pytest

from tilewright.measure.figure import assemble
from tilewright.measure.pairing import Lane, Pairing
from tilewright.measure.protocol import PROTOCOL
from tilewright.measure.record import Floor

FREE = Floor(seconds=0.0, bytes=0, flops=0, bandwidth=0.0, rate=0.0, bound="unknown")


def lane(name, time, rng, spread=0.004, blocks=14, cross=1.0):
    made = Lane(name, hand=None)
    made.blocks = [list(time * (1 + spread * rng.standard_normal(8))) for _ in range(blocks)]
    made.cross = [cross * float(numpy.median(b)) for b in made.blocks]
    return made


def figure(floor=FREE, **times):
    rng = numpy.random.default_rng(3)
    lanes = [x if isinstance(x, Lane) else lane(n, x, rng) for n, x in times.items()]
    return assemble(Pairing(lanes, PROTOCOL, lambda kept, name: "", rng), {}, floor, PROTOCOL)


def test_the_fastest_right_baseline_is_the_honest_one():
    found, out = figure(candidate=1e-3, twin=1e-3, eager=3e-3, compile=1.5e-3)
    assert (found.answer, found.honest, out) == ("faster", "compile", {})
    assert found.ratio().interval.median == pytest.approx(1.5, abs=0.02)
    assert found.ratio("eager").interval.median == pytest.approx(3.0, abs=0.03)


def test_faster_than_eager_alone_is_no_gain():
    found, _ = figure(candidate=1e-3, twin=1e-3, eager=3e-3, compile=1.005e-3)
    assert found.answer == "no measurable gain"
    assert found.ratio("eager").answer == "faster"


def test_a_difference_within_the_null_run_is_no_gain():
    found, _ = figure(candidate=1e-3, twin=1.12e-3, eager=1.08e-3)
    assert found.answer == "no measurable gain"
    assert found.noise > 0.11


def test_a_candidate_with_a_fault_is_refused():
    bad = lane("candidate", 1e-3, numpy.random.default_rng(4))
    bad.fault = "the output of a timed call is wrong"
    found, out = figure(candidate=bad, twin=1e-3, eager=2e-3)
    assert (found.answer, out) == ("refused", {"candidate": bad.fault})


def test_clocks_that_disagree_refuse():
    """Work on another stream or thread: the event ends early, the parent's clock does not."""
    found, _ = figure(candidate=lane("candidate", 1e-4, numpy.random.default_rng(4), cross=5.0), twin=1e-4, eager=2e-4)
    assert found.answer == "refused"
    assert "two clocks disagree" in found.reason


def test_a_baseline_whose_clocks_disagree_is_left_out():
    wild = lane("compile", 1e-5, numpy.random.default_rng(5), cross=50.0)
    found, out = figure(candidate=1e-3, twin=1e-3, eager=2e-3, compile=wild)
    assert found.honest == "eager"
    assert set(out) == {"compile"}


def test_late_outputs_refuse():
    late, eager = (lane(n, 1e-3, numpy.random.default_rng(6)) for n in ("candidate", "eager"))
    late.delivery, eager.delivery = [9e-4] * 20, [1e-4] * 20
    found, _ = figure(candidate=late, twin=1e-3, eager=eager)
    assert found.answer == "refused"
    assert "computed when they are looked at" in found.reason


def test_empty_calls_that_take_long_refuse():
    """What the parent's clock takes off would hide work that runs beside."""
    busy, eager = (lane(n, 1e-3, numpy.random.default_rng(6)) for n in ("candidate", "eager"))
    busy.empty, eager.empty = [4.0e-4] * 20, [2.8e-4] * 20
    found, _ = figure(candidate=busy, twin=1e-3, eager=eager)
    assert (found.answer, "something runs beside it" in found.reason) == ("refused", True)
    busy.empty = [2.9e-4] * 20
    assert figure(candidate=busy, twin=1e-3, eager=eager)[0].answer != "refused"


def test_a_gain_that_launching_eats_is_told():
    fast, eager = lane("candidate", 1e-5, numpy.random.default_rng(6)), lane("eager", 2e-5, numpy.random.default_rng(7))
    fast.host, eager.host = [300e-6] * 9, [30e-6] * 9
    found, _ = figure(candidate=fast, twin=1e-5, eager=eager)
    assert found.answer == "faster"
    assert found.reason.endswith(
        "the host takes 300 µs to launch it, eager 30 µs: a call that the device waits for gains nothing"
    )
    assert found.arm("candidate").host == pytest.approx(300e-6)
    fast.host = [35e-6] * 9
    assert "launch" not in figure(candidate=fast, twin=1e-5, eager=eager)[0].reason


def test_below_the_floor_refuses():
    found, _ = figure(floor=FREE.model_copy(update={"seconds": 2e-3}), candidate=1e-3, twin=1e-3, eager=3e-3)
    assert found.answer == "refused"


def test_noise_is_told():
    wild = lane("eager", 2e-3, numpy.random.default_rng(7), spread=0.6)
    found, _ = figure(candidate=1e-3, twin=1e-3, eager=wild)
    assert found.answer == "too noisy"


def test_few_blocks_are_no_answer():
    short = {n: lane(n, t, numpy.random.default_rng(8), blocks=3) for n, t in (("candidate", 1e-3), ("eager", 2e-3))}
    found, _ = figure(**short)
    assert found.answer == "too noisy"
    assert "only 3 blocks" in found.reason


@pytest.mark.parametrize(("twin", "why"), [(None, "could not be opened a second time"), ("wrong", "its output was wrong"),
                                          ("short", "given up after 9 blocks")])  # fmt: skip
def test_without_a_null_run_nothing_is_claimed(twin, why):
    """Twice as fast, for all that is known: but nobody saw what the same kernel looks like beside itself."""
    rng, given = numpy.random.default_rng(9), {"candidate": 1e-3, "eager": 2e-3}
    if twin:
        given["twin"] = lane("twin", 1e-3, rng, blocks=9 if twin == "short" else 14)
        given["twin"].fault = "its output was wrong" if twin == "wrong" else ""
    found, _ = figure(**given)
    assert found.answer == "too noisy"
    assert "no A/A run came together" in found.reason
    assert why in found.reason
    assert found.ratio("eager").answer == "too noisy"
    assert figure(candidate=1e-3, eager=2e-3, twin=1e-3)[0].answer == "faster"


def test_no_baseline_is_no_comparison():
    found, _ = figure(candidate=1e-3, twin=1e-3)
    assert found.answer == "refused"
