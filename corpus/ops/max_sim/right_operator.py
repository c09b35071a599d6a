"""Late interaction: maxima are kept lane by lane and meet once; backward gathers what was chosen, in order."""

import torch
import triton
import triton.language as tl

NOWHERE = tl.constexpr(2147483647)


@triton.jit
def _place(cu_ptr, which, live, length, total, s_batch, s_token, PACKED: tl.constexpr):
    """Number of the first token of a sequence, where it lies, and how many tokens there are."""
    first = which * length
    base = which * s_batch
    if PACKED:
        first = tl.maximum(tl.load(cu_ptr + which, mask=live, other=0).to(tl.int64), 0)
        length = tl.minimum(tl.load(cu_ptr + which + 1, mask=live, other=0).to(tl.int64), total) - first
        base = first * s_token
    return first, base, length


@triton.jit
def _scores(q_ptr, d_ptr, scale_ptr, qm_ptr, dm_ptr, cuq_ptr, cud_ptr, out_ptr, at_ptr, Bq, Bd, Lq, Ld, Tq, Td, D,
            sqb, sqt, sqk, sdb, sdt, sdk, ssb, sst, sqmb, sqmt, sdmb, sdmt, QUERIES: tl.constexpr, ROWS: tl.constexpr,
            BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE: tl.constexpr, PACKED: tl.constexpr, PAIR: tl.constexpr,
            SCALED: tl.constexpr, QMASK: tl.constexpr, DMASK: tl.constexpr, KEEP: tl.constexpr):  # fmt: skip
    """Scores of ``QUERIES`` queries with one document; ``ROWS`` tokens of each at a time."""
    program = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, QUERIES * ROWS)
    groups = 1 if PAIR else tl.cdiv(Bq, QUERIES)
    doc = program // groups
    query = (doc if PAIR else program % groups * QUERIES) + lane // ROWS
    q_first, q_base, q_len = _place(cuq_ptr, query, query < Bq, Lq, Tq, sqb, sqt, PACKED)
    _, d_base, d_len = _place(cud_ptr, doc, doc < Bd, Ld, Td, sdb, sdt, PACKED)
    longest = tl.max(q_len, axis=0) if PACKED else Lq
    k = tl.arange(0, BLOCK_K).to(tl.int64)
    total = tl.zeros((QUERIES * ROWS,), tl.float32)
    for start in range(0, longest, ROWS):
        t = (start + lane % ROWS).to(tl.int64)
        inside = (query < Bq) & (t < q_len)
        here = inside
        if QMASK:
            here = inside & (tl.load(qm_ptr + query * sqmb + t * sqmt, mask=inside, other=0) != 0)
        q_at = (q_ptr + q_base + t * sqt)[:, None]
        if WHOLE:
            q = tl.load(q_at + k[None, :] * sqk, mask=here[:, None] & (k < D)[None, :], other=0.0)
        best = tl.full((QUERIES * ROWS, BLOCK), -float("inf"), tl.float32)
        at = tl.zeros((QUERIES * ROWS, BLOCK), tl.int32)
        for j_start in range(0, d_len, BLOCK):
            j = (j_start + tl.arange(0, BLOCK)).to(tl.int64)
            valid = j < d_len
            if DMASK:
                valid = valid & (tl.load(dm_ptr + doc * sdmb + j * sdmt, mask=valid, other=0) != 0)
            d_at = (d_ptr + d_base + j * sdt)[None, :]
            s = tl.zeros((QUERIES * ROWS, BLOCK), tl.float32)
            if WHOLE:
                d = tl.load(d_at + k[:, None] * sdk, mask=valid[None, :] & (k < D)[:, None], other=0).to(q.dtype)
                s = tl.dot(q, d, s, input_precision="ieee")
            else:
                for k_start in range(0, D, BLOCK_K):
                    kk = k_start + k
                    q = tl.load(q_at + kk[None, :] * sqk, mask=here[:, None] & (kk < D)[None, :], other=0.0)
                    d = tl.load(d_at + kk[:, None] * sdk, mask=valid[None, :] & (kk < D)[:, None], other=0).to(q.dtype)
                    s = tl.dot(q, d, s, input_precision="ieee")
            if SCALED:
                s = s * tl.load(scale_ptr + doc * ssb + j * sst, mask=valid, other=0.0)[None, :]
            s = tl.where(valid[None, :], s, -float("inf"))
            if KEEP:
                rises = (best == best) & ((s > best) | (s != s))  # the first NaN stays, as in torch
                at = tl.where(rises, j[None, :].to(tl.int32), at)
                best = tl.where(rises, s, best)
            else:
                best = tl.maximum(best, s, propagate_nan=tl.PropagateNan.ALL)
        gone = best != best
        broken = tl.max(gone.to(tl.int32), axis=1) != 0
        top = tl.max(tl.where(gone, -float("inf"), best), axis=1)
        if KEEP:
            hit = tl.where(broken[:, None], gone, best == top[:, None])
            first = tl.min(tl.where(hit, at, NOWHERE), axis=1)
            chosen = here & (d_len > 0)
            if DMASK:  # where nothing rose above -inf the first token stands, unless it is masked
                plain = tl.load(dm_ptr + doc * sdmb, mask=d_len > 0, other=0) != 0
                chosen = chosen & (broken | (top > -float("inf")) | plain)
            to = at_ptr + (0 if PAIR else doc * Tq) + q_first + t
            tl.store(to, tl.where(chosen, first, -1), mask=inside)
        total += tl.where(here, tl.where(broken, float("nan"), top), 0.0)
    score = tl.sum(tl.reshape(total, (QUERIES, ROWS)), axis=1)
    mine = (doc if PAIR else program % groups * QUERIES) + tl.arange(0, QUERIES)
    tl.store(out_ptr + (mine if PAIR else mine * Bd + doc), score, mask=mine < Bq)


