"""The CUDA device of a measurement: whether there is one, and which class it is."""

from __future__ import annotations

from ..prove.child.session import Limits
from ..prove.device import machine
from ..prove.device.machine import Device


def start(sandbox: str = "best") -> Device:
    """The device, started once in a sealed child. Raises EnvironmentProblem where there is none."""
    return machine.start("cuda", sandbox=sandbox)


def architecture(sandbox: str = "best") -> str:
    """``sm_90``: the class of device for which a verdict licenses a time."""
    return start(sandbox).target


def limits(device: Device, seconds: float) -> Limits:
    """What a timed child on the device may use."""
    return device.limits(Limits(seconds=seconds))
