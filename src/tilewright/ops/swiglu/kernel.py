"""SwiGLU, ``silu(gate) * up``: each element is read once and written once; backward finds the sigmoid again.

What lies contiguous is walked as one long row. Anything else is walked by its strides: the halves of a packed projection
are views, and so are the halves of its gradient.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _tile(N, blocks, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows and columns of a tile; tiles are counted along a row first."""
    program = tl.program_id(0).to(tl.int64)
    row = program // blocks * ROWS + tl.arange(0, ROWS)[:, None]
    return row, program % blocks * BLOCK + tl.arange(0, BLOCK)[None, :]


@triton.jit
def _forward(gate_ptr, up_ptr, y_ptr, M, N, blocks, sgm, sgn, spm, spn, sym, ROWS: tl.constexpr,
             BLOCK: tl.constexpr):  # fmt: skip
    ACC: tl.constexpr = tl.float64 if gate_ptr.dtype.element_ty == tl.float64 else tl.float32
    row, col = _tile(N, blocks, ROWS, BLOCK)
    inside = (row < M) & (col < N)
    gate = tl.load(gate_ptr + row * sgm + col * sgn, mask=inside, other=0.0).to(ACC)
    up = tl.load(up_ptr + row * spm + col * spn, mask=inside, other=0.0).to(ACC)
    y = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(y_ptr + row * sym + col, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _backward(gate_ptr, up_ptr, dy_ptr, dgate_ptr, dup_ptr, M, N, blocks, sgm, sgn, spm, spn, sdm, sdn, sam, sbm,
              ROWS: tl.constexpr, BLOCK: tl.constexpr, GATE: tl.constexpr, UP: tl.constexpr):  # fmt: skip
    ACC: tl.constexpr = tl.float64 if gate_ptr.dtype.element_ty == tl.float64 else tl.float32
    row, col = _tile(N, blocks, ROWS, BLOCK)
    inside = (row < M) & (col < N)
    gate = tl.load(gate_ptr + row * sgm + col * sgn, mask=inside, other=0.0).to(ACC)
    dy = tl.load(dy_ptr + row * sdm + col * sdn, mask=inside, other=0.0).to(ACC)
    share = 1.0 / (1.0 + tl.exp(-gate))
    if GATE:
        up = tl.load(up_ptr + row * spm + col * spn, mask=inside, other=0.0).to(ACC)
        dgate = dy * up * (share * (1.0 + gate * (1.0 - share)))
        tl.store(dgate_ptr + row * sam + col, dgate.to(dgate_ptr.dtype.element_ty), mask=inside)
    if UP:
        dup = dy * (gate * share)
        tl.store(dup_ptr + row * sbm + col, dup.to(dup_ptr.dtype.element_ty), mask=inside)


TILE = 2048


def walk(*tensors):
    """Rows, columns and strides to walk by: one long row where everything is contiguous."""
    M, N = tensors[0].shape
    if all(t.is_contiguous() for t in tensors):
        return 1, M * N, [(0, 1)] * len(tensors)
    return M, N, [t.stride() for t in tensors]


def tiling(M, N):
    """Programs, tiles in a row, and the tile of each."""
    block = min(triton.next_power_of_2(N), TILE)
    rows, blocks = TILE // block, triton.cdiv(N, block)
    return triton.cdiv(M, rows) * blocks, blocks, {"ROWS": rows, "BLOCK": block, "num_warps": 4}


def forward(gate, up):
    """``y``, contiguous."""
    y = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    M, N, (of_gate, of_up, of_y) = walk(gate, up, y)
    if M and N:
        programs, blocks, tile = tiling(M, N)
        _forward[(programs,)](gate, up, y, M, N, blocks, *of_gate, *of_up, of_y[0], **tile)
    return y


def backward(dy, gate, up, dgate, dup):
    """Writes gradients into ``dgate`` and ``dup`` (None: not wanted), whose columns lie side by side."""
    wanted = [t for t in (dgate, dup) if t is not None]
    M, N, (of_gate, of_up, of_dy, *of_wanted) = walk(gate, up, dy, *wanted)
    if not (M and N and wanted):
        return
    programs, blocks, tile = tiling(M, N)
    _backward[(programs,)](
        gate, up, dy, gate if dgate is None else dgate, gate if dup is None else dup, M, N, blocks, *of_gate, *of_up,
        *of_dy, of_wanted[0][0], of_wanted[-1][0], **tile, GATE=dgate is not None, UP=dup is not None,
    )  # fmt: skip


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return forward(gate, up)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        gate, up = ctx.saved_tensors
        new = lambda t, need: torch.empty(t.shape, dtype=t.dtype, device=t.device) if need else None  # noqa: E731
        dgate, dup = new(gate, ctx.needs_input_grad[0]), new(up, ctx.needs_input_grad[1])
        backward(dy, gate, up, dgate, dup)
        return dgate, dup


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return forward(*x.chunk(2, dim=-1))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        backward(dy, *x.chunk(2, dim=-1), *dx.chunk(2, dim=-1))
        return dx


def kernel(gate, up):
    return _SwiGLU.apply(gate, up)


def packed(x):
    return _Packed.apply(x)
