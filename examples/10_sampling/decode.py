"""A decode loop: a tiny language model learns from a small text, then samples with tilewright.ops.linear_sample.

    python examples/10_sampling/decode.py            # on the GPU if there is one, else on the CPU
    python examples/10_sampling/decode.py --device cpu --words 5

The model knows a character by the two before it. Sampling is one call a step: no logits are formed outside of it, each row
has options and a seed of its own, and a row writes the same whatever is written beside it.
"""

from __future__ import annotations

import argparse

import torch

from tilewright import ops

TEXT = (
    "the sun sets in the west and the moon rises in the east when the night is near the rest of the stars enter then "
    "their train is set on the tin seas where the mast is taken to the nest at the end of that tense summer"
)
LETTERS = sorted(set(TEXT))
SIZE = 32  # features, and the padded vocabulary: the mask forbids what is no letter
STEPS = 12


def pairs(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Two characters in a row, and the one after them."""
    at = torch.tensor([LETTERS.index(c) for c in TEXT], device=device)
    return torch.stack([at[:-2], at[1:-1]], -1), at[2:]


def trained(device: str, steps: int = 150) -> tuple[torch.nn.Embedding, torch.Tensor]:
    """Embedding of pairs of characters, and the weight of the head; trained with ``ops.linear_cross_entropy``."""
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(len(LETTERS) ** 2, SIZE, device=device)
    weight = torch.nn.Parameter(torch.randn(SIZE, SIZE, device=device) * 0.1)
    before, after = pairs(device)
    optimiser = torch.optim.Adam([*embedding.parameters(), weight], lr=0.05)
    for _ in range(steps):
        loss = ops.linear_cross_entropy(embedding(index(before)), weight, after)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return embedding, weight.detach()


def index(two: torch.Tensor) -> torch.Tensor:
    """The pair as one number."""
    return two[..., 0] * len(LETTERS) + two[..., 1]


@torch.no_grad()
def write(
    model: tuple[torch.nn.Embedding, torch.Tensor], seeds: torch.Tensor, **options: object
) -> tuple[list[str], torch.Tensor]:
    """``STEPS`` characters a row, and the log-probability of each row. ``options`` are those of ``ops.linear_sample``."""
    embedding, weight = model
    count, device = len(seeds), seeds.device
    two = torch.full((count, 2), LETTERS.index(" "), device=device)
    seen = torch.zeros(count, SIZE, dtype=torch.int32, device=device)
    allowed = (torch.arange(SIZE, device=device) < len(LETTERS)).expand(count, SIZE)
    written, total = [], torch.zeros(count, device=device)
    for step in range(STEPS):
        # A seed a row and step: the draws of a row depend on nothing else.
        token, logprob = ops.linear_sample(
            embedding(index(two)), weight, seeds + step, counts=seen, allowed=allowed, **options
        )
        seen.scatter_add_(1, token, torch.ones_like(token, dtype=seen.dtype))
        two = torch.cat([two[:, 1:], token], -1)
        written.append(token)
        total += logprob[:, 0]
    rows = torch.cat(written, -1).tolist()
    return ["".join(LETTERS[t] for t in row) for row in rows], total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--words", type=int, default=4)
    given = parser.parse_args()
    model = trained(given.device)
    seeds = torch.arange(given.words, device=given.device) * STEPS
    for name, options in (
        ("greedy", {"temperature": 0.0}),
        ("temperature 1", {"temperature": 1.0}),
        ("top-p 0.9, frequency 0.5", {"temperature": 0.8, "top_p": 0.9, "frequency": 0.5}),
        ("top-k 3, min-p 0.05", {"top_k": 3, "min_p": 0.05}),
    ):
        texts, total = write(model, seeds, **options)
        print(name)
        for text, logprob in zip(texts, total.tolist(), strict=True):
            print(f"  {text!r:20} log-probability {logprob:.2f}")


if __name__ == "__main__":
    main()
