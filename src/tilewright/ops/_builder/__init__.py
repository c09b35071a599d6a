"""From one folder an operator: see docs/ops.md."""

from .arguments import ArgumentError
from .build import Built
from .catalog import REGISTRY, build, find
from .operator import Call, Like, Operator, Pair

__all__ = ["REGISTRY", "ArgumentError", "Built", "Call", "Like", "Operator", "Pair", "build", "find"]
