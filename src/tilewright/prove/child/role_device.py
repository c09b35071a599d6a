"""The candidate's child on a CUDA device: see ``prove/device/role.py``."""

from ..device.role import Role

__all__ = ["Role"]
