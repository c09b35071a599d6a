"""``tilewright.ops.patch``: the operators in a model that was written without them. See docs/patch.md."""

from .model import patch
from .report import Left, Patch, Replaced

__all__ = ["Left", "Patch", "Replaced", "patch"]
