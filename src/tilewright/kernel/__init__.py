"""Kernels: candidate sources, and one file per language that knows how to run them."""

from .kernel import Kernel, read

__all__ = ["Kernel", "read"]
