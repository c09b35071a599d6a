"""From lanes to a figure: intervals, ratios, the noise band, the honest baseline, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from .decide import answer, below_floor, clocks_disagree, honest, noise_band
from .pairing import Lane, Pairing
from .protocol import Protocol
from .record import CANDIDATE, TWIN, Answer, Arm, Cache, Figure, Floor, Interval, Launch, Ratio
from .stage import Player
from .statistics import block_medians, interval, paired, variation


def assemble(
    run: Pairing, players: dict[str, Player], floor: Floor, protocol: Protocol, *, cache: Cache = "warm",
    launch: Launch = "plain",
) -> tuple[Figure, dict[str, str]]:  # fmt: skip
    """The figure of a run, and why lanes are out, by name."""
    lanes = {x.name: x for x in run.lanes}
    yardstick = lanes.get("eager")
    out = {n: why for n, x in lanes.items() if (why := fault(x, floor, protocol, yardstick))}
    charge(run.lanes, protocol)
    arms = tuple(_arm(x, players.get(n), protocol) for n, x in lanes.items())
    lead = lanes[CANDIDATE]

    def figure(answer: Answer, reason: str, ratios: Sequence[Ratio] = (), null: Interval | None = None) -> Figure:
        return Figure(cache=cache, launch=launch, arms=arms, ratios=tuple(ratios), null=null,
                      noise=noise_band(null, protocol), honest=honest(ratios), answer=answer, reason=reason,
                      seconds=run.seconds, stopped=run.stopped)  # fmt: skip

    if CANDIDATE in out:
        return figure("refused", out[CANDIDATE]), out
    if len(lead.blocks) < protocol.blocks_few:
        few = f"only {len(lead.blocks)} blocks in {run.seconds:.0f} s"
        more = f", {run.dropped} were disturbed: other work has the processors" if run.dropped else ""
        return figure("too noisy", few + more), out
    twin = lanes.get(TWIN)
    null = None
    if twin is not None and TWIN not in out and len(twin.blocks) == len(lead.blocks):
        null = interval(paired(lead.blocks, twin.blocks), protocol)
    noise = noise_band(null, protocol)
    ratios = [_ratio(lead, x, noise, protocol) for n, x in lanes.items()
              if n not in (CANDIDATE, TWIN) and n not in out and len(x.blocks) == len(lead.blocks)]  # fmt: skip
    if not ratios:
        return figure(
            "refused", "no baseline is right and available, so there is nothing to compare with", (), null
        ), out
    if null is None:
        why = f"no A/A run came together, so nothing says what noise does here: {_absent(twin, out)}"
        blind = [r.model_copy(update={"answer": "too noisy", "reason": why}) for r in ratios]
        return figure("too noisy", why, blind), out
    best = next(r for r in ratios if r.baseline == honest(ratios))
    return figure(best.answer, best.reason + _to_launch(lead, lanes[best.baseline], best.answer), ratios, null), out


def _to_launch(lead: Lane, best: Lane, answer: Answer) -> str:
    """Where a call is faster on the device by less than the host needs longer to launch it: a clause that says so."""
    if answer != "faster" or not lead.host or not best.host:
        return ""
    gain = float(numpy.median(block_medians(best.blocks)) - numpy.median(block_medians(lead.blocks)))
    own, other = float(numpy.median(lead.host)), float(numpy.median(best.host))
    if own - other <= gain:
        return ""
    return (f"; but the host takes {own * 1e6:.0f} µs to launch it, {best.name} {other * 1e6:.0f} µs: a call that the "
            "device waits for gains nothing")  # fmt: skip


def _absent(twin: Lane | None, out: dict[str, str]) -> str:
    """Why the kernel was not timed beside itself."""
    if twin is None:
        return "the kernel could not be opened a second time"
    return out.get(TWIN) or f"the second copy was given up after {len(twin.blocks)} blocks"


def fault(lane: Lane, floor: Floor, protocol: Protocol, yardstick: Lane | None = None) -> str:
    """Why the times of a lane don't count; empty if they do. ``yardstick``: the reference, whose outputs are handed over
    in the same way."""
    if lane.fault:
        return lane.fault
    if len(lane.blocks) < protocol.blocks_few:
        return ""
    medians = block_medians(lane.blocks)
    if why := clocks_disagree(float(numpy.median(medians)), float(numpy.median(lane.cross)), protocol):
        return why
    if yardstick is not None and (why := late(lane, yardstick, protocol) or beside(lane, yardstick, protocol)):
        return why
    return below_floor(interval(medians, protocol), floor, protocol)


def late(lane: Lane, yardstick: Lane, protocol: Protocol) -> str:
    """Why the outputs of a lane came too late after the clock had stopped; empty if they did not."""
    if not lane.delivery or not yardstick.delivery:
        return ""
    own, usual = float(numpy.median(lane.delivery)), float(numpy.median(yardstick.delivery))
    if own <= protocol.delivery_factor * usual + protocol.delivery_seconds:
        return ""
    return (f"its outputs came {own * 1e6:.0f} µs after the call had returned, the reference's {usual * 1e6:.0f} µs: they "
            "are computed when they are looked at")  # fmt: skip


def beside(lane: Lane, yardstick: Lane, protocol: Protocol) -> str:
    """Why the parent's clock is no witness for a lane: what it measures of an empty call is taken off, and that is longer
    than the reference's; empty if it is not."""
    if not lane.empty or not yardstick.empty:
        return ""
    own, usual = (float(numpy.quantile(x.empty, 0.1)) for x in (lane, yardstick))  # a busy machine makes many late
    if own <= usual * (1 + protocol.clocks_share) + protocol.clocks_seconds:
        return ""
    return (f"an empty call takes {own * 1e6:.0f} µs in its process, {usual * 1e6:.0f} µs in the reference's: something "
            "runs beside it")  # fmt: skip


def charge(lanes: Sequence[Lane], protocol: Protocol) -> None:
    """Add to a lane's times by how much later its outputs come than they must: work that is done after the sign that it is
    done counts as work, however little it is. C kernels write in place and have nothing to hand over; others are held to
    the promptest baseline."""
    late = {x.name: float(numpy.median(x.delivery)) for x in lanes if x.delivery}
    copying = [late[x.name] for x in lanes if x.name in late and not _in_place(x) and x.name not in (CANDIDATE, TWIN)]
    for lane in lanes:
        must = 0.0 if _in_place(lane) else min(copying, default=float("inf"))
        excess = late.get(lane.name, 0.0) - must
        if excess > protocol.delivery_free:
            lane.blocks = [[t + excess for t in b] for b in lane.blocks]


def _in_place(lane: Lane) -> bool:
    return bool(getattr(lane.hand, "native", False))


def _ratio(lead: Lane, other: Lane, noise: float, protocol: Protocol) -> Ratio:
    ratios = paired(lead.blocks, other.blocks)
    seen, varies = interval(ratios, protocol), variation(ratios)
    found, why = answer(seen, varies, noise, protocol)
    return Ratio(baseline=other.name, interval=seen, variation=varies, answer=found, reason=why)


def _arm(lane: Lane, player: Player | None, protocol: Protocol) -> Arm:
    return Arm(
        name=lane.name, blocks=tuple(tuple(b) for b in lane.blocks), cross=tuple(lane.cross),
        time=interval(block_medians(lane.blocks), protocol) if lane.blocks else None, checked=lane.checked,
        disturbed=lane.disturbed, peak_bytes=player.peak_bytes if player else None,
        extra_bytes=player.extra_bytes if player else None,
        host=float(numpy.median(lane.host)) if lane.host else None,
    )  # fmt: skip
