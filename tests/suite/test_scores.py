"""Scores by hand-made results: every number here can be worked out on paper."""

from __future__ import annotations

import math

import pytest

from tilewright.suite.scores import (
    Result,
    Timing,
    categories,
    fast_p,
    losses,
    roofline,
    transfer,
    wilson,
)


def timed(speedup: float, *, low: float | None = None, high: float | None = None, floor: float | None = 0.5,
          weight: float = 1.0, workload: str = "N=1") -> Timing:  # fmt: skip
    return Timing(workload, speedup, low or speedup * 0.98, high or speedup * 1.02, floor, "", weight)


def result(name: str, *timings: Timing, verdict: str = "accept", answer: str = "faster", **more: object) -> Result:
    return Result(name, "a", verdict, answer=answer if timings else "", timings=timings, **more)  # type: ignore[arg-type]


FOUR = [
    result("fast", timed(2.0)),
    result("slow", timed(0.5), answer="slower"),
    result("wrong", timed(9.0), verdict="reject"),
    Result("none", "b", "missing"),
]


@pytest.mark.parametrize(("p", "share"), [(0.0, 0.5), (0.4, 0.5), (0.5, 0.25), (1.0, 0.25), (1.99, 0.25), (2.0, 0.0)])
def test_fast_p_counts_every_problem(p: float, share: float) -> None:
    found = fast_p(FOUR, p)
    assert found.known
    assert found.value == share


def test_fast_p_with_the_whole_interval_beyond() -> None:
    rows = [result("a", timed(1.05, low=0.99)), result("b", timed(1.05, low=1.01))]
    assert fast_p(rows, 1.0).value == 1.0
    assert fast_p(rows, 1.0, surely=True).value == 0.5


def test_what_was_not_measured_is_a_range_and_not_a_guess() -> None:
    rows = [
        result("a", timed(2.0)),
        Result("b", "", "accept"),
        Result("c", "", "reject"),
        Result("d", "", "incomplete"),
    ]
    found = fast_p(rows, 1.0)
    assert (found.value, found.most, found.known) == (0.25, 0.5, False)
    assert fast_p(rows, 0.0).value == 0.5
    assert fast_p(rows, 0.0).known


def test_noise_and_refusal() -> None:
    noisy, refused = result("n", timed(3.0), answer="too noisy"), result("r", timed(30.0), answer="refused")
    assert fast_p([noisy], 0).value == 1.0
    assert not fast_p([noisy], 1).known
    assert fast_p([refused], 0).value == 0.0
    assert fast_p([refused], 1).most == 0.0


def test_the_speedup_of_a_problem_is_the_geometric_mean_over_its_workloads() -> None:
    row = result("a", timed(4.0), timed(1.0))
    assert row.speedup == pytest.approx(2.0)
    assert row.interval == pytest.approx((2 * 0.98, 2 * 1.02))
    assert result("a", timed(4.0, weight=3), timed(1.0)).speedup == pytest.approx(4.0**0.75)
    assert math.isnan(result("a", timed(0.0)).speedup)


def test_roofline_is_weighted_and_wrong_ones_score_nothing() -> None:
    rows = [result("a", timed(1.0, floor=0.8), weight=3.0), result("b", timed(1.0, floor=0.4), weight=1.0),
            result("c", timed(1.0, floor=1.0), verdict="reject", weight=4.0)]  # fmt: skip
    assert roofline(rows).value == pytest.approx((3 * 0.8 + 0.4) / 8)


def test_roofline_is_capped_and_tells_what_is_unknown() -> None:
    assert roofline([result("a", timed(1.0, floor=1.04))]).value == 1.0
    found = roofline(
        [result("a", timed(1.0, floor=0.5)), result("b", timed(1.0, floor=None)), Result("c", "", "accept")]
    )
    assert found.value == pytest.approx(0.5 / 3)
    assert found.most == pytest.approx(2.5 / 3)
    assert math.isnan(roofline([]).value)


def test_categories() -> None:
    first, second = categories(FOUR)
    assert (first.name, first.total, dict(first.verdicts)) == ("a", 3, {"accept": 2, "reject": 1})
    assert first.speedup == pytest.approx(1.0)
    assert first.fast_1.value == pytest.approx(1 / 3)
    assert (second.name, dict(second.verdicts)) == ("b", {"missing": 1})
    assert math.isnan(second.speedup)


def test_transfer_counts_wins_only() -> None:
    rows = [result("a", timed(2.0), transfer="holds"), result("b", timed(2.0), transfer="wrong"),
            result("c", timed(2.0), transfer="slower"), result("d", timed(2.0)),
            result("e", timed(0.5), answer="slower", transfer="slower")]  # fmt: skip
    found = transfer(rows)
    assert (found.wins, found.holds, found.untried) == (3, 1, 1)
    assert dict(found.causes) == {"wrong": 1, "slower": 1}
    assert math.isnan(transfer([]).rate)
    assert transfer([]).interval == (0.0, 1.0)


def test_wilson_against_published_values() -> None:
    """Newcombe, 1998, method 3."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_losses_show_a_workload_that_a_mean_hides() -> None:
    hidden = result("mixed", timed(4.0), timed(0.7, workload="N=3"))
    assert [r.problem for r in losses([*FOUR, hidden])] == ["slow", "mixed"]
    assert losses([result("a", timed(0.99, high=1.01))]) == []
