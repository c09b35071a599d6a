"""The CUDA device of a measurement: whether there is one, and which class it is."""

from __future__ import annotations

import functools

from ..prove.device import machine
from ..prove.device.machine import Device


@functools.cache
def start(sandbox: str = "best") -> Device:
    """The device, started once in a sealed child. Raises EnvironmentProblem where there is none."""
    return machine.start("cuda", sandbox=sandbox)


def architecture(sandbox: str = "best") -> str:
    """``sm_90``: the class of device for which a verdict licenses a time."""
    return start(sandbox).target
