"""4-bit quantisation in blocks of 64 (NF4 codes): packed codes, two a byte, and the largest magnitude of each block."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec

# Midpoints of the sixteen NF4 levels (Dettmers et al., "QLoRA", 2023).
EDGES = (
    -0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544,
    -0.23460740596055984, -0.13791173323988914, -0.045525018125772476, 0.03979014977812767, 0.1202552504837513,
    0.2035212516784668, 0.2920137718319893, 0.3893125355243683, 0.5016634166240692, 0.6427869200706482, 0.8614784181118011,
)  # fmt: skip


def reference(a):
    blocks = a.view(-1, 64)
    absmax = blocks.abs().amax(1)
    scaled = (blocks / absmax[:, None]).clamp(-1, 1)
    codes = sum((scaled > edge).int() for edge in EDGES).view(-1, 2)
    return ((codes[:, 0] << 4) | codes[:, 1]).to(torch.uint8), absmax


TASK = Task(
    name="quantize_nf4",
    reference=reference,
    inputs={"a": TensorSpec(("64*B",))},
    dims={"B": Dim(1, 1 << 20)},
    workloads=[{"B": 64}, {"B": 16}],
    contract=Contract(identifier="quantize_nf4", layouts="excluded", special_values="excluded"),
)
