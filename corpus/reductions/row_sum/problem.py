"""Sum of each row; the sum of a row does not depend on how many rows there are."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return x.sum(dim=-1)


TASK = Task(
    name="row_sum",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16"))},
    outputs={"y": TensorSpec("M", dtypes=("float32", "float16"))},
    dims={"M": Dim(0, 65536), "N": Dim(0, 262144)},
    workloads=[{"M": 16, "N": 512}, {"M": 3, "N": 1000}, {"M": 1, "N": 4097}],
    contract=Contract(identifier="sum.last", layouts="promised", empty="promised", special_values="promised",
                      batch_invariant=("M",), accumulate="float32"),
    work=Work(bytes="(M*N+M)*itemsize", flops="M*N"),
)
