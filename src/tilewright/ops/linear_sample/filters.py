"""The smallest logit that top-k, top-p and min-p keep, of each row: among the logits that the tiles kept, or, for a row
where a tile may have had more of them, by passes over the weight.

Both ways decide on integers and so find the same: logits as signed words in their order (``_key``), probabilities as
``exp(logit - largest)`` in units of 2**-36. Sums of integers don't depend on an order, so a row's histogram is added up with
atomics. A pass over the weight settles 11 bits of the word, so three passes settle top-k and three top-p. Memory: two
histograms of 2048 counters a row. A program without a row to do ends at once.
"""

import torch
import triton
import triton.language as tl

try:
    from .kernel import LOWEST, UNIT, _key, _logits, _value
except ImportError:  # read as a file, as tilewright check does
    from kernel import LOWEST, UNIT, _key, _logits, _value  # type: ignore[no-redef]

BINS = 2048
STATE = tl.constexpr(5)  # goal, bits settled so far, count above, mass above, mass that top-k leaves


@triton.jit
def _mass(key, top_key, top):
    """Probability of a logit beside the largest, in units."""
    share = tl.where(key == top_key, 1.0, tl.exp(_value(key) - top))
    return (tl.minimum(share, 1.0) * UNIT).to(tl.int64)


@triton.jit
def _reach(key, weight, goal):
    """The largest word such that what lies on it or above weighs ``goal`` or more; the lowest where nothing does."""
    low = tl.full((), -(1 << 31), tl.int64)
    high = tl.full((), (1 << 31) - 1, tl.int64)
    for _ in range(32):
        middle = low + (high - low + 1) // 2
        enough = tl.sum(tl.where(key >= middle, weight, 0), axis=0) >= goal
        low, high = tl.where(enough, middle, low), tl.where(enough, high, middle - 1)
    return low


@triton.jit
def _part(share, mass):
    """The mass that top-p asks for; 0 where it asks for all."""
    goal = tl.maximum((share.to(tl.float64) * mass.to(tl.float64)).to(tl.int64), 1)
    return tl.where(share < 1.0, goal, 0)


@triton.jit
def _floor_of(p_ptr, m, top):
    """The word that min-p asks for."""
    p = tl.load(p_ptr + m)
    return tl.where(p > 0.0, _key(top + tl.log(tl.where(p > 0.0, p, 1.0))).to(tl.int64), -(1 << 31))


