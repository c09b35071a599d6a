"""Kernels that the evaluator is tried on: right ones, and mutants with one planted fault each."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softmax(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask, other=float("-inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * stride + cols, v / tl.sum(v, axis=0), mask=mask)


@triton.jit
def softmax_no_other(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * stride + cols, v / tl.sum(v, axis=0), mask=mask)


@triton.jit
def copy_off_by_one(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i <= n
    tl.store(y + i, tl.load(x + i, mask=mask, other=0.0), mask=mask)


@triton.jit
def write_race(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def shift_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x + i, v, mask=i < n)


@triton.jit
def matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PREC: tl.constexpr):  # fmt: skip
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        ta = tl.load(a + rm[:, None] * sam + (rk[None, :] + k) * sak,
                     mask=(rm[:, None] < M) & (rk[None, :] + k < K), other=0.0)  # fmt: skip
        tb = tl.load(b + (rk[:, None] + k) * sbk + rn[None, :] * sbn,
                     mask=(rk[:, None] + k < K) & (rn[None, :] < N), other=0.0)  # fmt: skip
        acc = tl.dot(ta, tb, acc, input_precision=PREC)
    tl.store(c + rm[:, None] * scm + rn[None, :] * scn, acc.to(c.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))  # fmt: skip


@triton.jit
def matmul_persistent(a, b, c, M, N, K, PROGRAMS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    tile = tl.program_id(0)
    while tile < tl.cdiv(M, BM) * tiles_n:
        rm = (tile // tiles_n) * BM + tl.arange(0, BM)
        rn = (tile % tiles_n) * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in tl.range(0, tl.cdiv(K, BK)):
            kk = k * BK + rk
            ta = tl.load(a + rm[:, None] * K + kk[None, :], mask=(rm[:, None] < M) & (kk[None, :] < K), other=0.0)
            tb = tl.load(b + kk[:, None] * N + rn[None, :], mask=(kk[:, None] < K) & (rn[None, :] < N), other=0.0)
            acc += tl.dot(ta, tb)
        tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))
        tile += PROGRAMS


@triton.jit
def attention(q, k, v, o, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              CAUSAL: tl.constexpr, SLACK: tl.constexpr):  # fmt: skip
    start = tl.program_id(0) * BM
    q += tl.program_id(1) * N * D
    k += tl.program_id(1) * N * D
    v += tl.program_id(1) * N * D
    o += tl.program_id(1) * N * D
    rm = start + tl.arange(0, BM)
    rd = tl.arange(0, D)
    tq = tl.load(q + rm[:, None] * D + rd[None, :], mask=rm[:, None] < N, other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    high = tl.minimum(start + BM, N) if CAUSAL else N
    for n0 in range(0, high, BN):
        rn = n0 + tl.arange(0, BN)
        tk = tl.load(k + rn[:, None] * D + rd[None, :], mask=rn[:, None] < N, other=0.0)
        tv = tl.load(v + rn[:, None] * D + rd[None, :], mask=rn[:, None] < N, other=0.0)
        s = tl.dot(tq, tl.trans(tk)) * (scale * 1.4426950408889634)
        keep = rn[None, :] < N + SLACK
        if CAUSAL:
            keep = keep & (rn[None, :] <= rm[:, None])
        s = tl.where(keep, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        a = tl.exp2(m - m_new)
        total = total * a + tl.sum(p, 1)
        acc = tl.dot(p.to(tv.dtype), tv, acc * a[:, None])
        m = m_new
    tl.store(o + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(o.dtype.element_ty), mask=rm[:, None] < N)


@triton.jit
def _welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def layernorm(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    mean, m2, count = tl.reduce((v, tl.zeros_like(v), mask.to(tl.float32)), 0, _welford)
    out = (v - mean) * tl.rsqrt(m2 / count + eps)
    out = out * tl.load(w + cols, mask=mask, other=0.0) + tl.load(b + cols, mask=mask, other=0.0)
    tl.store(y + row * n + cols, out.to(y.dtype.element_ty), mask=mask)


@triton.jit
def cross_entropy(x, target, loss, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * n
    t = tl.load(target + row)
    if t == -100:
        tl.store(loss + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    for i in range(0, n, BLOCK):
        cols = i + tl.arange(0, BLOCK)
        v = tl.load(x + cols, mask=cols < n, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(v))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(v - m_new))
        m = m_new
    tl.store(loss + row, m + tl.log(d) - tl.load(x + t).to(tl.float32))


@triton.jit
def rope(x, cos, sin, y, n, HALF: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, HALF)
    a = tl.load(x + row * 2 * HALF + i)
    b = tl.load(x + row * 2 * HALF + HALF + i)
    c = tl.load(cos + row * HALF + i)
    s = tl.load(sin + row * HALF + i)
    both = tl.join(a * c - b * s, b * c + a * s)
    flat = tl.reshape(tl.trans(both, 1, 0), (2 * HALF,))
    tl.store(y + row * 2 * HALF + tl.arange(0, 2 * HALF), flat)


@triton.jit
def cumsum(x, y, z, n, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.cumsum(v, 0, reverse=REVERSE), mask=i < n)
    tl.store(z + i, tl.cumprod(v, 0), mask=i < n)


@triton.jit
def argmax(x, value, index, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=float("-inf"))
    best, at = tl.max(v, 0, return_indices=True)
    tl.store(value + row, best)
    tl.store(index + row, at)


@triton.jit
def histogram_atomic(x, counts, olds, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    old = tl.atomic_add(counts + v, 1, mask=i < n)
    tl.store(olds + i, old, mask=i < n)


@triton.jit
def histogram(x, counts, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.histogram(tl.load(x + i), BINS)
    tl.atomic_add(counts + tl.arange(0, BINS), h)


@triton.jit
def dropout(x, y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.where(keep, v / (1 - p), 0.0), mask=i < n)


@triton.jit
def block_pointer_transpose(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    src = tl.make_block_ptr(x, (M, N), (N, 1), (pm * BM, 0), (BM, BN), (1, 0))
    dst = tl.make_block_ptr(y, (N, M), (M, 1), (0, pm * BM), (BN, BM), (1, 0))
    src = tl.advance(src, (0, pn * BN))
    dst = tl.advance(dst, (pn * BN, 0))
    t = tl.load(src, boundary_check=(0, 1), padding_option="zero")
    tl.store(dst, tl.trans(t), boundary_check=(0, 1))


@triton.jit
def descriptor_add(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    b = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    b.store([i, j], a.load([i, j]) + 1.0)


@triton.jit
def reduce_2d(x, rows, cols, total, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(rows + m, tl.sum(v, 1))
    tl.store(cols + n, tl.max(v, 0))
    tl.store(total, tl.sum(v))


@triton.jit
def sort_rows(x, y, N: tl.constexpr, DESCENDING: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    tl.store(y + row * N + i, tl.sort(tl.load(x + row * N + i), descending=DESCENDING))


@triton.jit
def gather_rows(x, index, y, N: tl.constexpr, M: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(y + tl.arange(0, M), tl.gather(v, tl.load(index + tl.arange(0, M)), 0))


@triton.jit
def scalar_branches(x, y, n):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    if pid % 3 == 0:
        w = v * 2
    elif v > 0:
        w = v + 10
        if pid > 5:
            w = w * w
    else:
        w = -v
    i = 0
    while i < pid:
        if w > 50.0:
            w = w - 50.0
        w += 1.0
        i += 2
    tl.store(y + pid, w)


@triton.jit
def math_table(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    p = tl.abs(v) + 0.5
    out = tl.exp(v) + tl.exp2(v) + tl.log(p) + tl.log2(p) + tl.sin(v) + tl.cos(v) + tl.sqrt(p) + tl.rsqrt(p)
    out += tl.erf(v) + tl.floor(v) + tl.ceil(v) + tl.fma(v, p, v) + tl.math.sqrt_rn(p) + tl.math.div_rn(v, p)
    out += libdevice.tanh(v) + libdevice.pow(p, v) + libdevice.rint(v) + libdevice.expm1(v) + libdevice.log1p(p)
    out += tl.sigmoid(v) + tl.clamp(v, -1.0, 1.0) + tl.minimum(v, p) + libdevice.atan2(v, p) + (v % 3.0)
    tl.store(y + i, out)


@triton.jit
def int_table(x, z, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(z + i)
    out = a * b + (a // b) - (a % b) + (a ^ b) + (a & b) + (a | b) + (a << 3) + (a >> 2) + tl.abs(a)
    out += tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32) + tl.maximum(a, b)
    out += (a.to(tl.uint32) >> 3).to(tl.int32) + (a.to(tl.uint32) // b.to(tl.uint32)).to(tl.int32)
    out += (a.to(tl.uint32) < b.to(tl.uint32)).to(tl.int32) + (~a) + a.to(tl.int8).to(tl.int32)
    tl.store(y + i, out)


@triton.jit
def casts(x, y, z, w, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    e4 = v.to(tl.float8e4nv).to(tl.float32)
    e5 = v.to(tl.float8e5).to(tl.float32)
    tl.store(y + i, e4 + e5 + v.to(tl.float16).to(tl.float32) + v.to(tl.bfloat16).to(tl.float32))
    tl.store(z + i, v.to(tl.int32) + v.to(tl.int32, bitcast=True))
    tl.store(w + i, v.to(tl.float64) * 1.5)


@triton.jit(noinline=True)
def _double(v):
    return v * 2


@triton.jit
def calls(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(n > 0, "n")
    tl.assume(n > 0)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.device_print("v", v)
    tl.store(y + i, v * _double(n), mask=i < n)


@triton.jit
def lock_sum(x, total, lock, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + i, mask=i < n, other=0.0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + s)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def atomics(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    at = tl.zeros((BLOCK,), tl.int32)
    tl.atomic_max(y + at, v, mask=i < n)
    tl.atomic_min(y + at + 1, v, mask=i < n)
    tl.atomic_add(y + 2, tl.sum(v))
    b = (v * 10).to(tl.int32)
    tl.atomic_and(z + at, b, mask=i < n)
    tl.atomic_or(z + at + 1, b, mask=i < n)
    tl.atomic_xor(z + at + 2, b, mask=i < n)


@triton.jit
def dot_scaled(a, sa, b, sb, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    g = tl.arange(0, BK // 32)
    ta = tl.load(a + m[:, None] * BK + k[None, :])
    tb = tl.load(b + k[:, None] * BN + n[None, :])
    va = tl.load(sa + m[:, None] * (BK // 32) + g[None, :])
    vb = tl.load(sb + n[:, None] * (BK // 32) + g[None, :])
    tl.store(c + m[:, None] * BN + n[None, :], tl.dot_scaled(ta, va, "e4m3", tb, vb, "e5m2"))


@triton.jit
def split_pairs(x, y, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, 2 * N))
    a, b = tl.split(tl.reshape(v, (N, 2)))
    tl.store(y + tl.arange(0, 2 * N), tl.cat(a + b, a - b, can_reorder=True))


HAS_BLOCK_POINTERS = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9)


@triton.jit
def descriptor_host(a, b, BM: tl.constexpr):
    i = tl.program_id(0) * BM
    b.store([i, 0], a.load([i, 0]) * 2)


@triton.jit
def tuple_arguments(pointers, numbers, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(pointers[0] + i, mask=i < n, other=0.0)
    tl.store(pointers[1] + i, v * numbers[0] + numbers[1], mask=i < n)


@triton.jit
def inline_tanh(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=r,r", [v], tl.float32, True, 1))


@triton.jit
def inline_softplus(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    code: tl.constexpr = """{ .reg .pred p; .reg .f32 t; setp.gt.f32 p, $1, 20.; @p mov.f32 $0, $1;
        @!p mul.f32 t, $1, 0f3FB8AA3B; @!p ex2.approx.ftz.f32 $0, t; @!p add.f32 $0, $0, 1.0;
        @!p lg2.approx.ftz.f32 $0, $0; @!p mul.f32 $0, $0, 0.6931471805599453; }"""
    tl.store(y + i, tl.inline_asm_elementwise(code, "=r,r", [v], tl.float32, True, 1))


@triton.jit
def inline_unknown_guard(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, tl.inline_asm_elementwise("@q add.f32 $0, $1, 1.0;", "=r,r", [v], tl.float32, True, 1))


@triton.jit
def inline_clock(y):
    t = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, False, 1)
    tl.store(y, t)


@triton.jit
def copy_rows(x, y, sx, sy, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(y + row * sy + i, tl.load(x + row * sx + i, mask=i < n), mask=i < n)


@triton.jit
def read_back(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0) + tl.load(y + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def store_beyond(y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, i)


@triton.jit
def before_start(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i - 1))


@triton.jit
def never_unlocks(lock):
    while tl.atomic_cas(lock, 1, 0) == 0:
        pass


@triton.jit
def rsqrt_rows(x, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(y + row * n + i, v * tl.rsqrt(tl.sum(v * v) / n + eps), mask=i < n)


@triton.jit
def softmax_with_epsilon(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask, other=float("-inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * stride + cols, v / (tl.sum(v, axis=0) + 1e-6), mask=mask)


@triton.jit
def gelu_tanh(x, y, n, COEFFICIENT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    inner = 0.7978845608028654 * (v + COEFFICIENT * v * v * v)
    tl.store(y + i, 0.5 * v * (1 + libdevice.tanh(inner)), mask=i < n)


@triton.jit
def logsumexp(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    d = 0.0
    for i in range(0, n, BLOCK):
        c = i + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + c, mask=c < n, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(v))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(v - m_new))
        m = m_new
    tl.store(y + row, m + tl.log(d))


@triton.jit
def does_not_compile(x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(x + i, tl.dot(v, v))


@triton.jit
def special_values(x, y, maximum, whole, unsigned, eight, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(maximum + i, tl.maximum(v, tl.load(y + i)))
    tl.store(whole + i, v.to(tl.int32))
    tl.store(unsigned + i, v.to(tl.uint32).to(tl.int32, bitcast=True))
    tl.store(eight + i, v.to(tl.float8e4nv).to(tl.float32) + v.to(tl.float8e5).to(tl.float32))


@triton.jit
def by_address(table, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(table + row).to(tl.pointer_type(tl.float32))
    tl.store(y + row * n + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def scale_rows_32(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + row * n + i, tl.load(x + row * n + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def scale_rows_64(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + row * n + i, tl.load(x + row * n + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def wider_read(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x.to(tl.pointer_type(tl.int32)) + i))


@triton.jit
def tanh_of_half(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, libdevice.tanh(tl.load(x + i)))


@triton.jit
def ragged_rows(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    for j in range(0, row + 1):
        v = tl.load(y + (row * n + j) * BLOCK + i)
        tl.store(y + (row * n + j) * BLOCK + i, v + tl.load(x + i))


@triton.jit
def max_int_fill(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y, tl.max(tl.load(x + i, mask=i < n, other=-float("inf"))))
