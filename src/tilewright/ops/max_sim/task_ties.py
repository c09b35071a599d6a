"""Late interaction where many similarities are equal: the first of them gets the gradient, as in ``torch.max``."""

from reference import max_sim

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers


def reference(q, d, q_mask, d_mask):
    return max_sim(q, d, q_mask, d_mask)


FLOATS = ("float32", "float16", "bfloat16")
FEW = integers(-2, 3)

TASK = Task(
    name="max_sim_ties",
    reference=reference,
    inputs={
        "q": TensorSpec("A M D", dtypes=FLOATS, values=FEW, requires_grad=True),
        "d": TensorSpec("B N D", dtypes=FLOATS, values=FEW, requires_grad=True),
        "q_mask": TensorSpec("A M", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
        "d_mask": TensorSpec("B N", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"A": Dim(1, 1 << 12), "M": Dim(1, 1 << 13), "B": Dim(1, 1 << 17), "N": Dim(1, 1 << 13), "D": Dim(1, 8)},
    workloads=[{"A": 3, "M": 8, "B": 4, "N": 40, "D": 2}, {"A": 2, "M": 5, "B": 2, "N": 200, "D": 1}],
    contract=Contract(
        identifier="ops.max_sim.ties", gradients="promised", accumulate="float32",
        preconditions=("of equal similarities the first counts in backward",),
    ),
    work=Work(bytes="(A*M*D + B*N*D)*itemsize + A*M + B*N + 4*A*B", flops="2*A*M*B*N*D"),
)  # fmt: skip
