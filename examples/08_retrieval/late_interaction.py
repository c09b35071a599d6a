"""Late interaction end to end: train token embeddings, keep an index of int8, search it.

    python examples/08_retrieval/late_interaction.py [--device cuda]
"""

import argparse

import torch
from data import WORDS, documents, overlap, queries, recall

from tilewright import ops

FEATURES = 32


def embedded(table, words):
    """A unit vector for each token."""
    return torch.nn.functional.normalize(table[words], dim=-1)


def train(device, steps, generator):
    """Each query of a batch must find its own document among all of the batch."""
    table = (torch.randn(WORDS, FEATURES, generator=generator) / 6).to(device).requires_grad_()
    adam = torch.optim.Adam([table], lr=0.1)
    for _ in range(steps):
        concepts, words, mask = documents(64, generator)
        asked = queries(concepts, words, generator).to(device)
        scores = ops.max_sim(embedded(table, asked), embedded(table, words.to(device)), d_mask=mask.to(device))
        loss = torch.nn.functional.cross_entropy(10 * scores, torch.arange(64, device=device))
        adam.zero_grad()
        loss.backward()
        adam.step()
    return table.detach()


def quantised(vectors):
    """int8 codes and a scale for each token: a quarter of float32's memory."""
    scale = vectors.abs().amax(-1) / 127
    return (vectors / scale[..., None]).round().to(torch.int8), scale


def main(device="cpu", steps=300, count=500):
    generator = torch.Generator().manual_seed(0)
    table = train(device, steps, generator)
    concepts, words, mask = documents(count, generator)
    asked = queries(concepts, words, generator)
    vectors, mask_there = embedded(table, words.to(device)), mask.to(device)
    codes, scale = quantised(vectors)
    q = embedded(table, asked.to(device))
    found = {
        "common words": overlap(asked, words, mask).topk(5).indices,
        "float index": ops.max_sim_top_k(q, vectors, 5, d_mask=mask_there)[1],
        "int8 index": ops.max_sim_top_k(q, codes, 5, scale=scale, d_mask=mask_there)[1],
    }
    for name, numbers in found.items():
        print(f"{name}: the document is among the first 5 of {count} for {recall(numbers):.1%} of the queries")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=300)
    main(**vars(parser.parse_args()))
