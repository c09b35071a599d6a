"""Transpose that returns a view of its input: equal in value and shape, but not the fresh contiguous tensor asked for."""


def kernel(x):
    return x.t()
