"""Head of a sparse retriever: linear layer with bias, ReLU, log(1 + x), masked maximum over positions; with gradients."""

from reference import sparse_retrieval_head

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(x, weight, bias, mask):
    return sparse_retrieval_head(x, weight, bias, mask)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="sparse_retrieval_head",
    reference=reference,
    inputs={
        "x": TensorSpec("B S H", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("V H", dtypes=FLOATS, values=Values(std=0.25), requires_grad=True),
        "bias": TensorSpec("V", dtypes=FLOATS, requires_grad=True),
        "mask": TensorSpec("B S", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"B": Dim(0, 1 << 14), "S": Dim(0, 1 << 13), "H": Dim(1, 1 << 13), "V": Dim(0, 1 << 18)},
    workloads=[
        {"B": 3, "S": 20, "H": 24, "V": 100},
        {"B": 2, "S": 150, "H": 16, "V": 33},
        {"dims": {"B": 2, "S": 30, "H": 136, "V": 70}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.sparse_retrieval_head", gradients="promised", accumulate="float32",
        preconditions=("of equal logits the first position counts in backward",),
    ),
    work=Work(bytes="(B*S*H + V*H + V)*itemsize + B*S + 4*B*V", flops="2*B*S*H*V"),
)  # fmt: skip
