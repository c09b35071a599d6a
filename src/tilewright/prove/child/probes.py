"""The evaluator's part in a call at sizes beyond memory: one launch, a sample of its programs, bounds alone."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import KernelError
from ...ir.arguments import Arg
from ...ir.index import Filled, described, probe, too_large
from .device_source import DeviceSource, decode
from .engine_ir import LaunchRefused, describe

SECONDS = 4.0


def run(sources: DeviceSource, head: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Faults of a launch. ``options``: ``fills`` (input's name to the integers that it is filled with, one after
    another), ``seed``, ``seconds``, ``programs`` (positions to look at besides the sample). With ``describe`` the launch is
    only described. ``guessed``: arguments whose integers were read and are not known."""
    fn = sources.function(head["file"], head["function"], head.get("globals", {}))
    x, y, z = (int(g) for g in (*head["grid"], 1, 1)[:3])
    if problem := too_large((x, y, z)):
        return {"faults": [], "programs": 0, "grid_fault": problem, "where": _where(fn)}
    if "describe" in options:
        return {"described": _described(fn, (x, y, z), sources, head, options["describe"] == "text")}
    fills: dict[str, list[int]] = options.get("fills", {})
    found: dict[str, Any] = {"faults": [], "programs": 0, "guessed": [], "fills": []}
    for turn in range(max([1, *(len(v) for v in fills.values())])):
        now = {n: v[min(turn, len(v) - 1)] for n, v in fills.items()}
        tensors, _ = arguments(head["virtual"], now)
        values = {n: decode(v, sources, tensors) for n, v in head["arguments"].items()}
        launch_options = {k: decode(v, sources, {}) for k, v in head.get("options", {}).items()}
        try:
            result, steers = probe(
                fn,
                (x, y, z),
                (),
                {**values, **launch_options},
                seed=options.get("seed", 0),
                seconds=options.get("seconds", SECONDS),
                also=options.get("programs", ()),
            )
        except KernelError as e:
            refused = LaunchRefused(e.what)
            refused.where = e.where  # type: ignore[attr-defined]
            raise refused from e
        steer = {a.argument for a in result.accesses if a.kind != "store" and a.where in steers}
        inputs = {n: head["virtual"][n]["input"] for n in steer if n in head["virtual"]}
        found["guessed"] = sorted(n for n, name in inputs.items() if name not in fills)
        found["programs"] += result.evaluated
        if result.faults:
            found["faults"] = describe(result)["faults"]
            found["fills"] = {n: now[n] for n in inputs.values() if n in now}
        if result.faults or not any(n in fills for n in inputs.values()):
            break
    return found


def _described(fn: Any, grid: tuple[int, int, int], sources: DeviceSource, head: dict[str, Any], text: bool) -> Any:
    """The launch as data (``ir.index.described``), each storage as [number, offset, dtype, bytes, input]."""
    tensors, stores = arguments(head["virtual"], {})
    values = {n: decode(v, sources, tensors) for n, v in head["arguments"].items()}
    options = {k: decode(v, sources, {}) for k, v in head.get("options", {}).items()}
    out = described(fn, grid, {**values, **options}, text=text)
    numbers = {id(s): n for n, s in stores.items()}
    layouts = {e["storage"]: e for e in head["virtual"].values()}
    for slot in out["slots"]:
        if isinstance(slot[2], list):
            storage, offset, dtype = slot[2]
            e = layouts[numbers[id(storage)]]
            slot[2] = [e["storage"], offset, dtype, e["nbytes"], e["input"]]
    return out


def arguments(layouts: dict[str, Any], fills: dict[str, int]) -> tuple[dict[str, Any], dict[int, Filled]]:
    """The launch's tensors over storages without memory, and the storages by number."""
    stores: dict[int, Filled] = {}
    out: dict[str, Any] = {}
    for name, e in layouts.items():
        dtype = getattr(torch, e["dtype"])
        if e["storage"] not in stores:
            stores[e["storage"]] = Filled(e["nbytes"] // dtype.itemsize, dtype, fills.get(e["input"], 0))
        out[name] = Arg(stores[e["storage"]], e["offset"], dtype)
    return out, stores


def _where(fn: Any) -> str:
    from ...ir.compile import unwrap, where_of

    return where_of(unwrap(fn))
