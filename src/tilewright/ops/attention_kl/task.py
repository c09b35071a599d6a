"""Divergence of two attention distributions: grouped heads, two head dims, causal or not, each divergence and reduction."""

from reference import attention_kl

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Tolerance, Work


def reference(teacher_q, teacher_k, q, k, key_mask, query_mask, teacher_scale, scale, causal, divergence, reduction):
    options = (teacher_scale, scale, causal, divergence, reduction)
    return attention_kl(teacher_q, teacher_k, q, k, None, None, *options)


FLOATS = ("float32", "float16", "bfloat16")


def side(shape):
    return TensorSpec(shape, dtypes=FLOATS, requires_grad=True)


TASK = Task(
    name="attention_kl",
    reference=reference,
    inputs={
        "teacher_q": side("B G*R N T"),
        "teacher_k": side("B G M T"),
        "q": side("B G*R N D"),
        "k": side("B G M D"),
        "key_mask": Scalar(None),
        "query_mask": Scalar(None),
        "teacher_scale": Scalar(None, 0.25),
        "scale": Scalar(None),
        "causal": Scalar(False, True),
        "divergence": Scalar("forward", "reverse", "js"),
        "reduction": Scalar("none", "mean", "sum"),
    },
    dims={"B": Dim(0, 1 << 8), "G": Dim(1, 1 << 6), "R": Dim(1, 1 << 4), "N": Dim(0, 1 << 17), "M": Dim(0, 1 << 17),
          "T": Dim(1, 256), "D": Dim(1, 256)},
    workloads=[
        {"B": 1, "G": 2, "R": 2, "N": 20, "M": 40, "T": 24, "D": 16},
        {"dims": {"B": 1, "G": 1, "R": 2, "N": 40, "M": 40, "T": 8, "D": 16}, "scalars": {"causal": True}},
        {"dims": {"B": 1, "G": 1, "R": 1, "N": 70, "M": 70, "T": 8, "D": 8},
         "scalars": {"causal": True, "divergence": "js"}},
        {"dims": {"B": 1, "G": 1, "R": 2, "N": 20, "M": 75, "T": 16, "D": 8}, "scalars": {"divergence": "reverse"},
         "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.attention_kl", gradients="promised", accumulate="float32",
        # A divergence is a difference of logarithms: what is left of equal ones has their rounding.
        tolerance=Tolerance(atol=2.0**-20),
        preconditions=("a query that sees no key gives 0",),
    ),
    work=Work(bytes="B*G*(R*N + M)*(T + D)*itemsize + 4*B*G*R*N", flops="2*B*G*R*N*M*(T + D)"),
)  # fmt: skip
