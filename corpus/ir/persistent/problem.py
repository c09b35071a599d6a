"""x = alpha * x, in place by contract, for vectors up to 64 million elements."""

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec


def reference(x, alpha):
    return x.mul_(alpha)


TASK = Task(
    name="scale in place",
    reference=reference,
    inputs={"x": TensorSpec("N", mutated=True), "alpha": Scalar(0.5, 2.0)},
    dims={"N": Dim(1, 1 << 26)},
    workloads=[{"N": 4096}, {"N": 1001}],
    contract=Contract(identifier="ir.scale_in_place", aliasing="allowed", layouts="excluded"),
)
