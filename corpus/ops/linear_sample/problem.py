"""One sample a row from the softmax of a linear layer at a temperature a row, with Philox noise of seed and entry."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers

WORD = 0xFFFFFFFF


def _times(a, b):
    """High and low word of the product of a constant and words (in int64)."""
    low, high = b & 0xFFFF, b >> 16
    return (a * high + (a * low >> 16)) >> 16, a * b & WORD


def philox(seed, u, s):
    """Four words for each counter ``(u, s, 0, 0)`` under the 64 bits of ``seed``; int64 tensors that broadcast."""
    k0, k1 = seed & WORD, seed >> 32 & WORD
    c0, c1 = torch.broadcast_tensors(u & WORD, s & WORD)
    c0, c1 = torch.broadcast_tensors(c0, c1 + 0 * k0)
    c2 = c3 = torch.zeros_like(c0)
    for _ in range(10):
        high_a, low_a = _times(0xD2511F53, c0)
        high_b, low_b = _times(0xCD9E8D57, c2)
        c0, c1, c2, c3 = high_b ^ c1 ^ k0, low_b, high_a ^ c3 ^ k1, low_a
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def gumbel(seed, count, dtype):
    """Standard Gumbel noise (rows, count)."""
    u = torch.arange((count + 3) // 4, device=seed.device)
    words = torch.stack(philox(seed[:, None], u[None, :], torch.zeros_like(u)[None, :]), -1)
    bits = words.flatten(-2)[..., :count]
    w = ((bits.to(dtype) + 0.5) / 65536 / 65536).clamp(max=1 - 2.0**-24)
    return -torch.log(-torch.log1p(-w))


def reference(x, weight, seed, temperature):
    wide = torch.promote_types(x.dtype, torch.float32)
    t = temperature[:, None].to(wide)
    y = x.to(wide) @ weight.to(wide).t() / torch.where(t > 0, t, torch.ones_like(t))
    noise = gumbel(seed, y.shape[-1], y.dtype)
    token = (y + torch.where(t > 0, noise, torch.zeros_like(noise))).argmax(-1, keepdim=True)
    return token, torch.log_softmax(y, -1).gather(-1, token)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="linear_sample",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", dtypes=FLOATS),
        "weight": TensorSpec("V K", dtypes=FLOATS, values=Values(std=0.25)),
        "seed": TensorSpec("M", dtypes=("int64",), values=integers(0, 1 << 62), dtype_group="seed"),
        "temperature": TensorSpec("M", dtypes=("float32",), values=Values(kind="uniform", low=0.25, high=2.0),
                                  dtype_group="rows"),
    },
    dims={"M": Dim(0, 1 << 12), "K": Dim(1, 1 << 12), "V": Dim(1, 1 << 17)},
    workloads=[{"M": 3, "K": 40, "V": 64}, {"M": 9, "K": 24, "V": 200}],
    contract=Contract(
        identifier="corpus.ops.linear_sample", batch_invariant=("M",),
        preconditions=("of equal scores the first entry wins",),
    ),
    work=Work(bytes="(M*K + V*K)*itemsize + 32*M", flops="2*M*K*V"),
)  # fmt: skip
