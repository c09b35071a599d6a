"""Squared ReLU; with gradients."""

from reference import relu_squared

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return relu_squared(x)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="relu_squared",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True)},
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(0, 1 << 20)},
    workloads=[{"M": 16, "N": 128}, {"M": 5, "N": 257}, {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16"}],
    contract=Contract(identifier="ops.relu_squared", gradients="promised", batch_invariant=("M",)),
    work=Work(bytes="2*M*N*itemsize", flops="3*M*N"),
)
