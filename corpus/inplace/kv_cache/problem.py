"""Writes new rows into a cache at given slots, in place; a slot of -1 means: drop this row."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(cache, new, slots):
    keep = slots >= 0
    cache[slots[keep]] = new[keep]
    return cache


def some_slots(dims, seed):
    """Distinct slots, about one in four of them -1."""
    g = torch.Generator().manual_seed(seed)
    slots = torch.randperm(dims["S"], generator=g)[: dims["T"]]
    drop = torch.rand(dims["T"], generator=g) < 0.25
    return torch.where(drop, torch.full_like(slots, -1), slots)


TASK = Task(
    name="kv_cache_write",
    reference=reference,
    inputs={
        "cache": TensorSpec("S D", mutated=True),
        "new": TensorSpec("T D"),
        "slots": TensorSpec(
            "T", dtypes=("int64",), dtype_group="index", values=Values(kind="custom", generator="some_slots")
        ),
    },
    dims={"S": Dim(1, 1 << 16), "T": Dim(1, 1 << 14), "D": Dim(1, 1024)},
    constraints=("T <= S",),
    workloads=[{"S": 64, "T": 24, "D": 64}, {"S": 30, "T": 30, "D": 20}],
    contract=Contract(identifier="kv_cache", aliasing="allowed", layouts="excluded", special_values="excluded"),
    generators={"some_slots": some_slots},
    work=Work(bytes="2*T*D*itemsize+8*T"),
)
