"""Operators: PyTorch functions whose kernels were proved and measured by Tilewright. One folder is one operator."""

from ._builder import ArgumentError, catalog

_PUBLIC = catalog.load()
globals().update(_PUBLIC)

from .patching import patch  # noqa: E402  it calls the operators

__all__ = ["ArgumentError", "patch", *_PUBLIC]
