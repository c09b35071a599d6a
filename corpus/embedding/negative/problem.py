"""Row gather with Python's rule for negative indices: -1 is the last row."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, integers


def reference(table, index):
    return table[index]


TASK = Task(
    name="gather_rows",
    reference=reference,
    inputs={
        "table": TensorSpec("V D", dtypes=("float32", "float16")),
        "index": TensorSpec("T", dtypes=("int64",), values=integers("-V", "V"), dtype_group="index"),
    },
    outputs={"rows": TensorSpec("T D")},
    dims={"T": Dim(0, 1 << 16), "V": Dim(1, 1 << 14), "D": Dim(1, 4096)},
    workloads=[{"T": 50, "V": 40, "D": 64}],
    contract=Contract(identifier="gather.negative", batch_invariant=("T",)),
    work=Work(bytes="2*T*D*itemsize+8*T"),
)
