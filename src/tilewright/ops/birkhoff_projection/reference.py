"""Doubly stochastic matrices in PyTorch, computed at least in float32."""

import torch


def sinkhorn(x, iterations=20):
    """``exp(x)`` with its rows, then its columns divided by their sums, again and again."""
    y = x.to(torch.promote_types(x.dtype, torch.float32))
    for _ in range(iterations):
        y = y - torch.logsumexp(y, -1, keepdim=True)
        y = y - torch.logsumexp(y, -2, keepdim=True)
    return torch.exp(y).to(x.dtype)


INNER, OUTER, START = 3, 14, 8.0


class _Limit(torch.autograd.Function):
    """The limit of Sinkhorn's iteration, and the gradient of the solution (implicit function theorem)."""

    @staticmethod
    def forward(x):
        with torch.autocast(x.device.type, enabled=False):  # products keep their dtype
            return torch.softmax(_solved(x), -2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, dy):
        (p,) = ctx.saved_tensors
        with torch.autocast(p.device.type, enabled=False):
            return _Limit.gradient(p, dy)

    @staticmethod
    def gradient(p, dy):
        rest = dy - (p * dy).sum(-2, keepdim=True)
        f = _potentials(p @ p.transpose(-1, -2), (p * rest).sum(-1))
        # sum_k p[k, j] (f[k] - f[i]), not a difference of sums: where little couples two rows, f is large there
        apart = f.unsqueeze(-2) - f.unsqueeze(-1)
        return p * (rest + apart @ p)


def converged(x, iterations=None):
    """``diag(a) exp(x) diag(b)`` whose rows and columns sum to one. A matrix that is not finite gives NaN."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    finite = torch.isfinite(wide).flatten(-2).all(-1)[..., None, None]
    p = _Limit.apply(torch.where(finite, wide, torch.zeros_like(wide)))
    return torch.where(finite, p, torch.full_like(p, float("nan"))).to(x.dtype)


def _potentials(g, y):
    """``Laplacian(g) f = y`` by elimination without a subtraction (Grassmann, Taksar, Heyman, 1985); 0 in the first row."""
    count, kept = g.shape[-1], {}
    for k in range(count - 1, 0, -1):
        a = g[..., k, :k]
        d = a.sum(-1, keepdim=True)
        share = torch.where(d > 1e-30, 1 / torch.where(d > 1e-30, d, torch.ones_like(d)), torch.zeros_like(d))
        y = torch.cat([y[..., :k] + a * share * y[..., k : k + 1], y[..., k:]], -1)
        g = g[..., :k, :k] + (a * share).unsqueeze(-1) * a.unsqueeze(-2)
        kept[k] = a, share
    f = torch.zeros_like(y[..., :1])
    for k in range(1, count):
        a, share = kept[k]
        f = torch.cat([f, ((a * f).sum(-1, keepdim=True) + y[..., k : k + 1]) * share], -1)
    return f


def _step(y):
    """One row of Sinkhorn's, then Newton's step, cut to the one of four lengths that lowers the dual most."""
    y = torch.log_softmax(y, -2)
    rows = -torch.logsumexp(y, -1)
    y = torch.log_softmax(y + rows.unsqueeze(-1), -2)
    p = torch.exp(y)
    f = _potentials(p @ p.transpose(-1, -2), 1 - p.sum(-1))
    top, low = f.amax(-1, keepdim=True), f.amin(-1, keepdim=True)
    f, most = f - (top + low) / 2, (top - low) / 2
    steps = torch.stack([f * (4.0**t / most.clamp_min(4.0**t)) for t in range(4)])
    dual = torch.logsumexp(y + steps.unsqueeze(-1), -2).sum(-1) - steps.sum(-1)
    return rows + steps.gather(0, dual.argmin(0)[None, ..., None].expand(1, *f.shape)).squeeze(0)


def _solved(x):
    """``x`` plus potentials of its rows and columns, such that rows and columns of its exponential sum to one."""
    if not x.numel():
        return x
    span = x.amax((-1, -2)) / START - x.amin((-1, -2)) / START
    levels = torch.ceil(torch.log2(span.clamp_min(1.0)))[..., None]
    f, y = torch.zeros_like(x[..., 0]), x
    for t in range(INNER * int(levels.max()) + OUTER):
        scale = torch.exp2((t // INNER - levels).clamp_max(0))
        y = torch.where((t <= INNER * levels)[..., None], x * scale[..., None] + f[..., None], y)
        step, alive = _step(y), t < INNER * levels + OUTER
        f = torch.where(alive, f + step, f)
        y = torch.where(alive[..., None], torch.log_softmax(y + step[..., None], -2), y)
        if t % INNER == INNER - 1:
            f = torch.where(t < INNER * levels, 2 * f, f)
    return y
