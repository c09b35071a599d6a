"""Query heads are dealt to the key heads of the first side in turn."""

import math

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.4028234663852886e38)
HALF = tl.constexpr(0.6931471805599453)  # log 2


@triton.jit
def _load(ptr, row, rows, d, D, s_row, s_d):
    """A tile of rows, all features."""
    return tl.load(
        ptr + row[:, None] * s_row + d[None, :] * s_d, mask=(row < rows)[:, None] & (d < D)[None, :], other=0.0
    )


@triton.jit
def _seen(m_ptr, batch, row, key, N, M, smb, smk, MASK: tl.constexpr, CAUSAL: tl.constexpr):
    """Which keys (along the second axis of the two that the caller broadcasts) a query sees."""
    seen = (row < N) & (key < M)
    if CAUSAL:
        seen = seen & (key - row <= M - N)
    if MASK:
        seen = seen & (tl.load(m_ptr + batch * smb + key * smk, mask=key < M, other=0) != 0)
    return seen


@triton.jit
def _middles(apart):
    """``log p - log m`` and ``log q - log m`` for ``m = (p + q) / 2``, from ``log p - log q``."""
    soft = tl.log(1.0 + tl.exp(-tl.abs(apart)))
    return HALF - (tl.maximum(-apart, 0.0) + soft), HALF - (tl.maximum(apart, 0.0) + soft)


