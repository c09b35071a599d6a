"""Where the trials of a search can be timed. Said before anything is opened: a check takes minutes, this takes none."""

from __future__ import annotations

import os

from ..errors import EnvironmentProblem, Unsupported
from ..kernel import Kernel
from ..prove.device import machine

WORDS = {"triton": ("Triton", "evaluated"), "cuda": ("CUDA", "compiled")}
HERE = ("on a machine with a GPU add --device cuda; here, `tilewright check` proves a kernel right, `tilewright explain` "
        "tells what each launch does, `tilewright study FILE` searches what was recorded elsewhere")  # fmt: skip


def timeable(kernel: Kernel, device: str, sandbox: str = "best") -> None:
    """Raises UserError, Unsupported or EnvironmentProblem where trials of this kernel can't be timed on this device."""
    machine.named(device)
    if device == "cpu":
        return _on_cpu(kernel)
    machine.runs_there(kernel.language, kernel.path)
    try:
        machine.started(device, sandbox)
    except EnvironmentProblem as e:
        raise EnvironmentProblem(f"no trial can be timed: {e.what}", detail=e.detail, remedy=HERE) from None


def _on_cpu(kernel: Kernel) -> None:
    if kernel.language not in WORDS:
        return
    name, instead = WORDS[kernel.language]
    if any(os.path.exists(n) for n in machine.NODES):
        raise Unsupported(f"no times of a {name} kernel can be taken on the CPU, and this machine has a GPU",
                          where=kernel.path, remedy="add --device cuda")  # fmt: skip
    raise Unsupported(
        f"no times of a {name} kernel can be taken on this machine: without a GPU it is {instead}, not run, which says "
        "whether it is right and never how fast it is; no GPU was found",
        where=kernel.path, remedy=HERE,
    )  # fmt: skip
