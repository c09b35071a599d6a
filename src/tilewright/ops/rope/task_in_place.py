"""Rotary embedding of q and k in place by contract; dims beyond the rotary ones keep their bits."""

from reference import rope

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers


def reference(q, k, cos, sin, positions, interleaved):
    for x, y in zip((q, k), rope(q, k, cos, sin, positions, interleaved), strict=True):
        x.copy_(y)
    return q, k


FLOATS = ("float32", "float16", "bfloat16")
TABLE = Values(kind="uniform", low=-1.0, high=1.0)

TASK = Task(
    name="rope_in_place",
    reference=reference,
    inputs={
        "q": TensorSpec(("B", "H", "S", "2*R+T"), dtypes=FLOATS, mutated=True),
        "k": TensorSpec(("B", "G", "S", "2*R+T"), dtypes=FLOATS, mutated=True),
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
        {"B": 2, "H": 4, "G": 2, "S": 9, "R": 16, "T": 8, "P": 40},
        {"dims": {"B": 1, "H": 2, "G": 2, "S": 5, "R": 12, "T": 0, "P": 8}, "scalars": {"interleaved": True}},
    ],
    contract=Contract(
        identifier="ops.rope.in_place", aliasing="allowed", batch_invariant=("B",),
        preconditions=("positions lie in the table", "no two elements of q or of k share memory"),
    ),
    work=Work(bytes="2*B*S*(H+G)*2*R*itemsize", flops="6*B*S*(H+G)*R"),
)  # fmt: skip
