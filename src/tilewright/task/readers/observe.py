"""How a reference behaves when it is really run: random, stateful, in place, the same twice?

Each becomes a policy of the inferred contract; only a reference that differs between two runs under one seed is an
error, since nothing can be compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ...errors import TaskError
from .. import tree
from ..task import Workload

_SLACK = 1e-6
_SEEDS = (11, 12, 13)


@dataclass
class Behaviour:
    """``mutated``: inputs written by the reference. ``copies``: inputs that the output equals at the given values."""

    random: bool = False
    state: tuple[str, ...] = ()
    mutated: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    constant: bool = False


def observe(source: Any, workload: Workload, where: str) -> Behaviour:
    """Run ``source``'s reference a few times at ``workload``. Raises TaskError if it is non-deterministic, or for
    what it raises itself."""
    inputs = source.inputs(workload, 1)
    state = source.state(workload, 1)

    def run(seed: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        mine, own = tree.clone(inputs), {k: v.clone() for k, v in state.items()}
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            out = source.reference(mine, workload, own, dtype=None)
        return tree.clone(out), mine, own

    out, after, state_after = run(_SEEDS[0])
    again, _, _ = run(_SEEDS[0])
    if not tree.equal(out, again, _SLACK):
        raise TaskError(
            "the reference gives two results for one input under one seed, so nothing can be compared with it",
            where=where, remedy="draw random numbers from torch's generator, and keep no state between calls",
        )  # fmt: skip
    leaves = [v for v in tree.leaves(out).values() if isinstance(v, torch.Tensor)]
    return Behaviour(
        random=any(not tree.equal(out, run(s)[0], _SLACK) for s in _SEEDS[1:]),
        state=tuple(k for k in state if not tree.equal(state[k], state_after[k])),
        mutated=tuple(k for k in inputs if not tree.equal(inputs[k], after[k])),
        copies=tuple(
            k
            for k, v in inputs.items()
            if isinstance(v, torch.Tensor) and v.numel() > 1 and len(leaves) == 1 and tree.equal(v, leaves[0])
        ),
        constant=all(v.numel() > 1 and bool((v == v.flatten()[0]).all()) for v in leaves),
    )
