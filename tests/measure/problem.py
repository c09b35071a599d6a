"""y = 2x + 1, small enough to be timed on a busy machine."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work

TASK = Task(
    name="double_and_one",
    reference=lambda x: x * 2 + 1,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 4096), "N": Dim(0, 4096)},
    workloads=[{"M": 32, "N": 200}],
    contract=Contract(identifier="double_and_one"),
    work=Work(bytes="2*M*N*itemsize", flops="2*M*N"),
)
