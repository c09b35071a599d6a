"""The corpus: kernels with planted faults and right controls, on which the verifier itself is graded."""
