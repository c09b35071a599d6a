"""Transpose of a float32 matrix, for kernels in C."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return x.t().contiguous()


TASK = Task(
    name="transpose_f32",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("N M")},
    dims={"M": Dim(0, 1 << 16), "N": Dim(0, 1 << 16)},
    workloads=[{"M": 64, "N": 96}, {"M": 30, "N": 45}],
    contract=Contract(identifier="transpose.f32"),
    work=Work(bytes="2*M*N*itemsize"),
)
