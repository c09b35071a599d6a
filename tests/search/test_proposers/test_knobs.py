"""Knobs: points of a declared space, none twice, and better ones sooner than by chance."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import pytest

from tilewright.errors import UserError
from tilewright.search import plugins
from tilewright.search.proposers import knobs
from tilewright.search.proposers._declared import read
from tilewright.search.proposers._samplers import SAMPLERS, Trial
from tilewright.search.tree import Tree

from .make import context, node, tree

KERNEL = """#define A 1 // knob: 1 2 4 8 16
#define B 1 // knob: 1 2 4 8 16
#define ORDER ijk // knob: ijk ikj jik
// require: A * B <= 64
"""


def test_it_is_found_by_listing_and_says_which_options_it_takes() -> None:
    assert plugins.proposer("knobs", {"sampler": "grid"}).name == "knobs"
    with pytest.raises(UserError, match="no sampler 'nonsense'"):
        plugins.proposer("knobs", {"sampler": "nonsense"})
    with pytest.raises(UserError, match="takes no option 'size'"):
        plugins.proposer("knobs", {"size": "3"})


@pytest.mark.parametrize("sampler", sorted(SAMPLERS))
def test_every_point_is_proposed_once_and_then_none(sampler: str, tmp_path: Path) -> None:
    small = "#define A 1 // knob: 1 2 4\n#define B 1 // knob: 1 2 3\n// require: A >= B\n"
    grown, seen = tree(node(0, small)), {small}
    for i in range(1, 6):
        proposal = knobs.Knobs(sampler).propose(context(grown, tmp_path, seed=i))
        if proposal is None:
            break
        assert proposal.source not in seen
        seen.add(proposal.source)
        grown.add(node(i, proposal.source, ratio=None if i == 2 else 1 + i / 10))
    assert len(seen) == 6
    last = knobs.Knobs(sampler)
    assert last.propose(context(grown, tmp_path)) is None
    assert "every point" in last.trouble


def test_an_arm_is_one_parameter_and_varies_it_alone(tmp_path: Path) -> None:
    grown = tree(node(0, KERNEL))
    proposer = knobs.Knobs()
    proposer.begin(context(grown, tmp_path))
    assert proposer.arms == ("A", "B", "ORDER")
    proposal = proposer.propose(context(grown, tmp_path, skill="B"))
    assert proposal is not None
    assert {n for n, v in proposal.parameters.items() if v != read(KERNEL, "native").now[n]} == {"B"}
    assert proposal.skill == "B"
    assert proposal.title == f"B={proposal.parameters['B']}"


def test_versions_with_another_skeleton_teach_it_nothing(tmp_path: Path) -> None:
    grown = tree(node(0, KERNEL), node(1, KERNEL + "int x;\n", ratio=9.0), node(2, KERNEL.replace("A 1", "A 2")))
    proposer = knobs.Knobs()
    found = proposer.trials(read(KERNEL, "native"), context(grown, tmp_path))
    assert [(t.values["A"], t.score) for t in found] == [(1, 0.0), (2, 0.0)]


def test_a_kernel_that_declares_nothing_is_told(tmp_path: Path) -> None:
    proposer = knobs.Knobs()
    assert proposer.propose(context(tree(node(0, "void kernel() {}")), tmp_path)) is None
    assert "declares no parameters" in proposer.trouble


def test_the_same_seed_proposes_the_same(tmp_path: Path) -> None:
    grown = tree(node(0, KERNEL))
    first = [knobs.Knobs().propose(context(grown, tmp_path, seed=s)) for s in range(4)]
    again = [knobs.Knobs().propose(context(grown, tmp_path, seed=s)) for s in range(4)]
    assert [p and p.source for p in first] == [p and p.source for p in again]


def time_of(p: dict[str, object]) -> float:
    """A made-up landscape: multiplicative effects with one interaction, best at A=8, B=4, ikj."""
    a, b = math.log2(float(str(p["A"]))), math.log2(float(str(p["B"])))
    return math.exp(0.3 * abs(a - 3) + 0.25 * abs(b - 2) + (0.8 if p["ORDER"] != "ikj" else 0) + 0.05 * abs(a - b))


def found_after(sampler: str, trials: int, seed: int) -> float:
    """Best time reached over the best there is."""
    space, rng = read(KERNEL, "native"), random.Random(seed)
    points, done = list(space.grid()), []
    for _ in range(trials):
        known = [t.values for t in done]
        point = SAMPLERS[sampler](space, [p for p in points if p not in known], done, rng)
        done.append(Trial(point, -math.log(time_of(point))))
    return min(map(time_of, points)) / min(time_of(t.values) for t in done)


def test_models_beat_chance_at_an_equal_budget() -> None:
    reached = {s: sum(found_after(s, 14, seed) for seed in range(12)) / 12 for s in ("random", "model", "near")}
    assert reached["model"] > reached["random"] + 0.05, reached
    assert reached["near"] > reached["random"], reached


def test_large_spaces_are_sampled_and_never_listed(tmp_path: Path) -> None:
    many = "".join(f"#define K{i} 1 // knob: 1..8\n" for i in range(12)) + "// require: K0 + K1 <= 9\n"
    proposal = knobs.Knobs("model").propose(context(tree(node(0, many)), tmp_path))
    assert proposal is not None
    assert int(proposal.parameters["K0"]) + int(proposal.parameters["K1"]) <= 9
    with pytest.raises(UserError, match="too many to list"):
        next(read(many, "native").grid())


def test_a_point_that_failed_is_not_tried_again(tmp_path: Path) -> None:
    grown: Tree = tree(node(0, "#define A 1 // knob: 1 2\n"), node(1, "#define A 2 // knob: 1 2\n", ratio=None))
    assert knobs.Knobs().propose(context(grown, tmp_path)) is None
    assert len(list(itertools.islice(grown, 5))) == 2
