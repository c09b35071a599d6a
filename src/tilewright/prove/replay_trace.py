"""Replay a trace in a domain: storages are the domain's arrays, torch operations rules, launches evaluated from source.

Memory is as in the traced process: one array a storage, and a tensor is a place in it. An operation reads its arguments
from their places and writes its results to theirs, so views and in-place work need no rules. Values taken out to Python
(``.item()``, ``if tensor:``) are *path conditions*: what the replay shows holds for calls that take the same path.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import Unsupported
from ..ir import launch as launches
from ..ir.arguments import bind, flatten
from ..ir.compile import compile
from ..ir.domains.base import Domain
from ..ir.domains.constants import number
from ..ir.program import Type
from ..ir.torch_ops.calls import Calls, walk
from ..ir.torch_ops.context import TORCH_FLOATS, Expected, Value
from ..ir.values import ELEM, struct
from .child.device_source import DeviceSource, decode

FRESH = ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_permuted", "resize_")
TAKEN = ("_local_scalar_dense", "equal", "is_nonzero", "item", "allclose")
SILENT = ("_assert_async", "_assert_tensor_metadata", "record_stream", "_has_compatible_shallow_copy_type", "set_")
RUNNING = (
    "native_batch_norm",
    "_native_batch_norm_legit",
    "cudnn_batch_norm",
)  # change arguments 3 and 4
OVERWRITING = ("copy", "fill", "zero")
LARGE_CONSTANT = 4096


@dataclass
class Storage:
    """``data`` is flat; ``fresh``: nothing has been written since it was allocated; ``lost``: why what it holds can't
    be followed (it matters only where something reads it)."""

    data: Any
    dtype: torch.dtype
    fresh: bool = False
    lost: Unsupported | None = None


@dataclass(frozen=True)
class Plan:
    """A launch made ready: its program, arguments by name, the places behind pointers, the grid."""

    program: Any
    flat: tuple[tuple[str, Any], ...]
    places: dict[str, list[Any]]
    grid: tuple[int, int, int]


class Replay:
    """One replay. ``conditions``: lines at which the path was chosen by values; ``stores``: by storage, the line that
    last wrote it; ``seconds`` limits each launch; ``plans`` keeps compiled launches from one replay to the next."""

    def __init__(self, domain: Domain, sources: DeviceSource | None = None, seconds: float | None = None,
                 plans: dict[int, Plan] | None = None):  # fmt: skip
        self.domain, self.sources, self.seconds = domain, sources, seconds
        self.plans: dict[int, Plan] = {} if plans is None else plans
        self.calls = Calls(domain)
        self.storages: dict[int, Storage] = {}
        self.conditions: set[str] = set()
        self.stores: dict[int, str] = {}
        self.compared: list[tuple[str, Any, Any, str]] = []
        self._indices: dict[tuple[Any, ...], torch.Tensor] = {}

    def run(self, trace: Mapping[str, Any], given: Mapping[str, Value]) -> dict[str, Value]:
        """Results by name, for inputs in the domain. Raises Unsupported with operation and line."""
        if trace.get("problem"):
            raise Unsupported(trace["problem"])
        self.sizes = {int(k): int(v) for k, v in trace["sizes"].items()}
        self.captured = {int(k): v for k, v in trace["captured"].items()}
        for name, place in trace["inputs"].items():
            if name not in given:
                raise Unsupported(f"an input '{name}' that the replay lacks")
            self.write(place, given[name])
        for step in trace["steps"]:
            self.calls.where = step.get("where", "")
            if "launch" in step:
                self.launch(step["launch"], step["tensors"])
                continue
            try:
                self.operation(step)
            except Unsupported as e:
                self.lose(step, e)
        return {n: self.read(place) for n, place in trace["outputs"].items()}

    def lose(self, step: Mapping[str, Any], why: Unsupported) -> None:
        """An operation that can't be followed: its results are lost, which matters once they are read."""
        made = [o["t"] for o in walk_out(step["out"]) if "t" in o]
        if not made:
            raise why
        for place in made:
            if place[0] < 0:
                raise why
            held = self.storages.get(place[0])
            if held is None:
                held = self.storages[place[0]] = Storage(torch.empty(0), getattr(torch, place[4]))
            held.lost = held.lost or why

    # -- places
    def storage(self, place: list[Any]) -> Storage:
        """The storage of a place, made where it is met first."""
        sid, dtype = place[0], getattr(torch, place[4])
        found = self.storages.get(sid)
        if found is None:
            found = self.storages[sid] = (
                self.captured_storage(sid, dtype) if sid in self.captured else self.new(sid, dtype)
            )
        if found.dtype != dtype and found.lost is None:
            found = self.storages[sid] = self.retyped(sid, found, dtype)
        return found

    def new(self, sid: int, dtype: torch.dtype) -> Storage:
        if dtype.is_complex:
            raise Unsupported(f"{dtype} in the {self.domain.name} domain", where=self.calls.where or None)
        n = self.sizes[sid] // dtype.itemsize
        if dtype in TORCH_FLOATS:
            return Storage(self.domain.poison(Type(ELEM[dtype]), (n,), self.calls.where), dtype, True)
        pattern = True if dtype == torch.bool else 0x5A
        return Storage(torch.full((n,), pattern, dtype=dtype), dtype, True)

    def retyped(self, sid: int, old: Storage, dtype: torch.dtype) -> Storage:
        if old.fresh:
            return self.new(sid, dtype)
        if old.dtype in TORCH_FLOATS or dtype in TORCH_FLOATS:
            raise Unsupported(f"memory written as {old.dtype} and read as {dtype}", where=self.calls.where or None)
        return Storage(old.data.view(dtype), dtype)

    def captured_storage(self, sid: int, dtype: torch.dtype) -> Storage:
        """Data from before the call: integers as they are, floats as the numbers that they stand for."""
        _, body = self.captured[sid]
        raw = torch.frombuffer(bytearray(base64.b64decode(body)) or bytearray(1), dtype=torch.uint8)
        n = self.sizes[sid] // dtype.itemsize
        flat = raw[: n * dtype.itemsize].view(dtype) if n else torch.empty(0, dtype=dtype)
        if dtype not in TORCH_FLOATS:
            return Storage(flat.clone(), dtype)
        return Storage(self.meant(flat), dtype)

    def meant(self, flat: torch.Tensor) -> Any:
        wide = flat.double()
        few = wide.unique()
        if len(few) > LARGE_CONSTANT or not bool(torch.isfinite(few).all()):
            return self.calls.exact(wide)
        elem = ELEM[flat.dtype]
        if all(number(v, elem).exact is not None and number(v, elem).error == 0 for v in few.tolist()):
            return self.calls.exact(wide)
        if self.domain.name == "real":
            best = torch.tensor([number(v, elem).value for v in few.tolist()], dtype=torch.float64)
            return best[torch.searchsorted(few, wide)]
        parts = [self.domain.constant(v, Type(elem), self.calls.where) for v in few.tolist()]
        table = parts[0].combine(lambda ts: torch.cat([*ts]), parts)
        return self.domain.take(table, torch.searchsorted(few, wide))

    def whole(self, place: list[Any], size: int) -> bool:
        """Whether a place is all of its storage, in order."""
        _, offset, shape, strides, _ = place
        if offset or torch.Size(shape).numel() != size:
            return False
        expected = 1
        for n, s in zip(reversed(shape), reversed(strides), strict=True):
            if n != 1 and s != expected:
                return False
            expected *= n
        return True

    def index(self, place: list[Any]) -> torch.Tensor:
        _, offset, shape, strides, _ = place
        key = (offset, tuple(shape), tuple(strides))
        if key not in self._indices:
            index = torch.full(tuple(shape), offset, dtype=torch.int64)
            for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
                sizes = [1] * len(shape)
                sizes[axis] = n
                index = index + torch.arange(n).mul(s).reshape(sizes)
            self._indices[key] = index
        return self._indices[key]

    def read(self, place: list[Any]) -> Value:
        found = self.storage(place)
        if found.lost is not None:
            raise found.lost
        shape = tuple(place[2])
        size = found.data.shape[0]
        if self.whole(place, size):
            data = struct(found.data, lambda t: t.reshape(shape))
        elif found.dtype in TORCH_FLOATS:
            got = self.domain.take(found.data, self.index(place).reshape(-1))
            data = struct(got, lambda t: t.reshape(shape))
        else:
            data = found.data[self.index(place)]
        return Value(data, found.dtype)

    def write(self, place: list[Any], value: Value) -> None:
        data = struct(value.data, lambda t: t.expand(tuple(place[2])).reshape(-1))
        dtype = getattr(torch, place[4])
        if self.whole(place, self.sizes[place[0]] // dtype.itemsize):
            if isinstance(data, torch.Tensor):  # memory of its own: a launch tells buffers apart by address
                data = data.clone() if dtype in TORCH_FLOATS else data.to(dtype).clone()
            self.storages[place[0]] = Storage(data, dtype)
            return
        found = self.storage(place)
        if found.lost is not None:
            return
        if found.dtype in TORCH_FLOATS:
            base = struct(found.data, lambda t: t.clone(memory_format=torch.contiguous_format))
            self.storages[place[0]] = Storage(self.domain.put(base, self.index(place).reshape(-1), data), found.dtype)
        else:
            flat = found.data.clone()
            flat[self.index(place).reshape(-1)] = data.to(found.dtype)
            self.storages[place[0]] = Storage(flat, found.dtype)

    # -- steps
    def operation(self, step: Mapping[str, Any]) -> None:
        namespace, _, rest = step["op"].partition(".")
        packet, _, overload = rest.rpartition(".")
        base = packet.rstrip("_")
        if base in SILENT or packet in SILENT:
            return
        if namespace != "aten":
            raise Unsupported(f"the custom operation {step['op']}", where=self.calls.where or None)
        outs = [o["t"] for o in walk_out(step["out"]) if "t" in o]
        if packet in FRESH or base in FRESH:
            for place in outs:
                self.storages[place[0]] = self.new(place[0], getattr(torch, place[4]))
            return
        if base in TAKEN:
            return self.taken(base, step)
        func = getattr(getattr(torch.ops.aten, packet), overload)
        mutable = func._schema.is_mutable
        sources = {p[0] for p in places(step["args"])} | {p[0] for p in places(list(step["kwargs"].values()))}
        if not mutable and outs and all(p[0] in sources for p in outs):
            return
        args = [self.decode(a) for a in step["args"][1:]] if step["args"] else []
        if step["args"]:
            args.insert(0, self.unread(step["args"][0]["t"]) if base in OVERWRITING else self.decode(step["args"][0]))
        kwargs = {k: self.decode(v) for k, v in step["kwargs"].items() if not _is_out(func, k)}
        expected = tuple(Expected(tuple(p[2]), getattr(torch, p[4])) for p in outs)
        if base in RUNNING and isinstance(args[3], Value) and args[5]:
            outs += [step["args"][3]["t"], step["args"][4]["t"]]
            expected += tuple(Expected(tuple(args[i].shape), args[i].dtype) for i in (3, 4))
            mutable = True
        for place, value in zip(outs, self.calls.call(func, args, kwargs, expected), strict=False):
            if place[0] in sources and not mutable:
                continue
            self.write(place, value)
            self.stores[place[0]] = self.calls.where

    def unread(self, place: list[Any]) -> Value:
        """A tensor that is overwritten whatever it held."""
        dtype = getattr(torch, place[4])
        if dtype in TORCH_FLOATS:
            return Value(self.calls.full(place[2], 0.0), dtype)
        return Value(torch.zeros(place[2], dtype=dtype), dtype)

    def taken(self, base: str, step: Mapping[str, Any]) -> None:
        """A value that left for Python. Integers are the run's own; a float that depends on data can't be followed."""
        values = [self.decode(a) for a in step["args"] if "t" in a]
        data = values[0].data if values else None
        if base in ("_local_scalar_dense", "item") and values and values[0].is_float:
            known = getattr(data, "x", None)
            fixed = known is not None
            if not fixed:
                raise Unsupported("a float taken out of a tensor", where=self.calls.where or None)
            return
        self.conditions.add(self.calls.where)

    def decode(self, v: Mapping[str, Any]) -> Any:
        ((kind, body),) = v.items()
        if kind == "t":
            return self.read(body)
        if kind == "=":
            return body
        if kind == "f":
            return float.fromhex(body) if "0x" in body else float(body)
        if kind == "dtype":
            return getattr(torch, body)
        if kind == "word":
            return _word(body)
        if kind == "list":
            return [self.decode(x) for x in body]
        raise Unsupported(f"an argument of type {body}", where=self.calls.where or None)

    # -- launches
    def launch(self, head: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        """One launch, from the source that its hash names."""
        plan = self.plans.get(id(head))
        if plan is None:
            plan = self.plans[id(head)] = self.plan(head, {n: v["t"] for n, v in tensors.items()})
        names = tuple(n for n, _ in plan.flat)
        arguments = [self.argument(v, plan.places.get(n)) for n, v in plan.flat]
        result = launches.evaluate(plan.program, names, plan.grid, arguments, self.domain, track=False,
                                   seconds=self.seconds)  # fmt: skip
        lines = {a.argument: a.where for a in result.accesses if a.kind != "load"}
        for n, place in plan.places.items():
            if n not in result.outputs:
                continue
            held = self.storages[place[0]]
            if held.dtype in TORCH_FLOATS:
                held.data = result.outputs[n]
            if n in lines:
                held.fresh = False
                self.stores[place[0]] = lines[n]

    def plan(self, head: Mapping[str, Any], given: Mapping[str, list[Any]]) -> Plan:
        """Compile a launch for stand-ins of the same layout and alignment."""
        if self.sources is None:
            raise Unsupported("a launch without its source")
        fn = self.sources.function(head["file"], head["function"], head.get("globals", {}))
        stand_ins = {n: self.stand_in(p) for n, p in given.items()}
        values = {n: decode(v, self.sources, stand_ins) for n, v in head["arguments"].items()}
        options = {k: decode(v, self.sources, {}) for k, v in head.get("options", {}).items()}
        compiled = compile(fn, (), {**values, **options})
        flat = tuple(flatten(compiled.signature, bind(fn, (), {**values, **options})))
        at = {id(t): given[n] for n, t in stand_ins.items()}
        found = {}
        for n, v in flat:
            base = v if isinstance(v, torch.Tensor) else getattr(v, "base", None)
            if id(base) in at:
                found[n] = at[id(base)]
                if base is not v and not hasattr(v, "block_shape"):
                    raise Unsupported("a reinterpreted pointer argument", where=self.calls.where or None)
        grid = (*map(int, head["grid"]), 1, 1)[:3]
        return Plan(compiled.program, flat, found, grid)  # type: ignore[arg-type]

    def stand_in(self, place: list[Any]) -> torch.Tensor:
        _, offset, shape, strides, name = place
        dtype = getattr(torch, name)
        size = max(self.sizes[place[0]] // dtype.itemsize, 1)
        return torch.empty(size, dtype=dtype).as_strided(shape, strides, offset if 0 not in shape else 0)

    def argument(self, v: Any, place: list[Any] | None) -> Any:
        """An argument of the launch with the domain's storage in place of the stand-in."""
        if place is None:
            return v
        found = self.storage(place)
        if found.lost is not None:
            raise found.lost
        arg = launches.Arg(found.data, place[1], found.dtype)
        if isinstance(v, torch.Tensor):
            return arg
        return types.SimpleNamespace(base=arg, shape=v.shape, strides=v.strides, padding=getattr(v, "padding", "zero"))


def walk_out(out: Any) -> Any:
    """Results one by one, lists of results spread out."""
    for o in out:
        if "list" in o:
            yield from walk_out(o["list"])
        else:
            yield o


def places(encoded: Any) -> Any:
    """Places among encoded arguments."""
    for v in walk(encoded):
        if "t" in v:
            yield v["t"]
        elif "list" in v:
            yield from places(v["list"])


def _is_out(func: Any, name: str) -> bool:
    return any(a.name == name and a.is_out for a in func._schema.arguments)


def _word(body: str) -> Any:
    """Devices, layouts and memory formats: nothing of a value depends on them."""
    return getattr(torch, body.removeprefix("torch.")) if body.startswith("torch.") else None
