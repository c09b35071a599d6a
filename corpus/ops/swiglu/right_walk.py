"""Contiguous tensors are walked as one long row, others by their strides; backward finds the sigmoid again."""

import torch
import triton
import triton.language as tl



@triton.jit
def _share(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _forward(gate_ptr, up_ptr, y_ptr, M, N, blocks, sgm, sgn, spm, spn, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row = program // blocks * ROWS + tl.arange(0, ROWS)[:, None]
    col = program % blocks * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < M) & (col < N)
    gate = tl.load(gate_ptr + row * sgm + col * sgn, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * spm + col * spn, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + col, gate * _share(gate) * up, mask=inside)


@triton.jit
def _backward(gate_ptr, up_ptr, dy_ptr, dgate_ptr, dup_ptr, M, N, blocks, sgm, sgn, spm, spn, sdm, sdn,
              ROWS: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row = program // blocks * ROWS + tl.arange(0, ROWS)[:, None]
    col = program % blocks * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < M) & (col < N)
    gate = tl.load(gate_ptr + row * sgm + col * sgn, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * spm + col * spn, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * sdm + col * sdn, mask=inside, other=0.0).to(tl.float32)
    share = _share(gate)
    slope = share * (1.0 + gate * (1.0 - share))
    tl.store(dgate_ptr + row * N + col, dy * up * slope, mask=inside)
    tl.store(dup_ptr + row * N + col, dy * (gate * share), mask=inside)


def _walk(*tensors):
    """Rows, columns and strides; one long row where everything is contiguous."""
    M, N = tensors[0].shape
    if all(t.is_contiguous() for t in tensors):
        return 1, M * N, [(0, 1)] * len(tensors)
    return M, N, [t.stride() for t in tensors]


def _grid(M, N):
    block = min(triton.next_power_of_2(N), 512)
    rows, blocks = 512 // block, triton.cdiv(N, block)
    return (triton.cdiv(M, rows) * blocks,), blocks, {"ROWS": rows, "BLOCK": block}


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        y = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
        M, N, (of_gate, of_up) = _walk(gate, up)
        if M and N:
            grid, blocks, tile = _grid(M, N)
            _forward[grid](gate, up, y, M, N, blocks, *of_gate, *of_up, **tile)
        ctx.save_for_backward(gate, up)
        return y

    @staticmethod
    def backward(ctx, dy):
        gate, up = ctx.saved_tensors
        dgate = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
        dup = torch.empty(up.shape, dtype=up.dtype, device=up.device)
        M, N, (of_gate, of_up, of_dy) = _walk(gate, up, dy)
        if M and N:
            grid, blocks, tile = _grid(M, N)
            _backward[grid](gate, up, dy, dgate, dup, M, N, blocks, *of_gate, *of_up, *of_dy, **tile)
        return dgate, dup


def kernel(gate, up):
    return _Gated.apply(gate, up)