@triton.jit
def _threshold(kept_ptr, top_ptr, sum_ptr, flag_ptr, least_ptr, state_ptr, largest_ptr, k_ptr, p_ptr, min_ptr, tiles, M,
               TOP_K: tl.constexpr, TOP_P: tl.constexpr, MIN_P: tl.constexpr, KEPT: tl.constexpr, SIZE: tl.constexpr,
               WIDE: tl.constexpr):  # fmt: skip
    """One row: its smallest word, if the kept logits show it; else a flag, and where the passes begin."""
    m = tl.program_id(0).to(tl.int64)
    t = tl.arange(0, SIZE)
    at = t * tl.cast(M, tl.int64) + m
    tops = tl.load(top_ptr + at, mask=t < tiles, other=float("-inf"))
    sums = tl.load(sum_ptr + at, mask=t < tiles, other=0.0)
    last = tl.load(kept_ptr + (m * tiles + t) * KEPT + KEPT - 1, mask=t < tiles, other=LOWEST)
    c = tl.arange(0, WIDE)
    keys = tl.load(kept_ptr + m * tiles * KEPT + c, mask=c < tiles * KEPT, other=LOWEST)
    live, key = keys != LOWEST, keys >> 32
    top_key = tl.max(tl.where(live, key, -(1 << 31)), axis=0).to(tl.int32)
    top = _value(top_key)
    usual = (top_key < 0x7F800000) & (tl.max(live.to(tl.int32), axis=0) != 0)
    ground = tl.where(usual, top, 0.0)
    mass = tl.where(live, _mass(key.to(tl.int32), top_key, ground), 0)
    all_mass = (tl.sum(tl.where(sums == 0.0, 0.0, sums * tl.exp(tops - ground)), axis=0) * UNIT).to(tl.int64)
    least, least_k, goal_k = (
        tl.full((), -(1 << 31), tl.int64),
        tl.full((), -(1 << 31), tl.int64),
        tl.full((), 0, tl.int64),
    )
    goal = goal_k
    if TOP_K:
        goal_k = tl.load(k_ptr + m).to(tl.int64)
        if goal_k > 0:
            least_k = _reach(key, tl.where(live, 1, 0).to(tl.int64), goal_k)
            all_mass = tl.sum(tl.where(key >= least_k, mass, 0), axis=0)
        least = least_k
    if TOP_P:
        goal = _part(tl.load(p_ptr + m), all_mass)
        if goal > 0:
            least = tl.maximum(least, _reach(key, mass, goal))
    if MIN_P:
        least = tl.maximum(least, _floor_of(min_ptr, m, ground))
    least = tl.where(usual, least, top_key.to(tl.int64))
    # Each threshold must lie above the least that any tile kept, or there may be more at or above it than were seen.
    needed = tl.where(goal_k > 0, tl.minimum(least, least_k), least)
    short = usual & (tl.max(tl.where(last != LOWEST, last >> 32, -(1 << 40)), axis=0) >= needed)
    tl.store(flag_ptr + m, short.to(tl.int32))
    tl.store(least_ptr + m, least.to(tl.int32))
    tl.store(largest_ptr + m, ground)
    if TOP_K:
        goal = goal_k
    at_state = state_ptr + m * STATE
    tl.store(at_state, goal)
    tl.store(at_state + 1, 0)
    tl.store(at_state + 2, 0)
    tl.store(at_state + 3, 0)
    tl.store(at_state + 4, all_mass)


