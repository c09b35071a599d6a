"""x = alpha * x + y, in place in x by contract."""

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, y, alpha):
    return x.mul_(alpha).add_(y)


TASK = Task(
    name="scale_add_in_place",
    reference=reference,
    inputs={"x": TensorSpec("N", mutated=True), "y": TensorSpec("N"), "alpha": Scalar(0.5, 2.0)},
    dims={"N": Dim(1, 1 << 26)},
    workloads=[{"N": 4096}, {"N": 1001}],
    contract=Contract(
        identifier="scale_add", aliasing="allowed", layouts="excluded", special_values="excluded"
    ),
    work=Work(bytes="3*N*itemsize", flops="2*N"),
)
