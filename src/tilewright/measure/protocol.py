"""The protocol of a measurement, frozen as data. Its hash, over these numbers and over the text of the modules that act
on them, stands in every record; measurements under different hashes are not compared.

Method: interleaved pairs in ABBA order (R. Fisher, The Design of Experiments, 1935, on blocking; A. Kalibera and R. Jones,
Rigorous Benchmarking in Reasonable Time, 2013, on repetition at the level that varies); percentile bootstrap of a median
(B. Efron, Bootstrap Methods, 1979); A/A runs (R. Kohavi et al., Controlled Experiments on the Web, 2009); a roofline as a
hard floor (S. Williams, A. Waterman, D. Patterson, Roofline, 2009).
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from ..errors import InternalError
from ..task.tensors import Model

VERSION = "1"
ACTING = (
    "measure/protocol.py", "measure/record.py", "measure/workload.py", "measure/conclude.py", "measure/hidden.py",
    "measure/stage.py", "measure/device_stage.py", "measure/hand.py", "measure/device_hand.py", "measure/arena.py",
    "measure/feed.py", "measure/watch.py", "measure/cores.py", "measure/state.py", "measure/pairing.py",
    "measure/statistics.py", "measure/figure.py", "measure/decide.py", "measure/floor.py", "measure/ceilings.py",
    "measure/ceilings_cuda.py", "measure/*.c", "measure/baselines/*.py", "prove/child/role_timing.py",
    "prove/child/timing_device.py", "prove/child/gpu.py", "prove/child/baseline_calls.py", "prove/child/tampering.py",
    "prove/child/role_judge.py", "prove/child/judge_session.py",
)  # fmt: skip
"""Files, in the package, whose text is part of the protocol: what times, what judges a timed call, what counts."""


class Protocol(Model):
    """Numbers of the protocol. Times in seconds."""

    version: str = VERSION
    order: str = "ABBA, arms in random order in each block"
    level: float = 0.999
    """Confidence of every interval. At 99% the medians of two runs lay in each other's intervals in fewer than 9 of 10
    pairs: their difference varies by more than either, and few blocks make a bootstrap narrow."""
    resamples: int = 4000
    """Bootstrap resamples."""
    smallest_effect: float = 0.03
    """Ratios closer to 1 than this are never called a difference."""
    null_margin: float = 1.0
    """The noise band is this many times what the A/A interval reaches to."""
    variation_cap: float = 0.05
    """Largest coefficient of variation of the block medians of the paired ratio."""
    blocks_least: int = 12
    blocks_most: int = 60
    blocks_few: int = 6
    """With fewer blocks than this when the time is over, the answer is too noisy."""
    calls_least: int = 5
    """Timed calls of a turn at least; a block in which an arm has fewer undisturbed ones in both turns is dropped."""
    calls_most: int = 40
    turn_seconds: float = 0.015
    """A turn makes as many calls as fit, within the limits above."""
    settle_calls: int = 2
    """Untimed calls at the start of a turn."""
    target: float = 0.005
    """Stop when half the interval of every ratio is within this share of its median …"""
    figure_seconds: float = 20.0
    """… or when a figure took this long."""
    slots: int = 4
    """Addresses among which inputs rotate; every other call stays at the first."""
    patch: float = 1 / 64
    """Share of each input's elements drawn anew for a single call; the rest is a set shifted by a secret amount …"""
    patch_most: int = 1 << 15
    """… but not more elements than this: drawing them would take longer than the call."""
    sets: int = 4
    """Sets of values drawn for a workload …"""
    sets_bytes: int = 1 << 28
    """… or fewer, at least one, where together they would be larger than this."""
    decoys: int = 16
    """Cache lines of the inputs that hold other values until just before the call."""
    checks_least: int = 12
    """Timed calls of each arm whose outputs are judged, picked in secret; the last call always is."""
    judging_share: float = 0.5
    judged_blocks_least: int = 4
    """Where the truth is costly, as many blocks are judged as fit into this share of a figure's time, at least so many."""
    clocks_share: float = 0.05
    clocks_seconds: float = 20e-6
    """The two clocks may differ by this share of the time, and by this much, in the median."""
    delivery_factor: float = 2.0
    delivery_seconds: float = 30e-6
    """Handing over the outputs after the clock stopped may take this many times what the reference's take, and this much
    more: else they are computed only when they are looked at."""
    delivery_free: float = 4e-6
    """By how much later than the promptest baseline's a lane's outputs may come; what is beyond counts as its time."""
    floor_margin: float = 0.10
    """A time below the floor by more than this and its interval is refused."""
    head_start: float = 250e-6
    head_start_margin: float = 1.5
    head_start_most: float = 2e-3
    """CUDA: how long the device is kept busy so that a call is queued before the first event: at least so long, and this
    many times what the slowest arm's host takes, the same for all arms. A call that takes the host longer than the most
    shows the host's time. What the host takes is a figure of its own."""
    flush_factor: float = 2.0
    """Cold: this many times the last cache is written before the call."""
    graph_warmups: int = 3
    """CUDA graphs: calls on the side stream before capture."""

    def sha256(self) -> str:
        """Hash of ``body()``."""
        return hashlib.sha256(self.body().encode()).hexdigest()

    def body(self) -> str:
        """The protocol as JSON: numbers, and hashes of the modules that act on them."""
        return json.dumps({"protocol": self.model_dump(mode="json"), "code": _code()}, sort_keys=True)


PROTOCOL = Protocol()
"""The protocol that ``bench`` uses."""


def quick(protocol: Protocol = PROTOCOL) -> Protocol:
    """A shorter run with its own hash: for demos and CI. Its interval is wider, its rules are the same."""
    return protocol.model_copy(
        update={"version": f"{protocol.version}-quick", "blocks_most": 20, "figure_seconds": 4.0, "checks_least": 6,
                "target": 0.02}
    )  # fmt: skip


@functools.cache
def _code() -> dict[str, str]:
    return {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in acting().items()}


def acting() -> dict[str, Path]:
    """The files of ``ACTING`` by their names in the package. Raises InternalError for one that is not there."""
    package = Path(__file__).parents[1]
    found: dict[str, Path] = {}
    for pattern in ACTING:
        paths = sorted(package.glob(pattern))
        if not paths:
            raise InternalError(f"the protocol names '{pattern}', which is not there")
        found |= {p.relative_to(package).as_posix(): p for p in paths}
    return found