@triton.jit
def _owners(cu_ptr, out_ptr, sequences, total, steps, BLOCK: tl.constexpr):
    """To which sequence each token belongs: the last one that begins at or before it."""
    token = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    begun = _up_to(cu_ptr + tl.zeros_like(token), sequences, token, steps)
    tl.store(out_ptr + token, tl.minimum(tl.maximum(begun - 1, 0), sequences - 1).to(tl.int32), mask=token < total)


@triton.jit
def _up_to(sorted_ptr, count, value, steps):
    """How many of ``count`` ascending integers are at most ``value``: bisection, ``steps`` halvings."""
    low = tl.zeros_like(value)
    high = low + count
    for _ in range(0, steps):
        open_ = low < high
        middle = (low + high) // 2
        below = open_ & (tl.load(sorted_ptr + middle, mask=open_, other=0) <= value)
        high = tl.where(open_ & (below == 0), middle, high)
        low = tl.where(below, middle + 1, low)
    return low


@triton.jit
def _owner(owner_ptr, token, live, length, PACKED: tl.constexpr):
    """The sequence of a token."""
    return tl.load(owner_ptr + token, mask=live, other=0).to(tl.int64) if PACKED else token // length


@triton.jit
def _query_gradient(at_ptr, up_ptr, d_ptr, scale_ptr, owner_ptr, cud_ptr, out_ptr, Bd, Lq, Ld, Tq, Td, D, pieces, sgq,
                    sgd, sdb, sdt, sdk, ssb, sst, ROWS: tl.constexpr, BLOCK_K: tl.constexpr, PIECE: tl.constexpr,
                    PACKED: tl.constexpr, PAIR: tl.constexpr, SCALED: tl.constexpr):  # fmt: skip
    """What ``ROWS`` query tokens chose in one piece of the documents, times the incoming gradients."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    piece = program % pieces
    k = (tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)).to(tl.int64)
    query = _owner(owner_ptr, row, row < Tq, Lq, PACKED)
    total = tl.zeros((ROWS, BLOCK_K), tl.float32)
    first = piece * PIECE
    last = first + 1 if PAIR else tl.minimum(first + PIECE, Bd)
    for n in range(first, last):
        doc = query if PAIR else n + tl.zeros_like(row)
        _, base, length = _place(cud_ptr, doc, doc < Bd, Ld, Td, sdb, sdt, PACKED)
        at = tl.load(at_ptr + (row if PAIR else doc * Tq + row), mask=row < Tq, other=-1).to(tl.int64)
        hit = (row < Tq) & (at >= 0) & (at < length)
        pull = tl.load(up_ptr + query * sgq + doc * sgd, mask=hit, other=0.0)
        if SCALED:
            pull = pull * tl.load(scale_ptr + doc * ssb + at * sst, mask=hit, other=0.0)
        chosen = d_ptr + (base + at * sdt)[:, None] + k[None, :] * sdk
        total += pull[:, None] * tl.load(chosen, mask=hit[:, None] & (k < D)[None, :], other=0).to(tl.float32)
    to = out_ptr + (piece * Tq + row)[:, None] * D + k[None, :]
    tl.store(to, total, mask=(row < Tq)[:, None] & (k < D)[None, :])


@triton.jit
def _document_gradient(sorted_ptr, order_ptr, up_ptr, q_ptr, owner_ptr, mine_ptr, cud_ptr, out_ptr, Bq, Bd, Lq, Ld, Tq,
                       Td, D, steps, sgq, sgd, sqb, sqt, sqk, ROWS: tl.constexpr, BLOCK_K: tl.constexpr,
                       PACKED: tl.constexpr, PAIR: tl.constexpr):  # fmt: skip
    """Sum of the query tokens that chose each of ``ROWS`` document tokens, times the incoming gradients."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = (tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)).to(tl.int64)
    doc = _owner(mine_ptr, row, row < Td, Ld, PACKED)
    begin, _, _ = _place(cud_ptr, doc, doc < Bd, Ld, Td, 0, 0, PACKED)
    count = Lq if PAIR else Tq  # choices of one document
    list_ptr = sorted_ptr + doc * count
    start = _up_to(list_ptr, tl.where(row < Td, count, 0), row - begin - 1, steps)
    end = _up_to(list_ptr, tl.where(row < Td, count, 0), row - begin, steps)
    total = tl.zeros((ROWS, BLOCK_K), tl.float32)
    for n in range(0, tl.max(end - start, axis=0)):
        live = n < end - start
        token = tl.load(order_ptr + doc * count + start + n, mask=live, other=0).to(tl.int64)
        token = token + doc * Lq if PAIR else token
        live = live & (token >= 0) & (token < Tq)
        query = _owner(owner_ptr, token, live, Lq, PACKED)
        pull = tl.load(up_ptr + query * sgq + doc * sgd, mask=live, other=0.0)
        where = token * sqt if PACKED else query * sqb + (token - query * Lq) * sqt
        chosen = q_ptr + where[:, None] + k[None, :] * sqk
        total += pull[:, None] * tl.load(chosen, mask=live[:, None] & (k < D)[None, :], other=0.0).to(tl.float32)
    tl.store(out_ptr + row[:, None] * D + k[None, :], total, mask=(row < Td)[:, None] & (k < D)[None, :])


