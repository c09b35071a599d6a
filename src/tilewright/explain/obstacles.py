"""What stands in the way of speed: one rule an obstacle, each a sentence that names the line and what to look at."""

from __future__ import annotations

from .facts import Access, Launch

FULL_WIDTH = 16  # bytes that a thread can move at once
NOTABLE = 0.05  # share of the launch's traffic below which an access is not worth a word


def of_launch(x: Launch, compulsory: int, multiprocessors: int) -> tuple[str, ...]:
    """Obstacles of one launch, those of the largest accesses first."""
    total = max(1, x.read + x.written)
    out = []
    for a in sorted(x.accesses, key=lambda a: -a.bytes):
        if a.bytes >= NOTABLE * total:
            out += _access(a)
    if x.spills:
        out.append(f"{x.spills} bytes a thread spill to memory: use smaller tiles or more warps")
    if x.dot_flops and not x.tensor_cores:
        out.append(
            "the dots run without tensor cores: float32 with input_precision='ieee', or tiles too small for them"
        )
    if x.programs < multiprocessors:
        few = "1 program keeps" if x.programs == 1 else f"{x.programs} programs keep"
        out.append(
            f"{few} at most {x.programs} of {multiprocessors} multiprocessors busy: cut the work finer, or try larger inputs"
        )
    elif 1 < x.waves < 4 and x.waves % 1 and x.waves % 1 < 0.5:
        out.append(f"the last of {x.waves:.1f} waves of programs fills the card by less than half")
    if x.occupancy and x.occupancy <= 0.25:
        out.append(f"{x.limited_by} leave room for {x.occupancy:.0%} of the warps, so memory latency is hard to hide")
    return tuple(out)


def _access(a: Access) -> list[str]:
    """Obstacles of one access."""
    out = []
    name = f"the {a.kind} of '{a.argument}' at {a.where}"
    if a.used is not None and a.used < 0.6:
        out.append(f"{name} uses {a.used:.0%} of the memory that it fetches: neighbours lie {a.step} elements apart")
    elif a.width and a.width < FULL_WIDTH and a.kind != "atomic":
        out.append(f"{name} moves {a.width} bytes a thread at once where {FULL_WIDTH} are possible: strides, alignment or masks "
                   "that the compiler can't prove to go in steps, or tiles too small")  # fmt: skip
    if a.repeats > 1.5 and a.kind == "load":
        out.append(f"{name} asks for each element {a.repeats:.3g} times (a cache may serve the repeats)")
    if a.masked > 0.3:
        out.append(f"{a.masked:.0%} of the lanes of {name} are masked off: the tile is larger than what it covers")
    return out


def of_all(launches: tuple[Launch, ...], compulsory: int, ops: dict[str, int]) -> tuple[str, ...]:
    """Obstacles that show over all launches together."""
    out = []
    moved = sum(x.read + x.written for x in launches)
    if compulsory and moved > 1.3 * compulsory:
        out.append(f"the launches ask for {moved / compulsory:.3g} times the bytes that must be moved")
    if len(launches) > 1:
        out.append(
            f"{len(launches)} launches: what one hands to the next goes through memory, and each costs a few microseconds"
        )
    if ops:
        names = ", ".join(sorted(ops)[:4])
        out.append(
            f"torch works beside the launches ({names}): each operation is a launch and a pass over memory of its own"
        )
    return tuple(out)
