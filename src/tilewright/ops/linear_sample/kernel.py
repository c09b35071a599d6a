"""Sampling from the softmax of a linear layer, without its logits in memory: one pass over the weight.

A program forms the logits of ``BN`` vocabulary entries for ``BM`` rows, adds the noise and keeps, of each row: the best
score (Gumbel-max: Yellott, 1977; fused into the product: FlashSampling, 2026), the largest logit and the sum of
exponentials. The tile's entries are groups of four that lie ``tiles`` groups apart, so that likely tokens, which are
neighbours in most vocabularies, come from different tiles. ``_merge`` joins the tiles.

With top-k, top-p or min-p a tile also keeps its ``KEPT`` largest logits. ``_threshold`` finds the smallest logit that
the filters keep among those; where a tile may have had more such logits than it kept, it says so, and the row is done
again in ``filters.py`` by passes over the weight that other rows do not take part in. No row depends on another.
"""

import torch
import triton
import triton.language as tl

KEPT = 8
LOWEST = tl.constexpr(-(1 << 63))
UNIT = tl.constexpr(float(1 << 36))


@triton.jit
def _philox(u, s, low, high):
    """Four words for each counter ``(u, s, 0, 0)`` under the key ``(low, high)``; uint32."""
    c0, c1 = u + low * 0, s + u * 0 + low * 0
    c2 = c0 * 0
    c3 = c2
    for _ in tl.static_range(10):
        a, b = c0, c2
        c0 = tl.umulhi(tl.full(b.shape, 0xCD9E8D57, tl.uint32), b) ^ c1 ^ low
        c2 = tl.umulhi(tl.full(a.shape, 0xD2511F53, tl.uint32), a) ^ c3 ^ high
        c1, c3 = b * tl.full(b.shape, 0xCD9E8D57, tl.uint32), a * tl.full(a.shape, 0xD2511F53, tl.uint32)
        low += tl.full(low.shape, 0x9E3779B9, tl.uint32)
        high += tl.full(high.shape, 0xBB67AE85, tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _gumbel(bits):
    w = tl.minimum((bits.to(tl.float32) + 0.5) / 65536.0 / 65536.0, 1.0 - 2.0**-24)
    # log1p(-w) without its rounding of 1 - w (Kahan); exact digits of small w are what decides who wins.
    t = 1.0 - w
    e = tl.where(t == 1.0, w, -tl.log(t) * (w / tl.where(t == 1.0, 1.0, 1.0 - t)))
    return -tl.log(e)


@triton.jit
def _key(y):
    """A signed word in the order of ``y``; NaN above everything, the two zeros alike."""
    bits = (y + 0.0).to(tl.int32, bitcast=True)
    return tl.where(y != y, 0x7FFFFFFF, bits ^ ((bits >> 31) & 0x7FFFFFFF))


@triton.jit
def _value(key):
    """The float that a key stands for."""
    return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def _first(a, i, x, b, j, y):
    """The larger of two scores, NaN above all, the first of equals; with what goes along."""
    odd_a, odd_b = a != a, b != b
    left = (a > b) | (odd_a & (odd_b == 0)) | (((a == b) | (odd_a & odd_b)) & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j), tl.where(left, x, y)


@triton.jit
def _logits(x_ptr, w_ptr, b_ptr, c_ptr, a_ptr, t_ptr, rep_ptr, freq_ptr, pres_ptr, tile, tiles, m, M, V, K, xm, xk, wv, wk,
            bv, cm, cv, am, av, BIAS: tl.constexpr, COUNTS: tl.constexpr, ALLOWED: tl.constexpr, HEAT: tl.constexpr,
            REP: tl.constexpr, FREQ: tl.constexpr, PRES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):  # fmt: skip
    """Logits (entries, rows) after penalties, mask and temperature; the entries; where both are there."""
    place = tl.arange(0, BN)
    v = ((tile + place // 4 * tiles) * 4 + place % 4).to(tl.int64)
    inside_v, inside_m = v < V, m < M
    k = tl.arange(0, BK).to(tl.int64)
    acc = tl.zeros((BN, BM), tl.float32)
    for start in range(0, K, BK):
        live = k + start < K
        w = tl.load(
            w_ptr + v[:, None] * wv + (k + start)[None, :] * wk, mask=inside_v[:, None] & live[None, :], other=0.0
        )
        x = tl.load(
            x_ptr + m[None, :] * xm + (k + start)[:, None] * xk, mask=inside_m[None, :] & live[:, None], other=0.0
        )
        acc = tl.dot(w, x, acc, input_precision="ieee")
    inside = inside_v[:, None] & inside_m[None, :]
    if BIAS:
        acc += tl.load(b_ptr + v * bv, mask=inside_v, other=0.0).to(tl.float32)[:, None]
    if COUNTS:
        count = tl.load(c_ptr + m[None, :] * cm + v[:, None] * cv, mask=inside, other=0).to(tl.int64)
        seen = count > 0
        if REP:
            r = tl.load(rep_ptr + m, mask=inside_m, other=1.0)[None, :]
            acc = tl.where(seen, tl.where(acc > 0.0, acc / r, acc * r), acc)
        if FREQ:
            f = tl.load(freq_ptr + m, mask=inside_m, other=0.0)[None, :]
            acc = tl.where(seen, acc - f * count.to(tl.float32), acc)
        if PRES:
            acc = tl.where(seen, acc - tl.load(pres_ptr + m, mask=inside_m, other=0.0)[None, :], acc)
    if HEAT:
        t = tl.load(t_ptr + m, mask=inside_m, other=1.0)[None, :]
        acc = acc / tl.where(t > 0.0, t, 1.0)
    if ALLOWED:
        allowed = tl.load(a_ptr + m[None, :] * am + v[:, None] * av, mask=inside, other=0) != 0
        acc = tl.where(allowed, acc, float("-inf"))
    return tl.where(inside, acc, float("-inf")), v, inside


@triton.jit
def _tiles(x_ptr, w_ptr, b_ptr, c_ptr, a_ptr, t_ptr, rep_ptr, freq_ptr, pres_ptr, seed_ptr, score_ptr, index_ptr, logit_ptr,
           top_ptr, sum_ptr, kept_ptr, flag_ptr, least_ptr, tiles, blocks, first, M, V, K, xm, xk, wv, wk, bv, cm, cv, am,
           av,
           BIAS: tl.constexpr, COUNTS: tl.constexpr, ALLOWED: tl.constexpr, HEAT: tl.constexpr, REP: tl.constexpr,
           FREQ: tl.constexpr, PRES: tl.constexpr, SAMPLES: tl.constexpr, KEPT: tl.constexpr, AGAIN: tl.constexpr,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """What one tile contributes. ``AGAIN``: to the rows with a flag alone, of the logits from the row's least one on."""
    program = tl.program_id(0)
    tile = program // blocks
    m = (program % blocks * BM + tl.arange(0, BM)).to(tl.int64)
    writes = m < M
    wanted = 1
    if AGAIN:
        writes = writes & (tl.load(flag_ptr + m, mask=m < M, other=0) != 0)
        wanted = tl.max(writes.to(tl.int32), axis=0)
    if wanted != 0:
        y, v, inside = _logits(x_ptr, w_ptr, b_ptr, c_ptr, a_ptr, t_ptr, rep_ptr, freq_ptr, pres_ptr, tile, tiles, m, M, V,
                               K, xm, xk, wv, wk, bv, cm, cv, am, av, BIAS, COUNTS, ALLOWED, HEAT, REP, FREQ, PRES, BM, BN,
                               BK)  # fmt: skip
        if AGAIN:
            y = tl.where(_key(y) >= tl.load(least_ptr + m, mask=m < M, other=0)[None, :], y, float("-inf"))
        at = tile * tl.cast(M, tl.int64) + m
        top = tl.max(y, axis=0)
        tl.store(top_ptr + at, top, mask=writes)
        # Nothing live: the sum is 0. NaN and infinity come out as NaN.
        ground = tl.where(top == float("-inf"), 0.0, top)
        tl.store(sum_ptr + at, tl.sum(tl.exp(y - ground[None, :]), axis=0), mask=writes)
        seed = tl.load(seed_ptr + m, mask=m < M, other=0)
        low = (seed & 0xFFFFFFFF).to(tl.uint32)[None, :]
        high = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)[None, :]
        u = (tile + tl.arange(0, BN // 4) * tiles + first // 4).to(tl.uint32)[:, None]
        entry = (v[:, None] + tl.zeros((BN, BM), tl.int64)).to(tl.int32)
        for s in range(SAMPLES):
            b0, b1, b2, b3 = _philox(u, tl.cast(s, tl.uint32), low, high)
            noise = tl.join(tl.join(_gumbel(b0), _gumbel(b2)), tl.join(_gumbel(b1), _gumbel(b3)))
            noise = tl.reshape(tl.permute(noise, (0, 2, 3, 1)), (BN, BM))
            if HEAT:
                noise = tl.where(tl.load(t_ptr + m, mask=m < M, other=1.0)[None, :] > 0.0, noise, 0.0)
            score, index, logit = tl.reduce((y + noise, entry, y), 0, _first)
            here = s * tl.cast(tiles, tl.int64) * M + at
            tl.store(score_ptr + here, score, mask=writes)
            tl.store(index_ptr + here, index, mask=writes)
            tl.store(logit_ptr + here, logit, mask=writes)
        if KEPT > 0 and not AGAIN:
            keys = (_key(y).to(tl.int64) << 32) | (0x7FFFFFFF - v)[:, None]
            keys = tl.where(inside & (y != float("-inf")), keys, LOWEST)
            for c in range(KEPT):
                best = tl.max(keys, axis=0)
                tl.store(kept_ptr + (m * tiles + tile) * KEPT + c, best, mask=writes)
                keys = tl.where(keys == best[None, :], LOWEST, keys)


@triton.jit
def _of_tiles(score_ptr, index_ptr, logit_ptr, top_ptr, sum_ptr, m, s, tiles, M, SIZE: tl.constexpr):
    """Score, entry and logit of the best, and maximum and sum of the exponentials below it, over all tiles."""
    t = tl.arange(0, SIZE)
    known, at = t < tiles, t * tl.cast(M, tl.int64) + m
    tops = tl.load(top_ptr + at, mask=known, other=float("-inf"))
    sums = tl.load(sum_ptr + at, mask=known, other=0.0)
    here = s * tiles * M + at
    score = tl.load(score_ptr + here, mask=known, other=float("-inf"))
    index = tl.load(index_ptr + here, mask=known, other=0x7FFFFFFF)
    logit = tl.load(logit_ptr + here, mask=known, other=float("-inf"))
    score, index, logit = tl.reduce((score, index, logit), 0, _first)
    top = tl.max(tops, axis=0)
    ground = tl.where(top == float("-inf"), 0.0, top)
    total = tl.sum(tl.where(sums == 0.0, 0.0, sums * tl.exp(tops - ground)), axis=0)
    return score, index, logit, ground, total


@triton.jit
def _of_kept(seed_ptr, t_ptr, kept_ptr, least_ptr, m, s, tiles, first, HEAT: tl.constexpr, KEPT: tl.constexpr,
             WIDE: tl.constexpr):  # fmt: skip
    """The same over those kept logits that are large enough; their noise is made again."""
    c = tl.arange(0, WIDE)
    keys = tl.load(kept_ptr + m * tiles * KEPT + c, mask=c < tiles * KEPT, other=LOWEST)
    key = (keys >> 32).to(tl.int32)
    live = (keys != LOWEST) & (key >= tl.load(least_ptr + m))
    y = tl.where(live, tl.where(key == 0x7FFFFFFF, float("nan"), _value(key)), float("-inf"))
    v = (0x7FFFFFFF - (keys & 0xFFFFFFFF)).to(tl.int32)
    seed = tl.load(seed_ptr + m)
    low, high = (seed & 0xFFFFFFFF).to(tl.uint32), ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = tl.zeros((WIDE,), tl.uint32)
    b0, b1, b2, b3 = _philox((v // 4 + first // 4).to(tl.uint32), tl.cast(s, tl.uint32) + zero, low + zero, high + zero)
    noise = _gumbel(tl.where(v % 4 == 0, b0, tl.where(v % 4 == 1, b1, tl.where(v % 4 == 2, b2, b3))))
    if HEAT:
        noise = tl.where(tl.load(t_ptr + m) > 0.0, noise, 0.0)
    score, index, logit = tl.reduce((y + noise, tl.where(live, v, 0x7FFFFFFF), y), 0, _first)
    top = tl.max(y, axis=0)
    ground = tl.where(top == float("-inf"), 0.0, top)
    return score, index, logit, ground, tl.sum(tl.exp(y - ground), axis=0)


@triton.jit
def _merge(seed_ptr, t_ptr, score_ptr, index_ptr, logit_ptr, top_ptr, sum_ptr, kept_ptr, flag_ptr, least_ptr, token_ptr,
           logp_ptr, out_score_ptr, total_ptr, tiles, first, M, samples, HEAT: tl.constexpr, KEPT: tl.constexpr,
           SIZE: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """One sample of one row, from what all tiles found; or from the logits that they kept, where those are enough."""
    program = tl.program_id(0).to(tl.int64)
    m, s = program // samples, program % samples
    if KEPT == 0:
        score, index, logit, ground, total = _of_tiles(
            score_ptr, index_ptr, logit_ptr, top_ptr, sum_ptr, m, s, tiles, M, SIZE
        )
    else:
        if tl.load(flag_ptr + m) != 0:
            score, index, logit, ground, total = _of_tiles(
                score_ptr, index_ptr, logit_ptr, top_ptr, sum_ptr, m, s, tiles, M, SIZE
            )
        else:
            score, index, logit, ground, total = _of_kept(
                seed_ptr, t_ptr, kept_ptr, least_ptr, m, s, tiles, first, HEAT, KEPT, WIDE
            )
    total = ground + tl.log(total)
    none = logit == float("-inf")
    tl.store(token_ptr + program, tl.where(none, -1, index.to(tl.int64) + first))
    tl.store(logp_ptr + program, tl.where(none, float("-inf"), logit - total))
    tl.store(out_score_ptr + program, score)
    if s == 0:
        tl.store(total_ptr + m, tl.where(none, float("-inf"), total))


def tiling(M, K, dtype):
    """Rows, entries and features of a tile. How a logit is summed does not depend on the number of rows."""
    rows = min(max(triton.next_power_of_2(M), 16), 64)
    wide = dtype == torch.float32
    return {"BM": rows, "BN": 64 if wide else 128, "BK": min(32 if wide else 64, max(triton.next_power_of_2(K), 16))}


def forward(x, weight, seed, bias, temperature, top_k, top_p, min_p, counts, repetition, frequency, presence, allowed,
            samples, first, kept=KEPT):  # fmt: skip
    """Index, log-probability and score (rows, samples), and the logarithm of the sum (rows). ``x`` (rows, features),
    ``weight`` (entries, features); one number a row in the others but ``counts`` and ``allowed``, of (rows, entries)."""
    seed, temperature, top_k, top_p, min_p, repetition, frequency, presence = (
        t if t is None else t.contiguous()
        for t in (seed, temperature, top_k, top_p, min_p, repetition, frequency, presence)
    )
    M, K = x.shape
    V, device = weight.shape[0], x.device
    new = lambda *size, dtype=torch.float32: torch.empty(size, dtype=dtype, device=device)  # noqa: E731
    out = new(M, samples, dtype=torch.int64), new(M, samples), new(M, samples), new(M)
    if not M:
        return out
    filtered = any(f is not None for f in (top_k, top_p, min_p))
    kept = kept if filtered else 0
    tile = tiling(M, K, x.dtype)
    tiles, blocks = triton.cdiv(V, tile["BN"]), triton.cdiv(M, tile["BM"])
    score, index, logit = new(samples, tiles, M), new(samples, tiles, M, dtype=torch.int32), new(samples, tiles, M)
    top, total = new(tiles, M), new(tiles, M)
    keys = new(M, tiles, kept, dtype=torch.int64) if filtered else score
    flag, least = (new(M, dtype=torch.int32) for _ in "12") if filtered else (score, score)
    or_x = lambda t: x if t is None else t  # noqa: E731
    logits = (x, weight, or_x(bias), or_x(counts), x if allowed is None else allowed.view(torch.uint8), or_x(temperature),
              or_x(repetition), or_x(frequency), or_x(presence))  # fmt: skip
    steps = lambda t: (0, 0) if t is None else t.stride()  # noqa: E731
    bias_step = 0 if bias is None else bias.stride(0)
    sizes = (M, V, K, *x.stride(), *weight.stride(), bias_step, *steps(counts), *steps(allowed))
    flags = {"BIAS": bias is not None, "COUNTS": counts is not None, "ALLOWED": allowed is not None,
             "HEAT": temperature is not None, "REP": repetition is not None, "FREQ": frequency is not None,
             "PRES": presence is not None, **tile}  # fmt: skip
    run = {"num_warps": 8 if tile["BM"] > 32 else 4, "num_stages": 4}

    def pass_over(again):
        _tiles[(tiles * blocks,)](
            *logits, seed, score, index, logit, top, total, keys, flag, least, tiles, blocks, first, *sizes, **flags,
            SAMPLES=samples, KEPT=kept, AGAIN=again, **run,
        )  # fmt: skip

    pass_over(False)
    if filtered:
        try:
            from . import filters
        except ImportError:  # read as a file, as tilewright check does
            import filters

        filters.find(keys, top, total, flag, least, top_k, top_p, min_p, logits, sizes, flags, tiles, blocks, kept, run)
        pass_over(True)
    _merge[(M * samples,)](
        seed, or_x(temperature), score, index, logit, top, total, keys, flag, least, *out, tiles, first, M, samples,
        HEAT=temperature is not None, KEPT=kept, SIZE=triton.next_power_of_2(tiles),
        WIDE=triton.next_power_of_2(tiles * max(kept, 1)), num_warps=8 if tiles * max(kept, 1) > 4096 else 4,
    )  # fmt: skip
    return out


def plain(x, weight, seed, temperature):
    return forward(x, weight, seed, None, temperature, *[None] * 8, 1, 0)


def penalised(x, weight, seed, bias, temperature, counts, repetition, frequency, presence, allowed, samples):
    return forward(x, weight, seed, bias, temperature, None, None, None, counts, repetition, frequency, presence, allowed,
                   samples, 0)[:2]  # fmt: skip


def filtered(x, weight, seed, temperature, top_k, top_p, min_p):
    return forward(x, weight, seed, None, temperature, top_k, top_p, min_p, *[None] * 5, 1, 0)[:2]
