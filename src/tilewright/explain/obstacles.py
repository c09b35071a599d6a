"""What stands in the way of speed: one rule an obstacle, each a sentence that names the line and what to look at."""

from __future__ import annotations

from .facts import Access, Intermediate, Launch, TorchOp

FULL_WIDTH = 16  # bytes that a thread can move at once
NOTABLE = 0.05  # share of the launch's traffic below which an access is not worth a word


def of_launch(x: Launch, multiprocessors: int) -> tuple[str, ...]:
    """Obstacles of one launch, those of memory first."""
    total = max(1, x.read + x.written)
    large = [a for a in x.accesses if a.bytes >= NOTABLE * total]
    out = [*_scattered(large), *_narrow(large), *_again(large), *_masked(large)]
    if x.spills:
        out.append(f"{x.spills} bytes a thread spill to memory: use smaller tiles or more warps")
    if x.dot_flops and not x.tensor_cores:
        out.append(
            "the dots run without tensor cores: float32 with input_precision='ieee', or tiles too small for them"
        )
    if x.programs < multiprocessors:
        many = "1 program keeps" if x.programs == 1 else f"{x.programs} programs keep"
        out.append(
            f"{many} at most {x.programs} of {multiprocessors} multiprocessors busy: cut the work finer, or look "
            "at larger inputs (--dims)"
        )
    elif 1 < x.waves < 4 and 0 < x.waves % 1 < 0.5:
        out.append(f"the last of {x.waves:.1f} waves of programs fills the card by less than half")
    if 0 < x.occupancy <= 0.25:
        out.append(f"{x.limited_by} leave room for {x.occupancy:.0%} of the warps, so memory latency is hard to hide")
    return tuple(out)


def _scattered(accesses: list[Access]) -> list[str]:
    found = [a for a in accesses if a.used is not None and a.used < 0.6]
    return [
        f"the {a.kind} of '{a.argument}' at {a.where} uses {a.used:.0%} of the memory that it fetches: neighbours "
        f"lie {a.step} elements apart"
        for a in found
    ]


def _narrow(accesses: list[Access]) -> list[str]:
    found = [
        a for a in accesses if 0 < a.width < FULL_WIDTH and a.kind != "atomic" and (a.used is None or a.used >= 0.6)
    ]
    widths = sorted({a.width for a in found})
    return [
        f"{places([a for a in found if a.width == w])}: {w} bytes a thread at once where {FULL_WIDTH} are possible; "
        "the "
        "compiler sees no steps of that size in strides, sizes and alignment, or the tile is too small"
        for w in widths
    ]


def _again(accesses: list[Access]) -> list[str]:
    loads: dict[str, list[Access]] = {}
    for a in accesses:
        if a.kind == "load":
            loads.setdefault(a.argument, []).append(a)
    out = []
    for name, all_of_it in loads.items():
        times = sum(a.repeats for a in all_of_it)
        if times > 1.5:
            out.append(
                f"each element of '{name}' is loaded {_times(times)} ({_lines(all_of_it)}); caches may serve all "
                "but the first"
            )
    return out


def _times(n: float) -> str:
    return "twice" if n == 2 else f"{n:.3g} times"


def _masked(accesses: list[Access]) -> list[str]:
    return [
        f"{a.masked:.0%} of the lanes of the {a.kind} of '{a.argument}' at {a.where} are masked off: the tile is "
        "larger "
        "than what it covers"
        for a in accesses
        if a.masked > 0.3
    ]


def places(accesses: list[Access]) -> str:
    """``load of x_ptr at a.py:18, 26; store of y_ptr at a.py:34``."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for a in accesses:
        file, _, line = a.where.rpartition(":")
        lines.setdefault((a.kind, a.argument, file), []).append(line)
    return "; ".join(f"{kind} of '{name}' at {file}:{', '.join(where)}" for (kind, name, file), where in lines.items())


def _lines(accesses: list[Access]) -> str:
    """``at a.py:18, 26``."""
    return "at " + places(accesses).replace(f"load of '{accesses[0].argument}' at ", "")


def of_all(launches: tuple[Launch, ...], compulsory: int, work: tuple[TorchOp, ...],
           left: tuple[Intermediate, ...]) -> tuple[str, ...]:  # fmt: skip
    """Obstacles that show over all steps together."""
    out = []
    moved = sum(x.read + x.written for x in launches) + sum(x.read + x.written for x in work)
    if compulsory and moved > 1.3 * compulsory:
        who = (
            "the launches load and store"
            if not work
            else "launches and torch operations load and store"
            if launches
            else "torch operations read and write"
        )
        out.append(f"{who} {moved / compulsory:.3g} times the bytes that must be moved")
    if len(launches) > 1:
        out.append(f"{len(launches)} launches: what one hands to the next goes through memory, each costs microseconds")
    if left and sum(i.bytes for i in left) > NOTABLE * compulsory:
        out.append(_left(left))
    times = sum(x.times for x in work)
    if times and launches:
        names = ", ".join(sorted(f"{x.name} at {x.where}" for x in work)[:4])
        out.append(
            f"torch works beside the launches ({names}): each operation is a launch and a pass over memory of its own"
        )
    elif times > 1:
        out.append(
            f"{times} torch operations, none fused with another: each is a launch and a pass over memory of its own"
        )
    return tuple(out)


def _left(left: tuple[Intermediate, ...]) -> str:
    """The tensors that steps leave in memory for each other."""
    total, first = sum(i.bytes for i in left), left[0]
    count = f"{len(left)} intermediate tensors go" if len(left) > 1 else "1 intermediate tensor goes"
    return (
        f"{count} through memory ({total / 2**10:.4g} KiB), the largest {first.shape} {first.dtype}, made by {first.made}, "
        f"read by {', '.join(first.read[:3])}"
    )
