"""Readers: one file a format. ``read(path)`` gives a ``Source``; only ever called inside a sealed child."""

from .source import Source, read, readers
from .workloads import Budget

__all__ = ["Budget", "Source", "read", "readers"]
