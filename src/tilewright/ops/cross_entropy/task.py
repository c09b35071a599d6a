"""Cross entropy of rows of logits: ignored targets, label smoothing, z-loss, soft caps, each reduction; with gradients."""

from reference import cross_entropy

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers


def reference(logits, target, ignore_index, label_smoothing, z_loss, softcap, reduction):
    return cross_entropy(logits, target, None, ignore_index, label_smoothing, z_loss, softcap, reduction)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="cross_entropy",
    reference=reference,
    inputs={
        "logits": TensorSpec("M V", dtypes=FLOATS, values=Values(std=3.0), requires_grad=True),
        "target": TensorSpec("M", dtypes=("int64",), values=integers(0, "V"), dtype_group="target"),
        "ignore_index": Scalar(-100, 0),
        "label_smoothing": Scalar(0.0, 0.125),
        "z_loss": Scalar(0.0, 0.0078125),
        "softcap": Scalar(0.0, 16.0),
        "reduction": Scalar("mean", "none", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 24, "V": 100},
        {"dims": {"M": 40, "V": 9}, "scalars": {"ignore_index": 0, "label_smoothing": 0.125, "z_loss": 0.0078125}},
        {"dims": {"M": 3, "V": 33000}, "scalars": {"reduction": "none", "softcap": 16.0, "label_smoothing": 0.125}},
    ],
    contract=Contract(
        identifier="ops.cross_entropy",
        gradients="promised",
        accumulate="float32",
        preconditions=("targets are classes or ignore_index; another one gives NaN",),
    ),
    work=Work(bytes="M*V*itemsize + 8*M", flops="5*M*V"),
)
