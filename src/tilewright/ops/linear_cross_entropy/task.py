"""Linear layer with bias and cross entropy of its logits: every option, each reduction; with gradients."""

from reference import linear_cross_entropy

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers


def reference(x, weight, target, bias, ignore_index, label_smoothing, z_loss, softcap, reduction):
    options = (ignore_index, label_smoothing, z_loss, softcap, reduction)
    return linear_cross_entropy(x, weight, target, bias, None, *options)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="linear_cross_entropy",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("V K", dtypes=FLOATS, values=Values(std=0.25), requires_grad=True),
        "target": TensorSpec("M", dtypes=("int64",), values=integers(0, "V"), dtype_group="target"),
        "bias": TensorSpec("V", dtypes=FLOATS, requires_grad=True),
        "ignore_index": Scalar(-100, 0),
        "label_smoothing": Scalar(0.0, 0.125),
        "z_loss": Scalar(0.0, 0.0078125),
        "softcap": Scalar(0.0, 16.0),
        "reduction": Scalar("mean", "none", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "K": Dim(1, 1 << 14), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 12, "K": 24, "V": 50},
        {"dims": {"M": 300, "K": 8, "V": 9}, "scalars": {"ignore_index": 0, "label_smoothing": 0.125}},
        {"dims": {"M": 300, "K": 8, "V": 9}, "scalars": {"reduction": "none", "z_loss": 0.0078125}},
        {"dims": {"M": 300, "K": 4, "V": 700}},
    ],
    contract=Contract(
        identifier="ops.linear_cross_entropy", gradients="promised", accumulate="float32",
        preconditions=("targets are classes or ignore_index; another one gives NaN",),
    ),
    work=Work(bytes="(M*K + V*K + V)*itemsize + 8*M", flops="2*M*K*V"),
)  # fmt: skip
