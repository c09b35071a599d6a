"""One sample a row from the softmax of a linear layer at a temperature a row: token, log-probability, score, normaliser."""

from reference import linear_sample_shard

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers


def reference(x, weight, seed, temperature):
    return linear_sample_shard(x, weight, seed, None, temperature)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="linear_sample",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", dtypes=FLOATS),
        "weight": TensorSpec("V K", dtypes=FLOATS, values=Values(std=0.25)),
        "seed": TensorSpec("M", dtypes=("int64",), values=integers(0, 1 << 62), dtype_group="seed"),
        "temperature": TensorSpec("M", dtypes=("float32",), values=Values(kind="uniform", low=0.25, high=2.0),
                                  dtype_group="rows"),
    },
    dims={"M": Dim(0, 1 << 16), "K": Dim(1, 1 << 14), "V": Dim(1, 1 << 20)},
    workloads=[{"M": 5, "K": 40, "V": 300}, {"dims": {"M": 70, "K": 24, "V": 77}, "dtype": "bfloat16"}],
    contract=Contract(
        identifier="ops.linear_sample", batch_invariant=("M",), accumulate="float32",
        preconditions=("of equal scores the first entry wins; a score that is no number wins over all",),
    ),
    work=Work(bytes="(M*K + V*K)*itemsize + 32*M", flops="2*M*K*V"),
)  # fmt: skip
