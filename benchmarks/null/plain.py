"""y = 2x + 1 in torch, for the share of comparisons that go through Python."""


def kernel(x):
    return x * 2 + 1
