"""Kernels that are PyTorch code, without device kernels of their own."""

from ._python import PythonLoaded as Loaded
from .triton import prepare

__all__ = ["Loaded", "prepare"]
