"""Operators: PyTorch functions whose kernels were proved and measured by Tilewright. One folder is one operator."""

from ._builder import ArgumentError, catalog

_PUBLIC = catalog.load()
globals().update(_PUBLIC)
__all__ = ["ArgumentError", *_PUBLIC]
