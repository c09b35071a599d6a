"""K is cut into splits of whole blocks; partial products in float32 are added in order by a second kernel."""
import torch
import triton
import triton.language as tl


@triton.jit
def _partial(a_ptr, b_ptr, part_ptr, M, N, K, chunk, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    split = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    rows = ((tile // tiles_n) * BM + tl.arange(0, BM).to(tl.int64))[:, None]
    cols = ((tile % tiles_n) * BN + tl.arange(0, BN).to(tl.int64))[None, :]
    inner = tl.arange(0, BK).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(split * chunk, min(K, (split + 1) * chunk), BK):
        k = start + inner
        a = tl.load(a_ptr + rows * sam + k[None, :] * sak, mask=(rows < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * sbk + cols * sbn, mask=(k[:, None] < K) & (cols < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    here = part_ptr + split.to(tl.int64) * M * N
    tl.store(here + rows * N + cols, acc, mask=(rows < M) & (cols < N))


@triton.jit
def _add(part_ptr, c_ptr, total, splits, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, splits):
        acc += tl.load(part_ptr + tl.full((), s, tl.int64) * total + at, mask=at < total, other=0.0)
    tl.store(c_ptr + at, acc, mask=at < total)


def kernel(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if not c.numel():
        return c
    chunk = 32 * triton.cdiv(triton.cdiv(K, 32), 4) if K else 32
    splits = triton.cdiv(K, chunk)
    parts = torch.empty((splits, M, N), dtype=torch.float32, device=a.device)
    if splits:
        grid = (triton.cdiv(M, 32) * triton.cdiv(N, 32) * splits,)
        _partial[grid](a, b, parts, M, N, K, chunk, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BM=32, BN=32,
                       BK=32)
    _add[(triton.cdiv(M * N, 256),)](parts, c, M * N, splits, BLOCK=256)
    return c
