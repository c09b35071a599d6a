"""Group norm without weight and bias; with gradients."""

from reference import group_norm

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, groups, eps=1e-5):
    return group_norm(x, groups, None, None, eps)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="group_norm_plain",
    reference=reference,
    inputs={
        "x": TensorSpec("N 4*K S", dtypes=FLOATS, requires_grad=True),
        "groups": Scalar(4, 1, 2),
        "eps": Scalar(1e-5, 1e-2),
    },
    outputs={"y": TensorSpec("N 4*K S", dtypes=FLOATS)},
    dims={"N": Dim(0, 1 << 16), "K": Dim(1, 1 << 12), "S": Dim(1, 1 << 20)},
    workloads=[
        {"N": 2, "K": 3, "S": 64},
        {"dims": {"N": 1, "K": 2, "S": 5000}, "scalars": {"groups": 1, "eps": 1e-2}},
    ],
    contract=Contract(
        identifier="ops.group_norm.plain", gradients="promised", accumulate="float32", batch_invariant=("N",),
    ),
    work=Work(bytes="2*N*4*K*S*itemsize", flops="5*N*4*K*S"),
)  # fmt: skip
