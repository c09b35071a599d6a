"""The doubly stochastic matrix ``diag(a) exp(x) diag(b)``, with the gradient of the solution."""

from reference import converged

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return converged(x)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="birkhoff",
    reference=reference,
    inputs={"x": TensorSpec("B N N", dtypes=FLOATS, requires_grad=True)},
    outputs={"y": TensorSpec("B N N", dtypes=FLOATS)},
    dims={"B": Dim(0, 1 << 24), "N": Dim(2, 8)},
    workloads=[{"B": 40, "N": 4}, {"B": 131, "N": 3}, {"dims": {"B": 9, "N": 8}, "dtype": "bfloat16"}],
    contract=Contract(
        identifier="ops.birkhoff.converged", gradients="promised", batch_invariant=("B",), accumulate="float32",
        preconditions=("a matrix with an entry that is not finite gives NaN",),
    ),
    work=Work(bytes="2*B*N*N*itemsize", flops="1000*B*N*N"),
)  # fmt: skip
