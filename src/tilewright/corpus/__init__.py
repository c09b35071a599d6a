"""The corpus: kernels with planted faults and right controls, on which the verifier itself is graded."""

from .grade import Grade, Graded, grade
from .labels import Label, read_labels

__all__ = ["Grade", "Graded", "Label", "grade", "read_labels"]
