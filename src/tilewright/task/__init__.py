"""Tasks: what must be computed, and what is promised about it."""

from .contract import INFERRED, Contract, Tolerance, strict
from .task import Task, TaskSheet, Work, Workload
from .tensors import Dim, Scalar, TensorSpec, Values, integers, normal, uniform

__all__ = ["INFERRED", "Contract", "Dim", "Scalar", "Task", "TaskSheet", "TensorSpec", "Tolerance", "Values", "Work",
           "Workload", "integers", "normal", "strict", "uniform"]  # fmt: skip
