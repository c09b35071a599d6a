"""Head of a sparse retriever where many logits are equal: the first of them gets the gradient, as in ``torch.max``."""

from reference import sparse_retrieval_head

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers


def reference(x, weight, bias, mask):
    return sparse_retrieval_head(x, weight, bias, mask)


FLOATS = ("float32", "float16", "bfloat16")
FEW = integers(-2, 3)

TASK = Task(
    name="sparse_retrieval_head_ties",
    reference=reference,
    inputs={
        "x": TensorSpec("B S H", dtypes=FLOATS, values=FEW, requires_grad=True),
        "weight": TensorSpec("V H", dtypes=FLOATS, values=FEW, requires_grad=True),
        "bias": TensorSpec("V", dtypes=FLOATS, values=FEW, requires_grad=True),
        "mask": TensorSpec("B S", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"B": Dim(1, 1 << 14), "S": Dim(1, 1 << 13), "H": Dim(1, 8), "V": Dim(1, 1 << 18)},
    workloads=[{"B": 3, "S": 20, "H": 2, "V": 100}, {"B": 2, "S": 200, "H": 1, "V": 33}],
    contract=Contract(
        identifier="ops.sparse_retrieval_head.ties", gradients="promised", accumulate="float32",
        preconditions=("of equal logits the first position counts in backward",),
    ),
    work=Work(bytes="(B*S*H + V*H + V)*itemsize + B*S + 4*B*V", flops="2*B*S*H*V"),
)  # fmt: skip
