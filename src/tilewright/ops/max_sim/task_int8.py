"""Late interaction with documents of int8, a scale for each token, and masks on both sides; with the query's gradient."""

from reference import max_sim_int8

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers, uniform


def reference(q, d, scale, q_mask, d_mask):
    return max_sim_int8(q, d, scale, q_mask, d_mask)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="max_sim_int8",
    reference=reference,
    inputs={
        "q": TensorSpec("A M D", dtypes=FLOATS, requires_grad=True),
        "d": TensorSpec("B N D", dtypes=("int8",), values=integers(-127, 128), dtype_group="codes"),
        "scale": TensorSpec("B N", dtypes=("float32",), values=uniform(0.001, 0.1), dtype_group="scale"),
        "q_mask": TensorSpec("A M", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
        "d_mask": TensorSpec("B N", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"A": Dim(0, 1 << 12), "M": Dim(0, 1 << 13), "B": Dim(0, 1 << 17), "N": Dim(0, 1 << 13), "D": Dim(1, 1 << 12)},
    workloads=[
        {"A": 3, "M": 8, "B": 4, "N": 40, "D": 24},
        {"dims": {"A": 2, "M": 20, "B": 3, "N": 70, "D": 136}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.max_sim_int8", gradients="promised", accumulate="float32",
        preconditions=("of equal similarities the first counts in backward",),
    ),
    work=Work(bytes="A*M*D*itemsize + B*N*(D + 4) + A*M + B*N + 4*A*B", flops="2*A*M*B*N*D"),
)  # fmt: skip
