"""Sparse retrieval end to end: train an expansion of texts into weighted words, keep an inverted index, search it.

    python examples/08_retrieval/sparse.py [--device cuda]
"""

import argparse

import torch
from data import WORDS, documents, overlap, queries, recall

from tilewright import ops

FEATURES = 48


class Encoder(torch.nn.Module):
    """Tokens to weights of all words, most of them 0."""

    def __init__(self, generator):
        super().__init__()
        self.tokens = torch.nn.Parameter(torch.randn(WORDS, FEATURES, generator=generator) / 4)
        self.words = torch.nn.Parameter(torch.randn(WORDS, FEATURES, generator=generator) / 4)
        self.bias = torch.nn.Parameter(torch.zeros(WORDS))

    def forward(self, words, mask=None):
        return ops.sparse_retrieval_head(self.tokens[words], self.words, self.bias, mask=mask)


def train(device, steps, generator):
    """Each query must find its own document among the batch; the mean weights, squared, are kept small (the FLOPS penalty of
    B. Paria et al., 2020), which makes most of them 0."""
    encoder = Encoder(generator).to(device)
    adam = torch.optim.Adam(encoder.parameters(), lr=0.02)
    for _ in range(steps):
        concepts, words, mask = documents(64, generator)
        asked = encoder(queries(concepts, words, generator).to(device))
        answers = encoder(words.to(device), mask.to(device))
        loss = torch.nn.functional.cross_entropy(asked @ answers.T, torch.arange(64, device=device))
        loss = loss + 0.003 * sum(y.mean(0).square().sum() for y in (asked, answers))
        adam.zero_grad()
        loss.backward()
        adam.step()
    return encoder


class Index:
    """For each word the documents that have it, and its weights there."""

    def __init__(self, weights):
        self.count = len(weights)
        word, self.document = weights.T.nonzero(as_tuple=True)
        self.weight = weights.T[word, self.document]
        self.first = torch.searchsorted(word, torch.arange(WORDS + 1, device=word.device)).tolist()

    def scores(self, query):
        """Of all documents for one query, from the lists of its words alone."""
        scores = torch.zeros(self.count, device=self.weight.device)
        for word in query.nonzero().flatten().tolist():
            here = slice(self.first[word], self.first[word + 1])
            scores[self.document[here]] += query[word] * self.weight[here]
        return scores


@torch.no_grad()
def main(device="cpu", steps=300, count=500):
    generator = torch.Generator().manual_seed(0)
    with torch.enable_grad():
        encoder = train(device, steps, generator)
    concepts, words, mask = documents(count, generator)
    asked = queries(concepts, words, generator)
    weights = encoder(words.to(device), mask.to(device))
    index = Index(weights)
    found = torch.stack([index.scores(query).topk(5).indices for query in encoder(asked.to(device))])
    print(f"a document has {(weights > 0).sum(1).double().mean():.0f} words of {WORDS}")
    for name, numbers in {"common words": overlap(asked, words, mask).topk(5).indices, "sparse index": found}.items():
        print(f"{name}: the document is among the first 5 of {count} for {recall(numbers):.1%} of the queries")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=300)
    main(**vars(parser.parse_args()))
