"""Late interaction of each query with the document of the same number, with masks; with gradients."""

from reference import max_sim_pairs

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(q, d, q_mask, d_mask):
    return max_sim_pairs(q, d, q_mask, d_mask)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="max_sim_pairs",
    reference=reference,
    inputs={
        "q": TensorSpec("B M D", dtypes=FLOATS, requires_grad=True),
        "d": TensorSpec("B N D", dtypes=FLOATS, requires_grad=True),
        "q_mask": TensorSpec("B M", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
        "d_mask": TensorSpec("B N", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"B": Dim(0, 1 << 17), "M": Dim(0, 1 << 13), "N": Dim(0, 1 << 13), "D": Dim(1, 1 << 12)},
    workloads=[{"B": 3, "M": 8, "N": 40, "D": 24}, {"B": 2, "M": 70, "N": 130, "D": 16}],
    contract=Contract(
        identifier="ops.max_sim_pairs", gradients="promised", accumulate="float32",
        preconditions=("of equal similarities the first counts in backward",),
    ),
    work=Work(bytes="B*(M + N)*D*itemsize + B*(M + N) + 4*B", flops="2*B*M*N*D"),
)  # fmt: skip
