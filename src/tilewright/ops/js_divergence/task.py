"""Jensen-Shannon divergence of log-probabilities: a weight beta, a temperature, each reduction; with gradients."""

from reference import js_divergence

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work

FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="js_divergence",
    reference=js_divergence,
    inputs={
        "x": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="log_probabilities"), requires_grad=True),
        "target": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="log_probabilities"), requires_grad=True),
        "log_target": Scalar(True),
        "beta": Scalar(0.5, 0.125),
        "temperature": Scalar(None, 2.0),
        "reduction": Scalar("batchmean", "none", "mean", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 20, "V": 100},
        {"dims": {"M": 5, "V": 33}, "scalars": {"temperature": 2.0, "reduction": "none", "beta": 0.125}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0, "reduction": "none"}},
    ],
    contract=Contract(
        identifier="ops.js_divergence", gradients="promised", accumulate="float32",
        preconditions=("where a distribution gives probability 0 it adds nothing",),
    ),
    work=Work(bytes="2*M*V*itemsize", flops="14*M*V"),
)  # fmt: skip
