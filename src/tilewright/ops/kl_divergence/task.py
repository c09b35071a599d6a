"""KL divergence of log-probabilities from targets: log targets or not, a temperature, each reduction; with gradients."""

from reference import kl_divergence

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work

FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="kl_divergence",
    reference=kl_divergence,
    inputs={
        "x": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="log_probabilities"), requires_grad=True),
        "target": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="log_probabilities"), requires_grad=True),
        "log_target": Scalar(True),
        "temperature": Scalar(None, 2.0),
        "reduction": Scalar("batchmean", "none", "mean", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 20, "V": 100},
        {"dims": {"M": 5, "V": 33}, "scalars": {"temperature": 2.0, "reduction": "none"}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0, "reduction": "none"}},
    ],
    contract=Contract(
        identifier="ops.kl_divergence", gradients="promised", accumulate="float32",
        preconditions=("a term whose target has probability 0 is 0, whatever the input",),
    ),
    work=Work(bytes="2*M*V*itemsize", flops="6*M*V"),
)  # fmt: skip
