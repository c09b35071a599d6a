"""Dequantisation of 4-bit codes through a table of sixteen values, 64 values to a scale; two codes a byte, high first."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Tolerance, Work, integers

POSITIVE = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
TABLE = POSITIVE + tuple(-v for v in POSITIVE)


def reference(codes, absmax):
    table = torch.tensor(TABLE, dtype=torch.float64).to(absmax.dtype)
    high, low = (codes >> 4).long(), (codes & 15).long()
    values = table[torch.stack((high, low), -1)].reshape(-1, 64)
    return (values * absmax[:, None]).reshape(-1)


TASK = Task(
    name="dequantize_fp4",
    reference=reference,
    inputs={
        "codes": TensorSpec(("32*B",), dtypes=("uint8",), values=integers(0, 256), dtype_group="codes"),
        "absmax": TensorSpec("B"),
    },
    outputs={"y": TensorSpec(("64*B",))},
    dims={"B": Dim(1, 1 << 20)},
    workloads=[{"B": 32}, {"B": 5}],
    contract=Contract(
        identifier="dequantize.fp4", tolerance=Tolerance(k=1.5, floor_ulps=1.5), special_values="excluded"
    ),
    work=Work(bytes="32*B+4*B+256*B", flops="64*B"),
)
