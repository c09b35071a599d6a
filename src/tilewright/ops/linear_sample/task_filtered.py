"""One sample a row from what top-k, top-p and min-p leave of the softmax of a linear layer."""

from reference import linear_sample

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers


def reference(x, weight, seed, temperature, top_k, top_p, min_p):
    return linear_sample(x, weight, seed, None, temperature, top_k, top_p, min_p)


FLOATS = ("float32", "float16", "bfloat16")


def a_row(low, high):
    return TensorSpec("M", dtypes=("float32",), values=Values(kind="uniform", low=low, high=high), dtype_group="rows")


TASK = Task(
    name="linear_sample_filtered",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", dtypes=FLOATS),
        "weight": TensorSpec("V K", dtypes=FLOATS, values=Values(std=0.25)),
        "seed": TensorSpec("M", dtypes=("int64",), values=integers(0, 1 << 62), dtype_group="seed"),
        "temperature": a_row(0.25, 2.0),
        "top_k": TensorSpec("M", dtypes=("int64",), values=integers(0, 60), dtype_group="top_k"),
        "top_p": a_row(0.3, 1.2),
        "min_p": a_row(0.0, 0.4),
    },
    dims={"M": Dim(0, 1 << 16), "K": Dim(1, 1 << 14), "V": Dim(1, 1 << 20)},
    workloads=[{"M": 5, "K": 40, "V": 300}, {"dims": {"M": 70, "K": 24, "V": 77}, "dtype": "bfloat16"}],
    contract=Contract(
        identifier="ops.linear_sample.filtered", batch_invariant=("M",), accumulate="float32",
        preconditions=("of equal scores the first entry wins; logits equal to the smallest one kept are all kept",
                       "where the largest logit of a row is no number or infinite, it alone is kept"),
    ),
    work=Work(bytes="(M*K + V*K)*itemsize + 32*M", flops="2*M*K*V"),
)  # fmt: skip
