"""Split-K with float atomics into a zeroed output: the order of additions is free, as the contract says."""
import torch
import triton
import triton.language as tl


@triton.jit
def _matmul(a_ptr, b_ptr, c_ptr, M, N, K, blocks, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    split = tl.program_id(0) % blocks
    tile = tl.program_id(0) // blocks
    rows = ((tile // tiles_n) * BM + tl.arange(0, BM).to(tl.int64))[:, None]
    cols = ((tile % tiles_n) * BN + tl.arange(0, BN).to(tl.int64))[None, :]
    k = split * BK + tl.arange(0, BK).to(tl.int64)
    a = tl.load(a_ptr + rows * sam + k[None, :] * sak, mask=(rows < M) & (k[None, :] < K), other=0.0)
    b = tl.load(b_ptr + k[:, None] * sbk + cols * sbn, mask=(k[:, None] < K) & (cols < N), other=0.0)
    tl.atomic_add(c_ptr + rows * N + cols, tl.dot(a, b, input_precision="ieee"), mask=(rows < M) & (cols < N))


def kernel(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.zeros((M, N), dtype=a.dtype, device=a.device)
    blocks = triton.cdiv(K, 64)
    _matmul[(triton.cdiv(M, 32) * triton.cdiv(N, 32) * blocks,)](a, b, c, M, N, K, blocks, a.stride(0), a.stride(1),
                                                                b.stride(0), b.stride(1), BM=32, BN=32, BK=64)
    return c
