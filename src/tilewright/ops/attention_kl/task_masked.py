"""Divergence of two attention distributions with masks of keys and of queries."""

from reference import attention_kl

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Tolerance, Values, Work


def reference(teacher_q, teacher_k, q, k, key_mask, query_mask, teacher_scale, scale, causal, divergence, reduction):
    options = (teacher_scale, scale, causal, divergence, reduction)
    return attention_kl(teacher_q, teacher_k, q, k, key_mask, query_mask, *options)


FLOATS = ("float32", "float16", "bfloat16")


def side(shape):
    return TensorSpec(shape, dtypes=FLOATS, requires_grad=True)


def mask(shape):
    return TensorSpec(shape, dtypes=("bool",), values=Values(kind="bool", p=0.7), dtype_group="mask")


TASK = Task(
    name="attention_kl_masked",
    reference=reference,
    inputs={
        "teacher_q": side("B H N D"),
        "teacher_k": side("B G M D"),
        "q": side("B H N D"),
        "k": side("B H M D"),
        "key_mask": mask("B M"),
        "query_mask": mask("B N"),
        "teacher_scale": Scalar(None),
        "scale": Scalar(None, 0.5),
        "causal": Scalar(False, True),
        "divergence": Scalar("forward", "js"),
        "reduction": Scalar("sum", "none"),
    },
    dims={"B": Dim(0, 1 << 8), "H": Dim(1, 1 << 6), "G": Dim(1, 1 << 6), "N": Dim(0, 1 << 17), "M": Dim(0, 1 << 17),
          "D": Dim(1, 256)},
    constraints=["H % G == 0"],
    workloads=[
        {"B": 2, "H": 2, "G": 1, "N": 20, "M": 40, "D": 24},
        {"dims": {"B": 1, "H": 2, "G": 2, "N": 40, "M": 40, "D": 8}, "scalars": {"causal": True, "reduction": "none"}},
    ],
    contract=Contract(
        identifier="ops.attention_kl.masked", gradients="promised", accumulate="float32",
        # A divergence is a difference of logarithms: what is left of equal ones has their rounding.
        tolerance=Tolerance(atol=2.0**-20),
        preconditions=("a query that is masked or sees no key gives 0",),
    ),
    work=Work(bytes="B*((2*H*N + H*M + G*M)*D*itemsize + M + N + 4*H*N)", flops="4*B*H*N*M*D"),
)  # fmt: skip
