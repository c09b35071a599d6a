"""bitsandbytes: ``optimizer_update_32bit_impl`` for Lion."""

import triton  # noqa: F401
from third_party import load

ops = load("bitsandbytes.backends.triton.kernels_optim")


def kernel(param, grad, momentum, weight_decay):
    ops.optimizer_update_32bit_impl("lion", grad, param, momentum, None, None, 0.0, 0.0, 0.9, 0.99, 0.0, 0.0, 0.0,
                                    weight_decay, 1, 1e-2)  # fmt: skip
    return param, momentum
