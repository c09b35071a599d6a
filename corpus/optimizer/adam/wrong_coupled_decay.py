"""AdamW step with the decay added to the gradient, which is plain Adam with L2."""

import triton
import triton.language as tl


@triton.jit
def adamw_kernel(p_ptr, g_ptr, m_ptr, v_ptr, n, lr, decay, c1, c2, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(p_ptr + offs, mask=mask, other=0.0)
    g = tl.load(g_ptr + offs, mask=mask, other=0.0)
    m = tl.load(m_ptr + offs, mask=mask, other=0.0)
    v = tl.load(v_ptr + offs, mask=mask, other=1.0)
    g = g + decay * p
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    p = p - lr * (m * c1) / (tl.sqrt(v * c2) + 1e-8)
    tl.store(p_ptr + offs, p, mask=mask)
    tl.store(m_ptr + offs, m, mask=mask)
    tl.store(v_ptr + offs, v, mask=mask)


def kernel(param, grad, m, v, lr, weight_decay, step):
    n = param.numel()
    c1 = 1.0 / (1.0 - 0.9**step)
    c2 = 1.0 / (1.0 - 0.999**step)
    adamw_kernel[(triton.cdiv(n, 1024),)](param, grad, m, v, n, lr, weight_decay, c1, c2, BLOCK=1024)
