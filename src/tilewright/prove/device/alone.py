"""One call of a kernel in a process of its own, for tools that watch a whole process: ``python -c`` with a job's folder.

Each buffer is an allocation of its own (``PYTORCH_NO_CUDA_MEMORY_CACHING``), so that a tool knows where it ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
from pathlib import Path
from typing import Any

import torch

from ...kernel import languages
from ...task import calling, tree
from ..child.transport import Bundle
from .experiments import Experiments

JOB = "job.json"


def write(folder: Path, head: dict[str, Any], bundles: list[Bundle]) -> None:
    """The job as files: the call in JSON, each bundle's bytes beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, bundle in enumerate(bundles):
        (folder / f"{i}.bytes").write_bytes(bytes(bundle.bytes().numpy()))
    job = {"kernel": head["kernel"], "language": head["language"], "calling": head["calling"], "order": head["order"],
           "scalars": head["scalars"], "bundles": [b.head for b in bundles]}  # fmt: skip
    (folder / JOB).write_text(json.dumps(job))


def tensors(folder: Path, i: int, head: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors of one bundle, each storage an allocation on the device; layouts as they were."""
    size = int(head["size"])
    fd = os.open(folder / f"{i}.bytes", os.O_RDWR)
    bundle = Bundle(fd, size if size >= mmap.PAGESIZE else 0, head)
    return {n: on_device(t) for n, t in bundle.tensors(copy=True).items()}


def on_device(t: torch.Tensor) -> torch.Tensor:
    """A copy on the device with the same strides, in a storage that ends where its last element does."""
    span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
    raw = torch.as_strided(t, (span,), (1,)).cuda()
    return raw.as_strided(t.shape, t.stride()) if t.numel() else torch.empty(t.shape, dtype=t.dtype, device="cuda")


def main(folder: str) -> None:
    """Load the kernel, call it once, and wait for the device."""
    here = Path(folder)
    job = json.loads((here / JOB).read_text())
    language = importlib.import_module(f"{languages.__name__}.{job['language']}")
    getattr(language, "prepare", lambda: None)()
    if job["language"] == "triton":  # a tuner takes its first configuration: timing them would take minutes here
        importlib.import_module(".launches", __package__).Recorder(Experiments()).install()
    loaded = language.Loaded(job["kernel"], None)
    how = calling.Calling.model_validate(job["calling"])
    call = loaded.build(how, {n: t.cpu() for n, t in tensors(here, 1, job["bundles"][1]).items()})
    if isinstance(module := getattr(call, "module", None), torch.nn.Module):
        module.cuda()
    made = tensors(here, 0, job["bundles"][0])
    inputs = {n: made[n] if n in made else tree.unflatten(job["scalars"][n], {}) for n in job["order"]}
    torch.cuda.synchronize()
    with torch.device("cuda") if how.style == "destination" else contextlib.nullcontext(), torch.no_grad():
        call(inputs)
    torch.cuda.synchronize()
    print("called", flush=True)
