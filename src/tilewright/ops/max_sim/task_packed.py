"""Late interaction of packed queries with packed documents; with gradients."""

from reference import max_sim_packed

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(q, d, cu_q, cu_d):
    return max_sim_packed(q, d, cu_q, cu_d)


FLOATS = ("float32", "float16", "bfloat16")


def offsets(shape, total):
    """Ascending, from 0 to the number of tokens."""
    values = Values(kind="sorted", low=0, high=total)
    return TensorSpec(shape, dtypes=("int32",), values=values, dtype_group="offsets")


TASK = Task(
    name="max_sim_packed",
    reference=reference,
    inputs={
        "q": TensorSpec("S D", dtypes=FLOATS, requires_grad=True),
        "d": TensorSpec("T D", dtypes=FLOATS, requires_grad=True),
        "cu_q": offsets("A", "S"),
        "cu_d": offsets("B", "T"),
    },
    dims={"S": Dim(1, 1 << 20), "T": Dim(1, 1 << 24), "A": Dim(2, 1 << 12), "B": Dim(2, 1 << 17), "D": Dim(1, 1 << 12)},
    workloads=[
        {"S": 20, "T": 90, "A": 4, "B": 5, "D": 24},
        {"S": 70, "T": 150, "A": 2, "B": 2, "D": 16},
    ],
    contract=Contract(
        identifier="ops.max_sim_packed", gradients="promised", accumulate="float32",
        preconditions=("cu_q and cu_d ascend from 0 to the number of tokens",
                       "of equal similarities the first counts in backward"),
    ),
    work=Work(bytes="(S + T)*D*itemsize + 4*(A + B) + 4*(A - 1)*(B - 1)", flops="2*S*T*D"),
)  # fmt: skip