@triton.jit
def _rows(aq_ptr, ak_ptr, bq_ptr, bk_ptr, m_ptr, loss_ptr, stat_ptr, heads, a_group, b_group, N, M, A, B, a_scale, b_scale,
          saqb, saqh, saqn, saqd, sakb, sakh, sakm, sakd, sbqb, sbqh, sbqn, sbqd, sbkb, sbkh, sbkm, sbkd, smb, smk, total,
          ROWS: tl.constexpr, KEYS: tl.constexpr, BLOCK_A: tl.constexpr, BLOCK_B: tl.constexpr, MASK: tl.constexpr,
          CAUSAL: tl.constexpr, JS: tl.constexpr):  # fmt: skip
    """Divergence of ``ROWS`` queries of one head; their maxima, sums and halves are kept. Long rows first."""
    tiles = tl.cdiv(N, ROWS)
    program = tl.program_id(0).to(tl.int64)
    head = program // tiles
    tile = tiles - 1 - program % tiles
    batch, h = head // heads, head % heads
    row = tile * ROWS + tl.arange(0, ROWS)
    da, db = tl.arange(0, BLOCK_A).to(tl.int64), tl.arange(0, BLOCK_B).to(tl.int64)
    a_q = _load(aq_ptr + batch * saqb + h * saqh, row, N, da, A, saqn, saqd)
    b_q = _load(bq_ptr + batch * sbqb + h * sbqh, row, N, db, B, sbqn, sbqd)
    ak_ptr += batch * sakb + h % (heads // a_group) * sakh
    bk_ptr += batch * sbkb + h // b_group * sbkh
    end = tl.minimum(M, tl.maximum(tile * ROWS + ROWS + M - N, 0)) if CAUSAL else M
    a_top, b_top = tl.full((ROWS,), LOWEST, tl.float32), tl.full((ROWS,), LOWEST, tl.float32)
    a_sum, b_sum = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    apart = tl.zeros((ROWS,), tl.float32)
    some = tl.zeros((ROWS,), tl.int32)
    for start in range(0, end, KEYS):
        key = start + tl.arange(0, KEYS).to(tl.int64)
        seen = _seen(m_ptr, batch, row[:, None], key[None, :], N, M, smb, smk, MASK, CAUSAL)
        a_k = _load(ak_ptr, key, M, da, A, sakm, sakd)
        b_k = _load(bk_ptr, key, M, db, B, sbkm, sbkd)
        a = tl.where(seen, tl.dot(a_q, tl.trans(a_k), input_precision="ieee") * a_scale, -float("inf"))
        b = tl.where(seen, tl.dot(b_q, tl.trans(b_k), input_precision="ieee") * b_scale, -float("inf"))
        some = tl.maximum(some, tl.max(seen.to(tl.int32), axis=1))
        a_new, b_new = tl.maximum(a_top, tl.max(a, axis=1)), tl.maximum(b_top, tl.max(b, axis=1))
        a_off, b_off = a - a_new[:, None], b - b_new[:, None]
        shrink, e = tl.exp(a_top - a_new), tl.exp(a_off)
        if not JS:
            # A row that has seen nothing has no maximum to move away from.
            apart += tl.where(a_sum == 0.0, 0.0, a_sum * ((a_top - a_new) - (b_top - b_new)))
            apart = apart * shrink + tl.sum(tl.where(e == 0.0, 0.0, e * (a_off - b_off)), axis=1)
        a_sum = a_sum * shrink + tl.sum(e, axis=1)
        b_sum = b_sum * tl.exp(b_top - b_new) + tl.sum(tl.exp(b_off), axis=1)
        a_top, b_top = a_new, b_new
    a_log, b_log = tl.log(a_sum), tl.log(b_sum)
    to = stat_ptr + head * N + row
    total = head * 0 + total  # 64 bits
    if JS:
        half_a, half_b = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
        for start in range(0, end, KEYS):
            key = start + tl.arange(0, KEYS).to(tl.int64)
            seen = _seen(m_ptr, batch, row[:, None], key[None, :], N, M, smb, smk, MASK, CAUSAL)
            a_k = _load(ak_ptr, key, M, da, A, sakm, sakd)
            b_k = _load(bk_ptr, key, M, db, B, sbkm, sbkd)
            a = tl.dot(a_q, tl.trans(a_k), input_precision="ieee") * a_scale - a_top[:, None]
            b = tl.dot(b_q, tl.trans(b_k), input_precision="ieee") * b_scale - b_top[:, None]
            of_a, of_b = _middles((a - a_log[:, None]) - (b - b_log[:, None]))
            p, q = tl.exp(a) / a_sum[:, None], tl.exp(b) / b_sum[:, None]
            half_a += tl.sum(tl.where(seen & (p != 0.0), 0.5 * p * of_a, 0.0), axis=1)
            half_b += tl.sum(tl.where(seen & (q != 0.0), 0.5 * q * of_b, 0.0), axis=1)
        loss = half_a + half_b
        tl.store(to + 4 * total, half_a, mask=row < N)
        tl.store(to + 5 * total, half_b, mask=row < N)
    else:
        loss = tl.where(some == 0, 0.0, apart / a_sum + (b_log - a_log))
        tl.store(to + 4 * total, loss, mask=row < N)
    tl.store(to, a_top, mask=row < N)
    tl.store(to + total, a_sum, mask=row < N)
    tl.store(to + 2 * total, b_top, mask=row < N)
    tl.store(to + 3 * total, b_sum, mask=row < N)
    tl.store(loss_ptr + head * N + row, loss, mask=row < N)


@triton.jit
def _stats(stat_ptr, head, row, N, total, OWN: tl.constexpr):
    """Of the side whose gradient is wanted (``OWN`` 0: ``a``, 1: ``b``) maximum and sum, of the other, and its own mean."""
    at, mask = stat_ptr + head * N + row, row < N
    top, sum_ = (
        tl.load(at + 2 * OWN * total, mask=mask, other=0.0),
        tl.load(at + (2 * OWN + 1) * total, mask=mask, other=1.0),
    )
    other, there = 2 - 2 * OWN, 3 - 2 * OWN
    return (top, sum_, tl.load(at + other * total, mask=mask, other=0.0),
            tl.load(at + there * total, mask=mask, other=1.0), at)  # fmt: skip


@triton.jit
def _slope(w, o, top, sum_, o_top, o_sum, mean, seen, FORM: tl.constexpr):
    """Gradient of a row's divergence by the logits ``w`` of the wanted side; ``o``: the other side's."""
    w, o = w - top, o - o_top
    p = tl.exp(w) / sum_
    if FORM == 0:  # the second side of Kullback and Leibler
        slope = p - tl.exp(o) / o_sum
    else:
        apart = (w - tl.log(sum_)) - (o - tl.log(o_sum))
        if FORM == 2:  # Jensen and Shannon
            half, _ = _middles(apart)
            apart = 0.5 * half
        slope = tl.where(p == 0.0, 0.0, p * (apart - mean))
    return tl.where(seen, slope, 0.0)


@triton.jit
def _of_queries(wq_ptr, wk_ptr, oq_ptr, ok_ptr, m_ptr, stat_ptr, up_ptr, out_ptr, heads, w_group, o_group, N, M, W, V,
                w_scale, o_scale, swqb, swqh, swqn, swqd, swkb, swkh, swkm, swkd, soqb, soqh, soqn, soqd, sokb, sokh, sokm,
                sokd, smb, smk, total, ROWS: tl.constexpr, KEYS: tl.constexpr, BLOCK_W: tl.constexpr,
                BLOCK_O: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, OWN: tl.constexpr, FORM: tl.constexpr,
                PRECISION: tl.constexpr):  # fmt: skip
    """Gradient of ``ROWS`` queries of the wanted side."""
    tiles = tl.cdiv(N, ROWS)
    program = tl.program_id(0).to(tl.int64)
    head = program // tiles
    tile = tiles - 1 - program % tiles
    batch, h = head // heads, head % heads
    row = tile * ROWS + tl.arange(0, ROWS)
    dw, do = tl.arange(0, BLOCK_W).to(tl.int64), tl.arange(0, BLOCK_O).to(tl.int64)
    w_q = _load(wq_ptr + batch * swqb + h * swqh, row, N, dw, W, swqn, swqd)
    o_q = _load(oq_ptr + batch * soqb + h * soqh, row, N, do, V, soqn, soqd)
    wk_ptr += batch * swkb + h // w_group * swkh
    ok_ptr += batch * sokb + h // o_group * sokh
    total = program * 0 + total  # 64 bits
    top, sum_, o_top, o_sum, at = _stats(stat_ptr, head, row, N, total, OWN)
    mean = tl.zeros((ROWS,), tl.float32)
    if FORM > 0:
        mean = tl.load(at + (4 + OWN * (FORM - 1)) * total, mask=row < N, other=0.0)
    end = tl.minimum(M, tl.maximum(tile * ROWS + ROWS + M - N, 0)) if CAUSAL else M
    grad = tl.zeros((ROWS, BLOCK_W), tl.float32)
    for start in range(0, end, KEYS):
        key = start + tl.arange(0, KEYS).to(tl.int64)
        seen = _seen(m_ptr, batch, row[:, None], key[None, :], N, M, smb, smk, MASK, CAUSAL)
        w_k = _load(wk_ptr, key, M, dw, W, swkm, swkd)
        o_k = _load(ok_ptr, key, M, do, V, sokm, sokd)
        w = tl.dot(w_q, tl.trans(w_k), input_precision="ieee") * w_scale
        o = tl.dot(o_q, tl.trans(o_k), input_precision="ieee") * o_scale
        slope = _slope(w, o, top[:, None], sum_[:, None], o_top[:, None], o_sum[:, None], mean[:, None], seen, FORM)
        grad = tl.dot(slope, w_k.to(tl.float32), grad, input_precision=PRECISION)
    up = tl.load(up_ptr + head * N + row, mask=row < N, other=0.0)
    to = out_ptr + (head * N + row)[:, None] * W + dw[None, :]
    tl.store(to, grad * (up * w_scale)[:, None], mask=(row < N)[:, None] & (dw < W)[None, :])


@triton.jit
def _of_keys(wq_ptr, wk_ptr, oq_ptr, ok_ptr, m_ptr, stat_ptr, up_ptr, out_ptr, heads, w_group, o_group, N, M, W, V,
             w_scale, o_scale, swqb, swqh, swqn, swqd, swkb, swkh, swkm, swkd, soqb, soqh, soqn, soqd, sokb, sokh, sokm,
             sokd, smb, smk, total, ROWS: tl.constexpr, KEYS: tl.constexpr, BLOCK_W: tl.constexpr, BLOCK_O: tl.constexpr,
             MASK: tl.constexpr, CAUSAL: tl.constexpr, OWN: tl.constexpr, FORM: tl.constexpr,
             PRECISION: tl.constexpr):  # fmt: skip
    """Gradient of ``KEYS`` keys of the wanted side, over the query heads that their head serves, in order."""
    tiles = tl.cdiv(M, KEYS)
    program = tl.program_id(0).to(tl.int64)
    shared, tile = program // tiles, program % tiles
    groups = heads // w_group
    total = program * 0 + total  # 64 bits
    batch, first = shared // groups, shared % groups * w_group
    key = tile * KEYS + tl.arange(0, KEYS)
    dw, do = tl.arange(0, BLOCK_W).to(tl.int64), tl.arange(0, BLOCK_O).to(tl.int64)
    w_k = _load(wk_ptr + batch * swkb + shared % groups * swkh, key, M, dw, W, swkm, swkd)
    begin = tl.maximum(tile * KEYS - (M - N), 0) // ROWS * ROWS if CAUSAL else 0
    grad = tl.zeros((KEYS, BLOCK_W), tl.float32)
    for n in range(0, w_group):
        h = first + n
        head = batch * heads + h
        o_k = _load(ok_ptr + batch * sokb + h // o_group * sokh, key, M, do, V, sokm, sokd)
        for start in range(begin, N, ROWS):
            row = start + tl.arange(0, ROWS).to(tl.int64)
            seen = _seen(m_ptr, batch, row[None, :], key[:, None], N, M, smb, smk, MASK, CAUSAL)
            w_q = _load(wq_ptr + batch * swqb + h * swqh, row, N, dw, W, swqn, swqd)
            o_q = _load(oq_ptr + batch * soqb + h * soqh, row, N, do, V, soqn, soqd)
            top, sum_, o_top, o_sum, at = _stats(stat_ptr, head, row, N, total, OWN)
            mean = tl.zeros((ROWS,), tl.float32)
            if FORM > 0:
                mean = tl.load(at + (4 + OWN * (FORM - 1)) * total, mask=row < N, other=0.0)
            w = tl.dot(w_k, tl.trans(w_q), input_precision="ieee") * w_scale
            o = tl.dot(o_k, tl.trans(o_q), input_precision="ieee") * o_scale
            slope = _slope(w, o, top[None, :], sum_[None, :], o_top[None, :], o_sum[None, :], mean[None, :], seen, FORM)
            up = tl.load(up_ptr + head * N + row, mask=row < N, other=0.0)
            grad = tl.dot(slope * up[None, :], w_q.to(tl.float32), grad, input_precision=PRECISION)
    to = out_ptr + (shared * M + key)[:, None] * W + dw[None, :]
    tl.store(to, grad * w_scale, mask=(key < M)[:, None] & (dw < W)[None, :])


def roles(teacher, student, divergence):
    """The two sides, each (queries, keys, scale), as the divergence of the first from the second."""
    return (student, teacher) if divergence == "reverse" else (teacher, student)


def scale_of(q, scale):
    """The scale of the logits: one over the root of the head dim where none is given."""
    return 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)


def tiling(a, b):
    """Tiles by dtype and head dims alone."""
    wide, half = max(a.shape[-1], b.shape[-1]), a.dtype != torch.float32
    tall = 64 if half and wide <= 128 else 32
    return {"ROWS": tall, "KEYS": tall, "num_warps": 4, "num_stages": 2 if wide <= (128 if half else 64) else 1}


def block(q):
    """The head dim as a power of two that tensor cores take."""
    return max(16, triton.next_power_of_2(q.shape[-1]))


def strides(mask):
    """Of the mask of keys, or 0 without one."""
    return (0, 0) if mask is None else mask.stride()


def forward(teacher_q, teacher_k, q, k, key_mask, query_mask, teacher_scale, scale, causal, divergence, reduction):
    """Divergences (float32) reduced, and six numbers a query for backward."""
    sides = roles((teacher_q, teacher_k, scale_of(teacher_q, teacher_scale)), (q, k, scale_of(q, scale)), divergence)
    (aq, ak, a_scale), (bq, bk, b_scale) = sides
    batch, heads, N, _ = aq.shape
    M, tile = ak.shape[2], tiling(aq, bq)
    loss = torch.empty((batch, heads, N), dtype=torch.float32, device=q.device)
    stats = torch.empty((6, batch, heads, N), dtype=torch.float32, device=q.device)
    if loss.numel():
        _rows[(batch * heads * triton.cdiv(N, tile["ROWS"]),)](
            aq, ak, bq, bk, aq if key_mask is None else key_mask, loss, stats, heads, heads // ak.shape[1],
            heads // bk.shape[1], N, M, aq.shape[-1], bq.shape[-1], a_scale, b_scale, *aq.stride(), *ak.stride(),
            *bq.stride(), *bk.stride(), *strides(key_mask), loss.numel(), **tile, BLOCK_A=block(aq), BLOCK_B=block(bq),
            MASK=key_mask is not None, CAUSAL=causal, JS=divergence == "js",
        )  # fmt: skip
    return reduce(loss, query_mask, reduction), stats


def reduce(loss, query_mask, reduction):
    """Masked queries count for nothing, in the mean neither."""
    if query_mask is not None:
        loss = torch.where(query_mask[:, None, :], loss, torch.zeros_like(loss))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / count(loss, query_mask)


def count(loss, query_mask):
    """How many rows a mean is taken over."""
    return loss.numel() if query_mask is None else query_mask.sum() * loss.shape[1]


def spread(upstream, like, query_mask, reduction):
    """The incoming gradient of each row, contiguous float32."""
    if reduction == "mean":
        upstream = upstream / count(like, query_mask)
    upstream = upstream.expand(like.shape)
    if query_mask is not None:
        upstream = torch.where(query_mask[:, None, :], upstream, torch.zeros_like(upstream))
    return upstream.to(torch.float32).contiguous()


def backward(upstream, stats, teacher_q, teacher_k, q, k, key_mask, query_mask, teacher_scale, scale, causal, divergence,
             reduction, wanted):  # fmt: skip
    """Gradients that are ``wanted`` of the teacher's queries and keys and of the student's; contiguous."""
    up = spread(upstream, stats[0], query_mask, reduction)
    teacher = (teacher_q, teacher_k, scale_of(teacher_q, teacher_scale))
    student = (q, k, scale_of(q, scale))
    second = 0 if divergence == "reverse" else 1  # the number of the student among the roles
    found = []
    for own, other, number, want in (
        (teacher, student, 1 - second, wanted[:2]),
        (student, teacher, second, wanted[2:]),
    ):
        form = 2 if divergence == "js" else 1 - number
        for run, like, need in ((_of_queries, own[0], want[0]), (_of_keys, own[1], want[1])):
            found.append(_side(run, like, up, stats, own, other, number, form, key_mask, causal) if need else None)
    return tuple(found)


def _side(run, like, up, stats, own, other, number, form, key_mask, causal):
    (wq, wk, w_scale), (oq, ok, o_scale) = own, other
    heads, N, M, tile = wq.shape[1], wq.shape[2], wk.shape[2], tiling(wq, oq)
    out = torch.empty(like.shape, dtype=like.dtype, device=like.device)
    size = tile["ROWS"] if run is _of_queries else tile["KEYS"]
    if out.numel():
        run[(like.shape[0] * like.shape[1] * triton.cdiv(like.shape[2], size),)](
            wq, wk, oq, ok, wq if key_mask is None else key_mask, stats, up, out, heads, heads // wk.shape[1],
            heads // ok.shape[1], N, M, wq.shape[-1], oq.shape[-1], w_scale, o_scale, *wq.stride(), *wk.stride(),
            *oq.stride(), *ok.stride(), *strides(key_mask), up.numel(), **tile, BLOCK_W=block(wq), BLOCK_O=block(oq),
            MASK=key_mask is not None, CAUSAL=causal, OWN=number, FORM=form,
            PRECISION="ieee" if wq.dtype == torch.float32 else "tf32",
        )  # fmt: skip
    return out


class _AttentionKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *given):
        loss, stats = forward(*given)
        ctx.save_for_backward(stats, *given[:6])
        ctx.options = given[6:]
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return *backward(upstream, *ctx.saved_tensors, *ctx.options, ctx.needs_input_grad[:4]), *[None] * 7


def kernel(teacher_q, teacher_k, q, k, key_mask, query_mask, teacher_scale, scale, causal, divergence, reduction):
    """``tilewright check``'s entry."""
    given = (teacher_q, teacher_k, q, k, key_mask, query_mask, teacher_scale, scale, causal, divergence, reduction)
    return _AttentionKL.apply(*given)
