"""Matrix transpose into a fresh contiguous tensor."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return x.t().contiguous()


TASK = Task(
    name="transpose",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16", "int32"))},
    outputs={"y": TensorSpec("N M")},
    dims={"M": Dim(0, 1 << 17), "N": Dim(0, 1 << 17)},
    workloads=[{"M": 128, "N": 128}, {"M": 96, "N": 128}, {"M": 50, "N": 70}],
    contract=Contract(identifier="transpose"),
    work=Work(bytes="2*M*N*itemsize"),
)
