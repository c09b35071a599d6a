"""Rotary embedding of q and k with a line of angles for each token of each sequence, as models pass them."""

from reference import rope

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def reference(q, k, cos, sin, interleaved):
    return rope(q, k, cos, sin, None, interleaved)


FLOATS = ("float32", "float16", "bfloat16")
TABLE = Values(kind="uniform", low=-1.0, high=1.0)

TASK = Task(
    name="rope_tables",
    reference=reference,
    inputs={
        "q": TensorSpec(("B", "H", "S", "2*R+T"), dtypes=FLOATS, requires_grad=True),
        "k": TensorSpec(("B", "G", "S", "2*R+T"), dtypes=FLOATS, requires_grad=True),
        "cos": TensorSpec("B S R", dtypes=FLOATS, values=TABLE),
        "sin": TensorSpec("B S R", dtypes=FLOATS, values=TABLE),
        "interleaved": Scalar(False, True),
    },
    dims={
        "B": Dim(0, 1 << 16), "H": Dim(1, 128), "G": Dim(1, 128), "S": Dim(0, 1 << 20), "R": Dim(1, 256),
        "T": Dim(0, 512),
    },
    workloads=[
        {"B": 2, "H": 4, "G": 2, "S": 9, "R": 16, "T": 0},
        {"dims": {"B": 3, "H": 3, "G": 1, "S": 7, "R": 12, "T": 8}, "scalars": {"interleaved": True}},
    ],
    contract=Contract(identifier="ops.rope.tables", gradients="promised", batch_invariant=("B",)),
    work=Work(bytes="2*B*S*(H+G)*(2*R+T)*itemsize", flops="6*B*S*(H+G)*R"),
)  # fmt: skip
