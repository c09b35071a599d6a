"""The last word of a search: right at any time of stopping, corrected for the number of finalists, and not fooled."""

import math
import random

import pytest

from tilewright.search import finalists
from tilewright.search.cascade import Checked, Timed
from tilewright.search.final import MISSED_MOST
from tilewright.search.tree import Failure, Node, Proposal, Timing, Tree

from .spaces import grid, run

SPACE = grid()


def mixture(above, below, steps=20_000):
    """The e-value by numerical integration of its definition: the mean likelihood ratio over stakes on (1/2, 1)."""
    ps = [0.5 + 0.5 * (i + 0.5) / steps for i in range(steps)]
    return sum((2 * p) ** above * (2 * (1 - p)) ** below for p in ps) / steps


@pytest.mark.parametrize(("above", "below"), [(0, 0), (1, 0), (0, 1), (5, 2), (9, 0), (3, 12), (20, 10)])
def test_the_e_value_is_the_mixture_that_it_claims_to_be(above, below):
    assert finalists.e_value(above, below) == pytest.approx(mixture(above, below), rel=1e-4)


def test_looking_at_every_round_finds_no_gain_where_there_is_none():
    """2000 searches without a gain, stopped at the first round that seems to show one."""
    rng, alpha, wrong = random.Random(1), 0.05, 0
    for _ in range(2000):
        logs = []
        for _ in range(40):
            logs.append(rng.gauss(0, 0.02) * rng.choice((1, 1, 1, 10)))  # heavy tails
            if finalists.interval(logs, alpha)[0] > 0:
                wrong += 1
                break
    assert wrong / 2000 <= alpha + 0.015
    assert wrong > 0, "so the test could have failed"


def test_the_interval_holds_the_truth_whenever_one_stops():
    rng, missed = random.Random(2), 0
    for _ in range(1000):
        logs = [rng.gauss(0.1, 0.05) for _ in range(rng.choice((10, 17, 40)))]
        low, high = finalists.interval(logs, 0.025)
        missed += not low <= 0.1 <= high
    assert missed / 1000 <= 0.05


def test_a_real_gain_is_found_quickly():
    rng = random.Random(3)
    logs = [rng.gauss(math.log(1.2), 0.03) for _ in range(finalists.rounds_least(0.025))]
    low, high = finalists.interval(logs, 0.025)
    assert math.log(1.03) < low < math.log(1.2) < high
    assert len(logs) <= 9


def test_more_finalists_need_more_evidence():
    assert finalists.rounds_least(0.05 / 2) < finalists.rounds_least(0.05 / 20)
    assert finalists.interval([1.0, 1.1, 1.2], 0.025) == (-math.inf, math.inf), "three rounds say nothing"


class Flattering:
    """Times on the workloads of the search are better than they are on hidden ones."""

    kind, noise = "synthetic", 0.03

    def __init__(self, hidden, fault=None):
        self.hidden, self.fault, self.rounds = hidden, fault, 0

    def check(self, proposal, number, limits):
        return Checked(accepted=True, seconds=1.0)

    def begin(self, root, checked):
        pass

    def time(self, proposal, checked, full):
        return Timed(timing=Timing(seconds=1, ratio=2.0, low=1.9, high=2.1))

    def final_round(self, nodes, number):
        self.rounds += 1
        rng = random.Random(number)
        return {n.number: self.fault or math.log(self.hidden) + rng.gauss(0, 0.005) for n in nodes}

    def close(self):
        pass


def concluded(evaluator):
    search = run(SPACE, "random", 4, finalists=2)
    search.evaluator = evaluator
    return search.go()


def test_a_gain_that_hidden_workloads_do_not_show_is_none():
    """A kernel that knows the announced sizes by heart, or sleeps on all others, wins nothing."""
    for hidden in (0.5, 1.0, 1.02):
        c = concluded(Flattering(hidden))
        assert c.answer == "no measurable gain", hidden
        assert c.words == "no measurable gain"
        assert "2x on those of the search" in c.reason
        assert c.tried == 4


def test_a_gain_that_holds_is_told_with_its_interval():
    c = concluded(Flattering(1.5))
    assert c.answer == "faster"
    assert c.low > 1.03
    assert c.low <= c.ratio <= c.high
    assert c.words.startswith("faster by 1.5x (1.4")
    assert c.ratio == pytest.approx(1.5, rel=0.01), "not the 2x that the search saw"


def test_wrong_on_hidden_workloads_is_out():
    c = concluded(Flattering(2.0, Failure(kind="wrong", message="y[3] is 0")))
    assert c.answer == "no measurable gain"
    assert c.reason.startswith("every finalist was dropped: #")
    assert "wrong: y[3] is 0" in c.reason


def test_a_busy_machine_is_no_fault_of_the_kernel_but_gives_no_gain_either():
    evaluator = Flattering(2.0, Failure(kind="unstable", message="other work has the processors"))
    c = concluded(evaluator)
    assert c.answer == "no measurable gain"
    assert f"unstable: {MISSED_MOST + 1} rounds could not be timed, other work has the processors" in c.reason
    assert evaluator.rounds == MISSED_MOST + 1


def test_only_what_beats_the_noise_becomes_a_finalist():
    def node(number, ratio):
        return Node(number=number, parent=0 if number else None, proposal=Proposal(source=str(number), proposer="p"),
                    accepted=True, timing=Timing(seconds=1, ratio=ratio, low=ratio, high=ratio))  # fmt: skip

    tree = Tree({n.number: n for n in (node(0, 1.0), node(1, 1.02), node(2, 1.5), node(3, 1.2), node(4, 1.3))})
    assert [n.number for n in finalists.choose(tree, 2, 0.03)] == [2, 4]
    assert finalists.choose(Tree({0: node(0, 1.0)}), 3, 0.03) == []
    lucky = node(5, 3.0)
    tree.add(lucky.model_copy(update={"timing": lucky.timing.model_copy(update={"low": 0.9, "high": 9.0})}))
    assert [n.number for n in finalists.choose(tree, 2, 0.03)] == [2, 4], "a wide interval is mostly luck"
    nothing = finalists.conclude([], 0.03)
    assert nothing.reason == "no trial was faster than the start by more than the noise"


def test_a_budget_in_which_no_trial_fits_is_told_as_that() -> None:
    assert "no trial fitted into the budget" in finalists.conclude([], 0.03, tried=0).reason
    assert "was faster" in finalists.conclude([], 0.03, tried=2).reason
