"""Jensen-Shannon divergence of two rows of log-probabilities, one value a row."""

import math

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(log_p, log_q):
    p, q = log_p.exp(), log_q.exp()
    m = 0.5 * (p + q)
    terms = torch.xlogy(p, p) + torch.xlogy(q, q) - 2.0 * torch.xlogy(m, m)
    return 0.5 * terms.sum(-1)


def underflow(run, inputs):
    """A column with no mass on either side adds nothing, however far its logarithm underflows."""
    log_p, log_q = inputs["log_p"].clone(), inputs["log_q"].clone()
    log_p[:, 0] = log_q[:, 0] = -math.inf
    nothing = run(log_p=log_p, log_q=log_q)
    log_p[:, 0] = log_q[:, 0] = -500.0
    faint = run(log_p=log_p, log_q=log_q)
    return bool(torch.equal(nothing, faint)) and bool(torch.isfinite(faint).all())


LOGS = Values(kind="log_probabilities", std=2.0)

TASK = Task(
    name="jsd",
    reference=reference,
    inputs={
        "log_p": TensorSpec("M V", dtypes=("float32",), values=LOGS),
        "log_q": TensorSpec("M V", dtypes=("float32",), values=LOGS),
    },
    outputs={"divergence": TensorSpec("M")},
    dims={"M": Dim(0, 1 << 16), "V": Dim(1, 1 << 18)},
    workloads=[{"M": 32, "V": 1000}, {"M": 3, "V": 77}],
    contract=Contract(identifier="jsd.rows", nan="unspecified", special_values="excluded", batch_invariant=("M",)),
    laws={"underflow": underflow},
    work=Work(bytes="2*M*V*itemsize", flops="12*M*V"),
)
