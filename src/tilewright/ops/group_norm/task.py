"""Group norm with weight and bias over groups of any size; with gradients."""

from reference import group_norm

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, groups, weight, bias, eps=1e-5):
    return group_norm(x, groups, weight, bias, eps)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="group_norm",
    reference=reference,
    inputs={
        "x": TensorSpec("N 4*K S", dtypes=FLOATS, requires_grad=True),
        "groups": Scalar(4, 1, 2),
        "weight": TensorSpec("4*K", dtypes=FLOATS, requires_grad=True),
        "bias": TensorSpec("4*K", dtypes=FLOATS, requires_grad=True),
        "eps": Scalar(1e-5, 1e-2),
    },
    outputs={"y": TensorSpec("N 4*K S", dtypes=FLOATS)},
    dims={"N": Dim(0, 1 << 16), "K": Dim(1, 1 << 12), "S": Dim(1, 1 << 20)},
    workloads=[
        {"N": 2, "K": 3, "S": 64},
        {"dims": {"N": 3, "K": 5, "S": 17}, "scalars": {"groups": 1, "eps": 1e-2}},
        {"dims": {"N": 1, "K": 2, "S": 5000}, "scalars": {"groups": 2}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.group_norm", gradients="promised", accumulate="float32", batch_invariant=("N",),
    ),
    work=Work(bytes="(2*N*4*K*S+8*K)*itemsize", flops="6*N*4*K*S"),
)  # fmt: skip
