"""A child that compiles CUDA C++ for machines that are not there: see ``prove/device/compile.py``."""

from ..device.compile import Role

__all__ = ["Role"]