@triton.jit
def _weigh(x_ptr, w_ptr, b_ptr, c_ptr, a_ptr, t_ptr, rep_ptr, freq_ptr, pres_ptr, flag_ptr, state_ptr, largest_ptr, hist_ptr,
           tiles, blocks, M, V, K, xm, xk, wv, wk, bv, cm, cv, am, av, BIAS: tl.constexpr, COUNTS: tl.constexpr,
           ALLOWED: tl.constexpr, HEAT: tl.constexpr, REP: tl.constexpr, FREQ: tl.constexpr, PRES: tl.constexpr,
           SHIFT: tl.constexpr, BINS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Counts and masses of one tile's logits by the next bits of their words, for the rows with a flag."""
    program = tl.program_id(0)
    m = (program % blocks * BM + tl.arange(0, BM)).to(tl.int64)
    flagged = (m < M) & (tl.load(flag_ptr + m, mask=m < M, other=0) != 0)
    if tl.max(flagged.to(tl.int32), axis=0) != 0:
        y, _, inside = _logits(x_ptr, w_ptr, b_ptr, c_ptr, a_ptr, t_ptr, rep_ptr, freq_ptr, pres_ptr, program // blocks,
                               tiles, m, M, V, K, xm, xk, wv, wk, bv, cm, cv, am, av, BIAS, COUNTS, ALLOWED, HEAT, REP, FREQ,
                               PRES, BM, BN, BK)  # fmt: skip
        top = tl.load(largest_ptr + m, mask=flagged, other=0.0)[None, :]
        settled = tl.load(state_ptr + m * STATE + 1, mask=flagged, other=-1)[None, :]
        key = _key(y)
        word = (key.to(tl.int64) + (1 << 31)) >> SHIFT
        live = inside & flagged[None, :] & (y != float("-inf")) & (word // BINS == settled)
        at = hist_ptr + m[None, :] * (2 * BINS) + word % BINS
        tl.atomic_add(at, tl.full((BN, BM), 1, tl.int64), mask=live, sem="relaxed")
        tl.atomic_add(at + BINS, _mass(key, _key(top), top), mask=live, sem="relaxed")


@triton.jit
def _narrow(flag_ptr, least_ptr, state_ptr, largest_ptr, hist_ptr, p_ptr, min_ptr, COUNT: tl.constexpr, TOP_P: tl.constexpr,
            MIN_P: tl.constexpr, LAST: tl.constexpr, JOIN: tl.constexpr, BINS: tl.constexpr):  # fmt: skip
    """Which of the bins the goal of a row lies in; after the last bits, the word. ``COUNT``: the goal is
    top-k's; ``JOIN``: what it gave stands beside."""
    m = tl.program_id(0).to(tl.int64)
    if tl.load(flag_ptr + m) != 0:
        state = state_ptr + m * STATE
        goal, word = tl.load(state), tl.load(state + 1)
        bins = tl.arange(0, BINS)
        at = hist_ptr + m * (2 * BINS) + bins
        count, mass = tl.load(at), tl.load(at + BINS)
        tl.store(at, tl.zeros((BINS,), tl.int64))
        tl.store(at + BINS, tl.zeros((BINS,), tl.int64))
        count_above, mass_above = tl.load(state + 2), tl.load(state + 3)
        if COUNT:
            weight, above = count, count_above
        else:
            weight, above = mass, mass_above
        here = above + tl.sum(weight, axis=0) - tl.cumsum(weight, axis=0) + weight
        chosen = tl.max(tl.where(here >= goal, bins, 0), axis=0)
        count_above += tl.sum(tl.where(bins > chosen, count, 0), axis=0)
        mass_above += tl.sum(tl.where(bins > chosen, mass, 0), axis=0)
        word = word * BINS + chosen
        if LAST:
            found = tl.where(goal > 0, word - (1 << 31), -(1 << 31))
            if COUNT and TOP_P:
                ours = mass_above + tl.sum(tl.where(bins == chosen, mass, 0), axis=0)
                tl.store(state, _part(tl.load(p_ptr + m), tl.where(goal > 0, ours, tl.load(state + 4))))
            if JOIN:
                found = tl.maximum(found, tl.load(least_ptr + m).to(tl.int64))
            if MIN_P:
                found = tl.maximum(found, _floor_of(min_ptr, m, tl.load(largest_ptr + m)))
            tl.store(least_ptr + m, found.to(tl.int32))
            word, count_above, mass_above = word * 0, count_above * 0, mass_above * 0
        tl.store(state + 1, word)
        tl.store(state + 2, count_above)
        tl.store(state + 3, mass_above)


def find(keys, top, total, flag, least, top_k, top_p, min_p, logits, sizes, flags, tiles, blocks, kept, run):
    """Fill ``flag`` (which rows must be done again) and ``least`` (the smallest word kept), one of each a row."""
    M, device = flag.shape[0], flag.device
    state = torch.empty(M, STATE.value, dtype=torch.int64, device=device)
    largest = torch.empty(M, dtype=torch.float32, device=device)
    or_top = lambda t: top if t is None else t  # noqa: E731
    given = {"TOP_P": top_p is not None, "MIN_P": min_p is not None}
    wide = triton.next_power_of_2(tiles * kept)
    _threshold[(M,)](
        keys, top, total, flag, least, state, largest, or_top(top_k), or_top(top_p), or_top(min_p), tiles, M,
        TOP_K=top_k is not None, **given, KEPT=kept, SIZE=triton.next_power_of_2(tiles), WIDE=wide,
        num_warps=min(32, max(4, wide // 512)),
    )  # fmt: skip
    goals = [g for g, t in (("k", top_k), ("p", top_p)) if t is not None]
    if not goals:
        return
    hist = torch.zeros(M, 2, BINS, dtype=torch.int64, device=device)
    for goal in goals:
        for shift in (21, 10, 0):
            # The last pass settles 10 bits: its bins are the lower half.
            bins = BINS if shift else BINS // 2
            _weigh[(tiles * blocks,)](
                *logits, flag, state, largest, hist, tiles, blocks, *sizes, **flags, SHIFT=shift, BINS=bins, **run,
            )  # fmt: skip
            _narrow[(M,)](
                flag, least, state, largest, hist, or_top(top_p), or_top(min_p), COUNT=goal == "k", **given,
                LAST=shift == 0, JOIN=goal == "p" and top_k is not None, BINS=bins,
            )  # fmt: skip
