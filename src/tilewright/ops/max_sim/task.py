"""Late interaction of each query with each document, padded, with masks on both sides; with gradients."""

from reference import max_sim

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(q, d, q_mask, d_mask):
    return max_sim(q, d, q_mask, d_mask)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="max_sim",
    reference=reference,
    inputs={
        "q": TensorSpec("A M D", dtypes=FLOATS, requires_grad=True),
        "d": TensorSpec("B N D", dtypes=FLOATS, requires_grad=True),
        "q_mask": TensorSpec("A M", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
        "d_mask": TensorSpec("B N", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"A": Dim(0, 1 << 12), "M": Dim(0, 1 << 13), "B": Dim(0, 1 << 17), "N": Dim(0, 1 << 13), "D": Dim(1, 1 << 12)},
    workloads=[
        {"A": 3, "M": 8, "B": 4, "N": 40, "D": 24},
        {"A": 1, "M": 33, "B": 2, "N": 130, "D": 16},
        {"A": 2, "M": 5, "B": 300, "N": 3, "D": 8},
        {"dims": {"A": 2, "M": 20, "B": 3, "N": 70, "D": 136}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.max_sim", gradients="promised", accumulate="float32",
        preconditions=("of equal similarities the first counts in backward",),
    ),
    work=Work(bytes="(A*M*D + B*N*D)*itemsize + A*M + B*N + 4*A*B", flops="2*A*M*B*N*D"),
)  # fmt: skip
