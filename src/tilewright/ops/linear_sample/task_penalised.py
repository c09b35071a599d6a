"""Several samples a row from the softmax of a linear layer, with bias, penalties for what was seen, and a mask."""

from reference import linear_sample

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers


def reference(x, weight, seed, bias, temperature, counts, repetition, frequency, presence, allowed, samples):
    return linear_sample(
        x, weight, seed, bias, temperature, None, None, None, counts, repetition, frequency, presence, allowed, samples
    )


FLOATS = ("float32", "float16", "bfloat16")


def a_row(low, high):
    return TensorSpec("M", dtypes=("float32",), values=Values(kind="uniform", low=low, high=high), dtype_group="rows")


TASK = Task(
    name="linear_sample_penalised",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", dtypes=FLOATS),
        "weight": TensorSpec("V K", dtypes=FLOATS, values=Values(std=0.25)),
        "seed": TensorSpec("M", dtypes=("int64",), values=integers(0, 1 << 62), dtype_group="seed"),
        "bias": TensorSpec("V", dtypes=FLOATS),
        "temperature": a_row(0.25, 2.0),
        "counts": TensorSpec("M V", dtypes=("int32",), values=integers(0, 3), dtype_group="counts"),
        "repetition": a_row(0.5, 2.0),
        "frequency": a_row(-1.0, 2.0),
        "presence": a_row(-1.0, 2.0),
        "allowed": TensorSpec("M V", dtypes=("bool",), values=Values(kind="bool", p=0.7), dtype_group="allowed"),
        "samples": Scalar(3, 1),
    },
    dims={"M": Dim(0, 1 << 14), "K": Dim(1, 1 << 14), "V": Dim(1, 1 << 20)},
    workloads=[{"M": 5, "K": 40, "V": 300}, {"dims": {"M": 70, "K": 24, "V": 77}, "dtype": "bfloat16"}],
    contract=Contract(
        identifier="ops.linear_sample.penalised", batch_invariant=("M",), accumulate="float32",
        preconditions=("of equal scores the first entry wins; where nothing is allowed the index is -1",),
    ),
    work=Work(bytes="(M*K + V*K + V)*itemsize + 5*M*V + 64*M", flops="2*M*K*V"),
)  # fmt: skip
