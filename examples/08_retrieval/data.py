"""Made-up documents and queries. A concept has several words; a query asks for a document in words that it does not use."""

import torch

CONCEPTS, SYNONYMS = 60, 4
WORDS = CONCEPTS * SYNONYMS
LONGEST = 14


def documents(count, generator):
    """Concepts (count, LONGEST), words, and a mask: a document has 8 to 14 tokens."""
    concepts = torch.rand(count, CONCEPTS, generator=generator).argsort(1)[:, :LONGEST]
    which = torch.randint(SYNONYMS, concepts.shape, generator=generator)
    lengths = torch.randint(8, LONGEST + 1, (count, 1), generator=generator)
    return concepts, concepts * SYNONYMS + which, torch.arange(LONGEST) < lengths


def queries(concepts, words, generator):
    """Four concepts of each document, in other words than its own."""
    other = torch.randint(1, SYNONYMS, (len(words), 4), generator=generator)
    return concepts[:, :4] * SYNONYMS + (words[:, :4] + other) % SYNONYMS


def recall(found):
    """Share of the queries whose own document is among those found; query ``i`` is about document ``i``."""
    own = torch.arange(len(found), device=found.device)[:, None]
    return (found == own).any(1).double().mean().item()


def overlap(query_words, words, mask):
    """Documents by the number of common words: what a search without training does."""
    common = (query_words[:, None, :, None] == words[None, :, None, :]) & mask[None, :, None, :]
    return common.any(-1).sum(-1)
