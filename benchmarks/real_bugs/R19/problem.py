"""The largest element of a vector of 16-bit integers."""

from tilewright.task import Contract, Dim, Task, TensorSpec, integers


def reference(x):
    return x.max()


TASK = Task(
    name="max_integers",
    reference=reference,
    inputs={"x": TensorSpec("N", dtypes=("int16", "int32", "int64"), values=integers(-30000, 30000))},
    dims={"N": Dim(1, 1 << 20)},
    workloads=[{"N": 100}, {"N": 4096}],
    contract=Contract(identifier="max_integers", layouts="excluded"),
)
