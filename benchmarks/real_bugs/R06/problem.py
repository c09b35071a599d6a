"""FP4 codes, two a byte, to floats: the table is exact to half a unit in the last place, as in the other back ends."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Tolerance, integers

LEVELS = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)


def reference(packed, absmax):
    table = torch.tensor(LEVELS + tuple(-v for v in LEVELS), dtype=absmax.dtype)
    codes = torch.stack((packed >> 4, packed & 15), 1).flatten().long()
    return (table[codes].view(-1, 64) * absmax[:, None]).flatten()


TASK = Task(
    name="dequantize_fp4",
    reference=reference,
    inputs={
        "packed": TensorSpec(("32*B",), dtypes="uint8", values=integers(0, 256), dtype_group="codes"),
        "absmax": TensorSpec("B"),
    },
    dims={"B": Dim(1, 1 << 20)},
    workloads=[{"B": 64}, {"B": 15}],
    contract=Contract(identifier="dequantize_fp4", layouts="excluded", special_values="excluded",
                      tolerance=Tolerance(k=1, floor_ulps=1)),
)  # fmt: skip
