"""Quantisation to int8 by a power of two: round half to even, saturate."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, bits):
    return torch.round(x * 2.0**bits).clamp(-128, 127).to(torch.int8)


TASK = Task(
    name="quantize_int8",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16")), "bits": Scalar(4, 6)},
    outputs={"q": TensorSpec("M N", dtypes=("int8",))},
    dims={"M": Dim(0, 1 << 16), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 32, "N": 512}, {"M": 5, "N": 77}],
    contract=Contract(identifier="quantize.int8.pow2", special_values="excluded", batch_invariant=("M",)),
    work=Work(bytes="M*N*(itemsize+1)", flops="4*M*N"),
)
