"""Cross entropy of sequences of logits with class weights; a loss for each token, which does not depend on others."""

from reference import cross_entropy

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers

FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="cross_entropy_weighted",
    reference=cross_entropy,
    inputs={
        "logits": TensorSpec("B T V", dtypes=FLOATS, values=Values(std=3.0), requires_grad=True),
        "target": TensorSpec("B T", dtypes=("int64",), values=integers(0, "V"), dtype_group="target"),
        "weight": TensorSpec("V", dtypes=("float32",), values=Values(kind="uniform", low=0.25, high=2.0),
                             dtype_group="weight"),
        "ignore_index": Scalar(-100, 0),
        "label_smoothing": Scalar(0.0, 0.125),
        "z_loss": Scalar(0.0, 0.0078125),
        "softcap": Scalar(0.0, 16.0),
        "reduction": Scalar("none", "mean", "sum"),
    },
    dims={"B": Dim(0, 1 << 14), "T": Dim(0, 1 << 17), "V": Dim(1, 1 << 18)},
    workloads=[
        {"B": 3, "T": 8, "V": 100},
        {"dims": {"B": 2, "T": 20, "V": 9}, "scalars": {"reduction": "mean", "label_smoothing": 0.125, "ignore_index": 0}},
        {"dims": {"B": 1, "T": 3, "V": 33000}, "scalars": {"label_smoothing": 0.125, "z_loss": 0.0078125}},
    ],
    contract=Contract(
        identifier="ops.cross_entropy.weighted", gradients="promised", accumulate="float32", batch_invariant=("B",),
        preconditions=("targets are classes or ignore_index; another one gives NaN",),
    ),
    work=Work(bytes="B*T*V*itemsize + 12*B*T + 4*V", flops="6*B*T*V"),
)  # fmt: skip
