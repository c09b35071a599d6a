"""Intervals hold what they promise; answers follow from them."""

import numpy
import pytest

from tilewright.measure import decide, statistics
from tilewright.measure.protocol import PROTOCOL, Protocol, quick
from tilewright.measure.record import Floor, Interval, WorkloadResult

FEW = PROTOCOL.model_copy(update={"resamples": 400})


def blocks(rng, n, time, spread=0.01, calls=10):
    return [list(time * (1 + spread * rng.standard_normal(calls))) for _ in range(n)]


def test_the_interval_covers_the_truth():
    """At 99% of confidence a miss in 300 samples of 20 blocks is rare; 12 would be five times the promise."""
    rng = numpy.random.default_rng(1)
    missed = 0
    for _ in range(300):
        found = statistics.interval(rng.normal(1.0, 0.05, 20), FEW)
        missed += not found.low <= 1.0 <= found.high
    assert missed <= 12


def test_the_interval_of_equal_values_is_a_point():
    found = statistics.interval([2.0] * 12, FEW)
    assert (found.low, found.median, found.high) == (2.0, 2.0, 2.0)


def test_the_same_samples_give_the_same_interval():
    x = numpy.random.default_rng(2).normal(1, 0.1, 15)
    assert statistics.interval(x, FEW) == statistics.interval(x, FEW)


def test_a_drift_hits_both_arms_alike():
    """ABBA: a machine that slows down by a third within a block leaves the ratio where it is."""
    speed = [1.0, 1.1, 1.2, 1.3]
    candidate = [[2 * speed[0], 2 * speed[3]]] * 12
    baseline = [[3 * speed[1], 3 * speed[2]]] * 12
    assert statistics.paired(candidate, baseline) == pytest.approx([1.5] * 12)


def test_variation_is_the_coefficient_of_variation():
    assert statistics.variation([1.0, 1.0, 1.0]) == 0
    assert statistics.variation([0.9, 1.1]) == pytest.approx(0.1414, abs=1e-3)


def test_workloads_are_joined_by_the_geometric_mean():
    found = statistics.combined([[2.0] * 12, [0.5] * 12], FEW)
    assert found.median == pytest.approx(1.0)
    assert statistics.combined([[4.0] * 12, [1.0] * 12], FEW).median == pytest.approx(2.0)


def near(low, high, middle=None):
    return Interval(low=low, median=middle or (low + high) / 2, high=high, level=0.99)


@pytest.mark.parametrize(
    ("ratio", "variation", "noise", "expected"),
    [
        (near(1.05, 1.10), 0.01, 0.03, "faster"),
        (near(1.02, 1.10), 0.01, 0.03, "no measurable gain"),
        (near(1.05, 1.10), 0.01, 0.06, "no measurable gain"),
        (near(0.80, 0.90), 0.01, 0.03, "slower"),
        (near(0.95, 0.99), 0.01, 0.03, "no measurable gain"),
        (near(2.00, 3.00), 0.051, 0.03, "too noisy"),
        (near(2.00, 3.00), 0.05, 0.03, "faster"),
    ],
)
def test_answers(ratio, variation, noise, expected):
    assert decide.answer(ratio, variation, noise, PROTOCOL)[0] == expected


def test_the_noise_band_is_what_the_null_run_reaches_to():
    assert decide.noise_band(None, PROTOCOL) == PROTOCOL.smallest_effect
    assert decide.noise_band(near(0.999, 1.001), PROTOCOL) == PROTOCOL.smallest_effect
    assert decide.noise_band(near(0.9, 1.01), PROTOCOL) == pytest.approx(0.1)
    assert decide.noise_band(near(0.99, 1.2), PROTOCOL) == pytest.approx(0.2)


def test_clocks_that_disagree():
    assert decide.clocks_disagree(1e-3, 1.04e-3, PROTOCOL) == ""
    assert "two clocks disagree: 1000.0 µs and 500.0 µs" in decide.clocks_disagree(1e-3, 0.5e-3, PROTOCOL)
    assert decide.clocks_disagree(1e-5, 2e-5, PROTOCOL) == "", "a few microseconds are the handshake"


def floor(seconds):
    return Floor(seconds=seconds, bytes=1, flops=0, bandwidth=1.0, rate=0.0, bound="memory")


def test_below_the_floor():
    assert decide.below_floor(near(0.95, 0.97), floor(1.0), PROTOCOL) == "", "within the margin"
    assert decide.below_floor(near(0.80, 0.95), floor(1.0), PROTOCOL) == "", "its interval reaches the margin"
    assert "compulsory work" in decide.below_floor(near(0.5, 0.6), floor(1.0), PROTOCOL)
    assert decide.below_floor(near(0.5, 0.6), floor(0.0), PROTOCOL) == "", "no ceilings, no floor"


def result(name, answer):
    return WorkloadResult(name=name, dims={}, answer=answer, reason="why")


def test_the_overall_answer():
    good, lost = result("a", "faster"), result("b", "slower")
    assert decide.overall([good, good], near(1.1, 1.2), 0.03, PROTOCOL)[0] == "faster"
    found, why = decide.overall([good, lost], near(1.1, 1.2), 0.03, PROTOCOL)
    assert (found, "slower on b" in why) == ("faster", True), "losses are shown"
    assert decide.overall([good, result("c", "refused")], near(1.1, 1.2), 0.03, PROTOCOL) == ("refused", "c: why")
    assert decide.overall([result("d", "too noisy")], near(1.1, 1.2), 0.03, PROTOCOL)[0] == "too noisy"
    assert decide.overall([good], None, 0.03, PROTOCOL)[0] == "refused"


def test_the_hash_covers_every_number_and_the_code():
    assert PROTOCOL.sha256() == Protocol().sha256()
    assert PROTOCOL.sha256() != PROTOCOL.model_copy(update={"level": 0.95}).sha256()
    assert quick().sha256() != PROTOCOL.sha256()
    assert '"measure/pairing.py"' in PROTOCOL.body()
    assert '"prove/child/role_timing.py"' in PROTOCOL.body()
