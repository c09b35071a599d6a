"""Rotary embedding of q and k: halves or interleaved pairs, a part of the dims, positions, grouped heads; with gradients."""

from reference import rope

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers

FLOATS = ("float32", "float16", "bfloat16")
TABLE = Values(kind="uniform", low=-1.0, high=1.0)

TASK = Task(
    name="rope",
    reference=rope,
    inputs={
        "q": TensorSpec(("B", "H", "S", "2*R+T"), dtypes=FLOATS, requires_grad=True),
        "k": TensorSpec(("B", "G", "S", "2*R+T"), dtypes=FLOATS, requires_grad=True),
        "cos": TensorSpec("P R", values=TABLE, dtype_group="table"),
        "sin": TensorSpec("P R", values=TABLE, dtype_group="table"),
        "positions": TensorSpec("B S", dtypes=("int64",), values=integers(0, "P"), dtype_group="index"),
        "interleaved": Scalar(False, True),
    },
    dims={
        "B": Dim(0, 1 << 16), "H": Dim(1, 128), "G": Dim(1, 128), "S": Dim(0, 1 << 20), "R": Dim(1, 256),
        "T": Dim(0, 512), "P": Dim(1, 1 << 20),
    },
    workloads=[
        {"B": 2, "H": 4, "G": 2, "S": 9, "R": 16, "T": 0, "P": 40},
        {"B": 1, "H": 3, "G": 1, "S": 17, "R": 20, "T": 24, "P": 20},
        {"dims": {"B": 1, "H": 2, "G": 2, "S": 5, "R": 12, "T": 8, "P": 8}, "scalars": {"interleaved": True}},
    ],
    contract=Contract(
        identifier="ops.rope", gradients="promised", batch_invariant=("B",),
        preconditions=("positions lie in the table; another one gives NaN",),
    ),
    work=Work(bytes="2*B*S*(H+G)*(2*R+T)*itemsize", flops="6*B*S*(H+G)*R"),
)  # fmt: skip