@triton.jit
def _add_up(part_ptr, out_ptr, pieces, count, BLOCK: tl.constexpr):
    """The sum of the pieces, in their order."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for piece in range(0, pieces):
        here = (tl.zeros((BLOCK,), tl.int64) + piece) * count + at
        total += tl.load(part_ptr + here, mask=at < count, other=0.0)
    tl.store(out_ptr + at, total, mask=at < count)


PIECE = 256  # documents whose choices one program adds up


class Sizes:
    """Sequences, tokens of each, tokens of all, and strides of one side; packed sequences have no common length."""

    def __init__(self, t, cu):
        self.packed = cu is not None
        self.count = cu.numel() - 1 if self.packed else t.shape[0]
        self.length = 0 if self.packed else t.shape[1]
        self.total = t.shape[0] if self.packed else t.shape[0] * t.shape[1]
        self.strides = (0, *t.stride()) if self.packed else t.stride()

    def owners(self, cu, like):
        """The sequence of each token where they are packed; else any tensor."""
        if not self.packed:
            return like
        out = torch.empty((self.total,), dtype=torch.int32, device=cu.device)
        if self.total:
            _owners[(triton.cdiv(self.total, 256),)](
                cu, out, self.count, self.total, (self.count + 1).bit_length(), BLOCK=256
            )
        return out


def tiling(q, queries, length, features, packed, pair, keep):
    """Tiles of the forward kernel, by dtype and sizes alone."""
    half = q.dtype != torch.float32
    rows = 32 if packed else max(16, min(64 if half else 32, triton.next_power_of_2(length)))
    many = 1 if packed or pair or not half or length > rows else min(64 // rows, triton.next_power_of_2(queries))
    block_k = max(16, min(128 if half else 32, triton.next_power_of_2(features)))
    return {"QUERIES": many, "ROWS": rows, "BLOCK": 64 if keep or not half else 128, "BLOCK_K": block_k,
            "WHOLE": features <= block_k, "num_warps": 4, "num_stages": 3 if half else 2}  # fmt: skip


def forward(q, d, scale, q_mask, d_mask, cu_q, cu_d, pair, keep):
    """Scores (float32), and with ``keep`` the number of the document token that each query token chose, or -1.

    ``keep``: (documents, query tokens), of pairs (query tokens), int32.
    """
    cu_q, cu_d = (cu if cu is None else cu.contiguous() for cu in (cu_q, cu_d))
    a, b = Sizes(q, cu_q), Sizes(d, cu_d)
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=q.device)  # noqa: E731
    out = new(a.count) if pair else new(a.count, b.count)
    kept = (1 if pair else b.count, a.total) if keep else (0,)
    at = torch.full(kept, -1, dtype=torch.int32, device=q.device)
    tile = tiling(q, a.count, a.length, q.shape[-1], a.packed, pair, keep)
    programs = a.count if pair else b.count * triton.cdiv(a.count, tile["QUERIES"])
    strides = [t.stride() if t is not None else (0, 0) for t in (scale, q_mask, d_mask)]
    scale, q_mask, d_mask = (t if t is not None else q for t in (scale, q_mask, d_mask))
    if programs:
        _scores[(programs,)](
            q, d, scale, q_mask, d_mask, cu_q if a.packed else q, cu_d if a.packed else q, out, at, a.count, b.count,
            a.length, b.length, a.total, b.total, q.shape[-1], *a.strides, *b.strides, *strides[0], *strides[1],
            *strides[2], **tile, PACKED=a.packed, PAIR=pair, SCALED=scale is not q, QMASK=q_mask is not q,
            DMASK=d_mask is not q, KEEP=keep,
        )  # fmt: skip
    return out, at


def backward(upstream, q, d, scale, at, cu_q, cu_d, pair, wanted):
    """Gradients of ``q`` and ``d`` that are ``wanted``, from the choices that forward kept; contiguous."""
    cu_q, cu_d = (cu if cu is None else cu.contiguous() for cu in (cu_q, cu_d))
    a, b = Sizes(q, cu_q), Sizes(d, cu_d)
    up = (upstream.stride(0), 0) if pair else upstream.stride()
    owners = a.owners(cu_q, at)
    dq = _of_queries(upstream, up, q, d, scale, at, owners, cu_d, a, b, pair) if wanted[0] else None
    dd = _of_documents(upstream, up, q, d, at, owners, cu_d, a, b, pair) if wanted[1] else None
    return dq, dd


def _of_queries(upstream, up, q, d, scale, at, owners, cu_d, a, b, pair):
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    pieces = 1 if pair else max(1, triton.cdiv(b.count, PIECE))
    to = out if pieces == 1 else torch.empty((pieces, a.total, q.shape[-1]), dtype=torch.float32, device=q.device)
    block_k = min(128, triton.next_power_of_2(q.shape[-1]))
    strides = (0, 0) if scale is None else scale.stride()
    if out.numel():
        _query_gradient[(triton.cdiv(a.total, 16) * pieces, triton.cdiv(q.shape[-1], block_k))](
            at, upstream, d, d if scale is None else scale, owners, cu_d if b.packed else at, to, b.count, a.length,
            b.length, a.total, b.total, q.shape[-1], pieces, *up, *b.strides, *strides, ROWS=16, BLOCK_K=block_k,
            PIECE=PIECE, PACKED=a.packed, PAIR=pair, SCALED=scale is not None,
        )  # fmt: skip
        if pieces > 1:
            _add_up[(triton.cdiv(out.numel(), 1024),)](to, out, pieces, out.numel(), BLOCK=1024)
    return out


def _of_documents(upstream, up, q, d, at, owners, cu_d, a, b, pair):
    out = torch.empty(d.shape, dtype=d.dtype, device=d.device)
    chosen, order = torch.sort(at.view(a.count, a.length) if pair else at, dim=-1, stable=True)
    block_k = min(128, triton.next_power_of_2(d.shape[-1]))
    if out.numel():
        _document_gradient[(triton.cdiv(b.total, 16), triton.cdiv(d.shape[-1], block_k))](
            chosen, order, upstream, q, owners, b.owners(cu_d, at), cu_d if b.packed else at, out, a.count, b.count,
            a.length, b.length, a.total, b.total, d.shape[-1], (a.total + 1).bit_length(), *up, *a.strides, ROWS=16,
            BLOCK_K=block_k, PACKED=a.packed, PAIR=pair,
        )  # fmt: skip
    return out


class _MaxSim(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, d, scale, q_mask, d_mask, cu_q, cu_d, pair):
        out, at = forward(q, d, scale, q_mask, d_mask, cu_q, cu_d, pair, any(ctx.needs_input_grad[:2]))
        ctx.save_for_backward(q, d, scale, at, cu_q, cu_d)
        ctx.pair = pair
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return *backward(upstream, *ctx.saved_tensors, ctx.pair, ctx.needs_input_grad[:2]), *[None] * 6


def kernel(q, d, q_mask, d_mask):
    return _MaxSim.apply(q, d, None, q_mask, d_mask, None, None, False)


def max_sim_pairs(q, d, q_mask, d_mask):
    return _MaxSim.apply(q, d, None, q_mask, d_mask, None, None, True)


def max_sim_packed(q, d, cu_q, cu_d):
    return _MaxSim.apply(q, d, None, None, None, cu_q, cu_d, False)


def max_sim_int8(q, d, scale, q_mask, d_mask):
    return _MaxSim.apply(q, d, scale, q_mask, d_mask, None, None, False)
