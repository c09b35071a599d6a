"""The task of the study: one pass over memory, of a size that a call takes some ten microseconds."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work

TASK = Task(
    name="null_study",
    reference=lambda x: x * 2 + 1,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 4096), "N": Dim(1, 8192)},
    workloads=[
        *({"M": 128, "N": 500}, {"M": 100, "N": 999}, {"M": 31, "N": 2500}),
        *({"M": 4096, "N": 4096}, {"M": 2000, "N": 8000}),  # on a GPU
    ],
    contract=Contract(identifier="null_study"),
    work=Work(bytes="2*M*N*itemsize", flops="2*M*N"),
)
