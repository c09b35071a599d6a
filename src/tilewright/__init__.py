"""Tilewright: prove a GPU kernel right, measure it honestly, search for a faster one, make it an operator."""

__version__ = "0.1.0"

__all__ = ["Contract", "Dim", "Scalar", "Task", "TensorSpec", "Verdict", "Workload", "check"]


def __getattr__(name: str) -> object:
    """Public names, imported at first use: ``import tilewright`` costs nothing."""
    if name == "check":
        from .api import check

        return check
    if name == "Verdict":
        from .prove.verdict import Verdict

        return Verdict
    if name in __all__:
        from . import task

        return getattr(task, name)
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
