"""Kernels that are PyTorch code, without device kernels of their own."""

from ._python import PythonLoaded as Loaded

__all__ = ["Loaded"]
