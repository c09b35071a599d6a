"""Distillation of attention: a student with one key head and a quarter of the features learns where its teacher looks.

    python examples/09_distillation/attention.py [--device cuda]
"""

import argparse

import torch

from tilewright import ops

WIDTH, HEADS, LENGTH = 32, 4, 48


class Heads(torch.nn.Module):
    """Queries and keys of one attention layer."""

    def __init__(self, key_heads, features, generator, size):
        super().__init__()
        self.features = features
        self.q = torch.nn.Parameter(torch.randn(WIDTH, HEADS * features, generator=generator) * size)
        self.k = torch.nn.Parameter(torch.randn(WIDTH, key_heads * features, generator=generator) * size)

    def forward(self, x):
        return tuple((x @ w).unflatten(-1, (-1, self.features)).transpose(1, 2) for w in (self.q, self.k))


def texts(count, generator):
    """Sequences of vectors that drift, 24 to 48 long, and their mask."""
    x = torch.randn(count, LENGTH, WIDTH, generator=generator).cumsum(1)
    lengths = torch.randint(24, LENGTH + 1, (count, 1), generator=generator)
    return torch.nn.functional.layer_norm(x, (WIDTH,)), torch.arange(LENGTH) < lengths


def apart(teacher, student, x, mask, divergence="forward"):
    """Mean divergence over heads and tokens; nothing flows back into the teacher."""
    with torch.no_grad():
        fixed = teacher(x)
    return ops.attention_kl(*fixed, *student(x), key_mask=mask, query_mask=mask, causal=True, divergence=divergence)


def main(device="cpu", steps=150, divergence="forward"):
    generator = torch.Generator().manual_seed(0)
    teacher = Heads(2, 32, generator, 0.25).to(device)
    student = Heads(1, 8, generator, 0.1).to(device)
    held_out = [t.to(device) for t in texts(32, generator)]
    with torch.no_grad():
        print(f"divergence before: {apart(teacher, student, *held_out):.4f}")
    adam = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(steps):
        loss = apart(teacher, student, *(t.to(device) for t in texts(16, generator)), divergence)
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        print(f"divergence after: {apart(teacher, student, *held_out):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--divergence", default="forward", choices=("forward", "reverse", "js"))
    main(**vars(parser.parse_args()))
