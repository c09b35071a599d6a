"""KL divergence with log targets, reduction "batchmean"."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(log_q, log_p):
    return torch.nn.functional.kl_div(log_q, log_p, reduction="batchmean", log_target=True)


LOGS = Values(kind="log_probabilities")

TASK = Task(
    name="kl_div_log_target",
    reference=reference,
    inputs={
        "log_q": TensorSpec("M V", dtypes=("float32",), values=LOGS),
        "log_p": TensorSpec("M V", dtypes=("float32",), values=LOGS),
    },
    outputs={"loss": TensorSpec("")},
    dims={"M": Dim(1, 1 << 16), "V": Dim(1, 1 << 16)},
    workloads=[{"M": 16, "V": 2048}, {"M": 5, "V": 99}],
    contract=Contract(identifier="kl.batchmean", nan="unspecified", special_values="excluded"),
    work=Work(bytes="2*M*V*itemsize", flops="4*M*V"),
)
