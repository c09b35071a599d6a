"""Each program stores its sum, then counts itself."""
import torch
import triton
import triton.language as tl


@triton.jit
def _sum(x_ptr, part_ptr, count_ptr, y_ptr, n, programs, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    mine = tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0))
    tl.store(part_ptr + pid, mine)
    tl.debug_barrier()
    came = tl.atomic_add(count_ptr, 1, sem="acq_rel")
    if came == programs - 1:
        total = 0.0
        for i in range(programs):
            total += tl.load(part_ptr + i, volatile=True)
        tl.store(y_ptr, total)


def kernel(x):
    programs = triton.cdiv(x.numel(), 64)
    part = torch.empty(programs, dtype=torch.float32, device=x.device)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    y = torch.empty((), dtype=x.dtype, device=x.device)
    _sum[(programs,)](x, part, count, y, x.numel(), programs, BLOCK=64)
    return y
