"""What ``explain`` tells, as data. Bytes are bytes, operations floating-point operations, seconds seconds."""

from __future__ import annotations

from ..task.tensors import Model


class Access(Model):
    """One load, store or atomic of the source. ``bytes``: asked for by the whole launch, before caches; ``masked``: the
    share of lanes that a mask switched off; ``width``: bytes that a thread moves at once (0: not known); ``used``: the
    share of the fetched 32-byte sectors that a program uses (None: not known); ``step``: elements between neighbours;
    ``repeats``: how often each element of the tensor is loaded or stored here."""

    where: str
    kind: str
    argument: str
    dtype: str
    bytes: int
    masked: float
    width: int = 0
    used: float | None = None
    step: int = 0
    repeats: float = 0.0


class TorchOp(Model):
    """A torch operation of one line, ``times`` run. ``read`` and ``written``: bytes of its tensors, each once; ``flops``
    by the sizes of its tensors (a matrix product's; else a few an element)."""

    name: str
    where: str
    shape: str
    dtype: str
    times: int
    read: int
    written: int
    flops: int


class Intermediate(Model):
    """A tensor that one step leaves in memory for another: ``made`` by, ``read`` by."""

    bytes: int
    shape: str
    dtype: str
    made: str
    read: tuple[str, ...]


class Launch(Model):
    """One launch. ``occupancy``: share of a multiprocessor's warps that can be resident, ``limited_by`` what bounds it;
    ``waves``: how often the grid fills the card; ``obstacles``: what stands in the way, most costly first."""

    function: str
    where: str
    grid: tuple[int, ...]
    programs: int
    read: int
    written: int
    dot_flops: int
    tensor_cores: tuple[str, ...]
    registers: int = 0
    spills: int = 0
    shared: int = 0
    warps: int = 0
    stages: int = 0
    occupancy: float = 0.0
    limited_by: str = ""
    waves: float = 0.0
    accesses: tuple[Access, ...] = ()
    rounding: str = ""
    obstacles: tuple[str, ...] = ()
    note: str = ""


class Explained(Model):
    """A kernel before a task at one size. ``compulsory``: bytes that any kernel must move (the task's own word, or
    inputs once and outputs once); ``flops``: the task's word, or those of the kernel's dots; ``intensity``: flops a
    byte; ``ridge``: where the card's memory and tensor cores balance; ``floor``: seconds by the tighter of both;
    ``operations``: torch's, beside the launches or instead of them; ``intermediates``: what steps leave in memory for
    each other; ``formula``: one element of the result in words, ``formula_read``: the sizes at which it was read off."""

    kernel: str
    task: str
    dims: dict[str, int]
    dtype: str
    card: str
    measured: str
    compulsory: int
    compulsory_by: str
    flops: int
    flops_by: str
    read: int
    written: int
    intensity: float
    ridge: float
    bound: str
    floor: float
    torch_ops: dict[str, int]
    operations: tuple[TorchOp, ...] = ()
    intermediates: tuple[Intermediate, ...] = ()
    formula: str = ""
    formula_read: str = ""
    launches: tuple[Launch, ...]
    obstacles: tuple[str, ...]
    notes: tuple[str, ...] = ()
